"""Ask a process whether it is ready: TCP, HTTP or gRPC's health service."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from rolltop.errors import LaunchError
from rolltop.model.plan import HealthKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rolltop.model.plan import HealthCheck

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 0.5
_ANSWER_TIMEOUT_S = 5.0
_CHANNEL_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1))


async def until_healthy(check: HealthCheck, port: int | None, host: str = "127.0.0.1") -> None:
    """Return once the process says that it is ready; ask first every 20 ms, at last every 500.

    The caller sets the time limit. A closed port costs one refused connection an asking,
    gRPC is spoken only once the port is open.

    Raises:
        LaunchError: if the check needs a port and there is none.
    """
    if check.kind is HealthKind.NONE:
        return
    if port is None:
        raise LaunchError(
            f"a {check.kind} health check needs a port",
            hint="use {port} in the command, or health.kind=none",
        )
    wait_s = FIRST_WAIT_S
    while not await is_healthy(check, port, host):
        await asyncio.sleep(wait_s)
        wait_s = min(1.5 * wait_s, LONGEST_WAIT_S)


async def is_healthy(check: HealthCheck, port: int, host: str = "127.0.0.1") -> bool:
    """Ask once: an open port, an HTTP status of 2xx, or gRPC's SERVING."""
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            if check.kind is HealthKind.HTTP:
                return await _http_ok(host, port, check.path)
            async with _connection(host, port):
                pass
            return check.kind is not HealthKind.GRPC or await _grpc_serving(host, port)
    except (OSError, TimeoutError, ValueError):  # ValueError: a line without an end
        return False


@contextlib.asynccontextmanager
async def _connection(
    host: str, port: int
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _http_ok(host: str, port: int, path: str) -> bool:
    """GET ``path``, by hand: no proxy of the environment comes between, no client is imported."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    async with _connection(host, port) as (reader, writer):
        writer.write(request.encode("ascii", "replace"))
        await writer.drain()
        status_line = await reader.readline()
    version, _, rest = status_line.partition(b" ")
    return version.startswith(b"HTTP/1.") and rest[:1] == b"2"


async def _grpc_serving(host: str, port: int) -> bool:
    import grpc
    import grpc.aio
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async with grpc.aio.insecure_channel(f"{host}:{port}", options=_CHANNEL_OPTIONS) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_ANSWER_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
