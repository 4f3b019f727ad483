"""Connections that are silent for long."""

from __future__ import annotations

import asyncio

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rolltop_refsim.rpc.channel import OPTIONS
from rolltop_refsim.rpc.serving import serve

from .conftest import serving

PINGS_S = 1.0  # the least that gRPC takes
SILENCE_S = 4.5


async def test_a_silent_stream_is_kept_however_often_the_client_pings() -> None:
    """With gRPC's defaults a server ends such a connection at the third ping: "Too many pings"."""
    often = tuple((dict(OPTIONS) | {"grpc.keepalive_time_ms": int(1000 * PINGS_S)}).items())
    async with (
        serving(
            lambda stop, started: serve(0, lambda _: None, stop=stop, started=started)
        ) as server,
        grpc.aio.insecure_channel(server.address, options=often) as channel,
    ):
        stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        first = await stream.read()
        await asyncio.sleep(SILENCE_S)
        assert first.status == health_pb2.HealthCheckResponse.SERVING
        assert not stream.done()
        stream.cancel()
