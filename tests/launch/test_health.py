"""Asking real servers whether they are ready."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import grpc.aio
import pytest
from grpc_health.v1 import health as health_service
from grpc_health.v1 import health_pb2, health_pb2_grpc

from rolltop.errors import LaunchError
from rolltop.launch import health
from rolltop.launch.health import is_healthy, until_healthy
from rolltop.model.plan import HealthCheck, HealthKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TCP = HealthCheck(HealthKind.TCP)
GRPC = HealthCheck(HealthKind.GRPC)
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(autouse=True)
def proxies(monkeypatch):
    """A proxy in the environment must not come between us and our own processes."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "grpc_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)


async def test_no_check_is_no_question():
    await until_healthy(HealthCheck(), None)


async def test_a_check_needs_a_port():
    with pytest.raises(LaunchError, match="tcp health check needs a port") as caught:
        await until_healthy(TCP, None)
    assert "{port}" in str(caught.value.hint)


@pytest.mark.parametrize("kind", [HealthKind.TCP, HealthKind.HTTP, HealthKind.GRPC])
async def test_a_closed_port_is_not_ready(kind, unused_tcp_port):
    assert not await is_healthy(HealthCheck(kind), unused_tcp_port)


async def test_a_port_is_open_when_it_listens():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not await is_healthy(TCP, port)
        server.listen()
        assert await is_healthy(TCP, port)


async def test_it_is_asked_until_it_is_ready(unused_tcp_port):
    asking = asyncio.create_task(until_healthy(TCP, unused_tcp_port))
    await asyncio.sleep(0.1)
    assert not asking.done()
    with socket.create_server(("127.0.0.1", unused_tcp_port)):
        await asking


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", False),
        (b"HTTP/1.1\r\n", False),
        (b"220 smtp.example ESMTP\r\n", False),
        (b"\x00\xff" * 100, False),
        (b"x" * 200_000, False),
        (b"", False),
    ],
)
async def test_http_is_ready_with_2xx(answer, ready):
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await is_healthy(HealthCheck(HealthKind.HTTP, "/-/ready?x"), port) is ready
    assert asked[0].startswith(f"GET /-/ready?x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode())


@pytest.mark.parametrize("kind", [HealthKind.HTTP, HealthKind.GRPC])
async def test_a_server_that_says_nothing_is_not_ready(monkeypatch, kind):
    monkeypatch.setattr(health, "_ANSWER_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not await is_healthy(HealthCheck(kind), server.getsockname()[1])


@pytest.fixture
async def servicer() -> AsyncIterator[tuple[health_service.aio.HealthServicer, int]]:
    servicer = health_service.aio.HealthServicer()
    server = grpc.aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield servicer, port
    await server.stop(None)


async def test_grpc_is_ready_when_it_serves(servicer):
    service, port = servicer
    await service.set("", NOT_SERVING)
    assert not await is_healthy(GRPC, port)
    asking = asyncio.create_task(until_healthy(GRPC, port))
    await service.set("", SERVING)
    await asking


async def test_grpc_without_a_health_service_is_not_ready():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    assert not await is_healthy(GRPC, port)
    await server.stop(None)
