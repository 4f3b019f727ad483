"""One side of a gRPC call, with telemetry or without, for the bench of what a call costs.

``python -m bench.call_peer server bare|full`` says its port and serves until its input ends;
``python -m bench.call_peer client bare|full PORT`` makes as many calls as each line of its input
says.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
from rolltop_instrument import StampedSlot, WorkerTelemetry
from rolltop_instrument.grpc_server import timed_server

_SERVICE, _METHOD = "bench.Service", "work"


def _work(request: bytes) -> bytes:
    return request


async def _serve(*, telemetry: bool) -> None:
    """Serve one call at a time, in a thread, until the input ends."""
    loop = asyncio.get_running_loop()
    turn: Any = StampedSlot(1) if telemetry else asyncio.Semaphore(1)
    server = timed_server(grpc.aio.server()) if telemetry else grpc.aio.server()
    with ThreadPoolExecutor(1) as pool:

        async def handle(request: bytes, _context: Any) -> bytes:
            async with turn:
                return await loop.run_in_executor(pool, _work, request)

        methods: dict[str, Any] = {_METHOD: grpc.unary_unary_rpc_method_handler(handle)}
        handler = grpc.method_handlers_generic_handler(_SERVICE, methods)
        server.add_generic_rpc_handlers((handler,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(port, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)
        await server.stop(None)


async def _call(port: str, *, telemetry: bool) -> None:
    """Make the calls that are asked for, one after the other."""
    loop = asyncio.get_running_loop()
    async with WorkerTelemetry(worker_id="0", port=0, enabled=telemetry) as worker:
        channel: Any = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        if telemetry:
            channel = worker.grpc_channel(channel, "renderer", endpoint="renderer-0")
        call = channel.unary_unary(f"/{_SERVICE}/{_METHOD}")
        print("ready", flush=True)
        while asked := await loop.run_in_executor(None, sys.stdin.readline):
            for _ in range(int(asked)):
                await call(b"x")
            print("done", flush=True)
        await channel.close()


if __name__ == "__main__":
    side, with_telemetry = sys.argv[1], sys.argv[2] == "full"
    if side == "server":
        asyncio.run(_serve(telemetry=with_telemetry))
    else:
        asyncio.run(_call(sys.argv[3], telemetry=with_telemetry))
