"""The life of a server process: bind, get ready, serve until told to stop, and say how it ended."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HOST = "127.0.0.1"
OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),  # a stream may be silent for minutes: pings are wanted
)
_log = logging.getLogger(__name__)


class ServeError(RuntimeError):
    """A server that cannot serve; the message says why and what to do."""


@dataclass
class Stop:
    """Asked to stop, and with which exit status; the first request counts."""

    status: int = 0
    _event: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self, status: int = 0) -> None:
        """Ask for the end of the process."""
        if not self._event.is_set():
            self.status = status
            self._event.set()

    async def wait(self) -> int:
        """Wait until asked; return the exit status."""
        await self._event.wait()
        return self.status

    def on_signals(self) -> None:
        """Let SIGTERM and SIGINT ask for a clean end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request)


def set_up_logging() -> None:
    """Log to stderr, with the time in UTC; of other libraries only their warnings."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter(
        "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("rolltop_refsim").setLevel(logging.INFO)


async def serve(
    port: int,
    register: Callable[[grpc.aio.Server], None],
    *,
    stop: Stop,
    warm_up: Callable[[], Awaitable[None]] | None = None,
    started: Callable[[int], None] | None = None,
    grace_s: float = 2.0,
) -> int:
    """Serve on ``127.0.0.1:port`` until ``stop``; return the exit status.

    The health service answers from the start and says SERVING once ``warm_up`` is done.
    ``started`` is told the port (useful with port 0). At the end, calls in progress get
    ``grace_s`` seconds.

    Raises:
        ServeError: the port is taken.
    """
    server = grpc.aio.server(options=OPTIONS)
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    register(server)
    bound = _bind(server, port)
    await healthy.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    await server.start()
    try:
        if warm_up is not None:
            await warm_up()
        await healthy.set("", health_pb2.HealthCheckResponse.SERVING)
        _log.info("serving on %s:%d", HOST, bound)
        if started is not None:
            started(bound)
        return await stop.wait()
    finally:
        await healthy.enter_graceful_shutdown()
        await server.stop(grace_s)


def _bind(server: grpc.aio.Server, port: int) -> int:
    try:
        bound = server.add_insecure_port(f"{HOST}:{port}")
    except RuntimeError as error:
        raise ServeError(f"port {port} of {HOST} is taken; choose another one") from error
    if bound == 0:
        raise ServeError(f"port {port} of {HOST} is taken; choose another one")
    return bound
