"""Somebody's simulator with gRPC: balloons drift with a wind that a service computes.

Both sides are measured: the worker's channel records its calls, the server says how long a
request waited and was served. ``python weather_grpc.py`` prints where the time of a call went.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import grpc
import grpc.aio
from rolltop_instrument import StampedExecutor, WorkerTelemetry
from rolltop_instrument.grpc_server import ServerTimingInterceptor

STEPS = 15
BALLOONS = 4


def wind(height: float) -> float:
    """Metres a second at a height, slowly on purpose."""
    return sum((height + n) % 7.0 - 3.0 for n in range(20_000)) / 20_000


async def serve(executor: StampedExecutor) -> tuple[grpc.aio.Server, int]:
    """The weather service: requests take turns on one thread."""

    async def get_wind(request: bytes, _context: Any) -> bytes:
        (height,) = struct.unpack("d", request)
        return struct.pack("d", await executor.run(wind, height))

    server = grpc.aio.server(interceptors=[ServerTimingInterceptor()])
    methods: dict[str, Any] = {"GetWind": grpc.unary_unary_rpc_method_handler(get_wind)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Weather", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def fly(telemetry: WorkerTelemetry, get_wind: Any, height: float) -> float:
    """One rollout: where the balloon is after all steps, in metres."""
    place = 0.0
    async with telemetry.rollout():
        for _ in range(STEPS):
            with telemetry.step():
                (speed,) = struct.unpack("d", await get_wind(struct.pack("d", height)))
                place += speed
    return place


async def simulate() -> str:
    """All balloons at once; returns the page as it is at the end."""
    with StampedExecutor(1) as executor:
        server, port = await serve(executor)
        async with WorkerTelemetry.from_environment() as telemetry:
            address = f"127.0.0.1:{port}"
            bare = grpc.aio.insecure_channel(address)
            async with telemetry.grpc_channel(bare, "weather", endpoint="weather-0") as channel:
                get_wind: Any = channel.unary_unary("/Weather/GetWind")
                heights = range(0, 1000 * BALLOONS, 1000)
                await asyncio.gather(*(fly(telemetry, get_wind, float(h)) for h in heights))
            page = telemetry.render()
        await server.stop(None)
    return page


def main() -> None:
    """Run, and show where the time of the calls went."""
    page = asyncio.run(simulate())
    shown = ("rolltop_rpc_calls", "rolltop_rpc_endpoint", "alpasim_rollouts_total")
    print("\n".join(line for line in page.splitlines() if line.startswith(shown)))


if __name__ == "__main__":
    main()
