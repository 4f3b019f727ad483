"""What telemetry costs inside the processes of a simulator, where it cannot be seen from outside.

Two figures: the CPU of one call's whole telemetry, client and server, and that of one scrape.
"""

from __future__ import annotations

import asyncio
import http.client
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from rolltop_instrument import StampedSlot, WorkerTelemetry
from rolltop_instrument.grpc_server import timed_server

from bench.cpu import cpu_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS = 60
CALLS = 50
"""Short rounds, interleaved, so that a burst of a neighbour falls on both."""
SCRAPES = 100
_METHOD = "/bench.Service/work"

_WORKER = """
import asyncio, sys
from rolltop_instrument import WorkerTelemetry

async def main():
    async with WorkerTelemetry(worker_id="0", port=0, scrape_interval_s=0.1) as telemetry:
        for n in range(30):
            service, method = f"service{n % 5}", f"method{n // 5}"
            async with telemetry.call(service, method, endpoint=f"{service}-{n}") as call:
                call.server_times(queue_s=0.001, service_s=0.01)
        print(telemetry.page_port, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def scrape_cpu_s() -> float:
    """CPU-seconds that a worker spends on one scrape of its page, all of its threads."""
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    connection = http.client.HTTPConnection("127.0.0.1", int(worker.stdout.readline()))
    began, clock = cpu_of(worker.pid), time.monotonic()
    for _ in range(SCRAPES):
        connection.request("GET", "/metrics")
        connection.getresponse().read()
    scraped, seconds = cpu_of(worker.pid) - began, time.monotonic() - clock
    began = cpu_of(worker.pid)
    time.sleep(seconds)
    idle = cpu_of(worker.pid) - began
    connection.close()
    worker.communicate()
    return max(0.0, scraped - idle) / SCRAPES


def call_cpu_s() -> float:
    """CPU-seconds that telemetry adds to one gRPC call, client and server, over none at all.

    The server takes one call at a time and works in a thread, as the reference simulation's do.
    """
    return asyncio.run(_call_cpu_s())


async def _call_cpu_s() -> float:
    loop = asyncio.get_running_loop()
    one, slot = asyncio.Semaphore(1), StampedSlot(1)
    async with WorkerTelemetry(worker_id="0", port=0) as telemetry:
        with ThreadPoolExecutor(1) as pool:

            async def plain(request: bytes, _context: Any) -> bytes:
                async with one:
                    return await loop.run_in_executor(pool, _echo, request)

            async def stamped(request: bytes, _context: Any) -> bytes:
                async with slot:
                    return await loop.run_in_executor(pool, _echo, request)

            bare = _Pair(plain, lambda server: server, lambda channel: channel)
            full = _Pair(
                stamped,
                timed_server,
                lambda channel: telemetry.grpc_channel(channel, "renderer", endpoint="renderer-0"),
            )
            return await _difference(bare, full)


def _echo(request: bytes) -> bytes:
    return request


async def _difference(bare: _Pair, full: _Pair) -> float:
    """The median over rounds of what ``full`` costs more than ``bare``, seconds a call."""
    async with bare, full:
        await bare.calls(CALLS)
        await full.calls(CALLS)
        rounds = [await full.calls(CALLS) - await bare.calls(CALLS) for _ in range(ROUNDS)]
    return max(0.0, statistics.median(rounds))


class _Pair:
    """A server and a channel to it, in this process."""

    def __init__(
        self,
        handler: Callable[[bytes, Any], Awaitable[bytes]],
        timed: Callable[[grpc.aio.Server], grpc.aio.Server],
        recorded: Callable[[grpc.aio.Channel], grpc.aio.Channel],
    ) -> None:
        self._server = timed(grpc.aio.server())
        methods: dict[str, Any] = {"work": grpc.unary_unary_rpc_method_handler(handler)}
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("bench.Service", methods),)
        )
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._channel = recorded(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        self._call: Any = self._channel.unary_unary(_METHOD)

    async def __aenter__(self) -> None:
        await self._server.start()

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()
        await self._server.stop(None)

    async def calls(self, n: int) -> float:
        """CPU-seconds of one of ``n`` calls, all threads of this process."""
        began = process_time()
        for _ in range(n):
            await self._call(b"x")
        return (process_time() - began) / n
