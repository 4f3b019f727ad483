"""One side of a gRPC call, with telemetry or without, for the bench of what a call costs.

``python -m bench.call_peer server`` says its port and serves until its input ends;
``python -m bench.call_peer client PORT`` makes calls as each line of its input says: ``full 60``
with all telemetry on both sides, the adding-up of what the calls left included, ``bare 60`` without
any. Both kinds share processes, channel and
server, because two processes that do the same differ by more than what is measured.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
from rolltop_instrument import StampedSlot, WorkerTelemetry
from rolltop_instrument.grpc_server import timed_server

_SERVICES = {"full": "bench.Full", "bare": "bench.Bare"}
_METHOD = "work"


def _work(request: bytes) -> bytes:
    return request


async def _serve() -> None:
    """Serve one call at a time, in a thread, until the input ends."""
    loop = asyncio.get_running_loop()
    server = grpc.aio.server()
    with ThreadPoolExecutor(1) as pool:
        for kind, registers in {"full": timed_server(server), "bare": server}.items():
            turn = StampedSlot(1) if kind == "full" else asyncio.Semaphore(1)
            methods: dict[str, Any] = {
                _METHOD: grpc.unary_unary_rpc_method_handler(_handler(turn, pool))
            }
            handler = grpc.method_handlers_generic_handler(_SERVICES[kind], methods)
            registers.add_generic_rpc_handlers((handler,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(port, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        await server.stop(None)


def _handler(turn: Any, pool: ThreadPoolExecutor) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def handle(request: bytes, _context: Any) -> bytes:
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(pool, _work, request)

    return handle


async def _call(port: str) -> None:
    """Make the calls that are asked for, one after the other."""
    loop = asyncio.get_running_loop()
    async with WorkerTelemetry(worker_id="0", port=0) as worker:
        profile = worker._loop_profile
        profile.stop()
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        channels = {
            "full": worker.grpc_channel(channel, "renderer", endpoint="renderer-0"),
            "bare": channel,
        }
        calls: dict[str, Any] = {
            kind: channels[kind].unary_unary(f"/{service}/{_METHOD}")
            for kind, service in _SERVICES.items()
        }
        print("ready", flush=True)
        while asked := await loop.run_in_executor(None, sys.stdin.readline):
            kind, n = asked.split()
            if kind == "full":
                profile.start(loop)
            for _ in range(int(n)):
                await calls[kind](b"x")
            profile.stop()
            worker._book.add_up()
            print("done", flush=True)
        await channel.close()


if __name__ == "__main__":
    asyncio.run(_serve() if sys.argv[1] == "server" else _call(sys.argv[2]))
