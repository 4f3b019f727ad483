"""How a client speaks to a service: one channel per address, kept alive, no hidden retries."""

from __future__ import annotations

import grpc

OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """Open a channel to ``host:port``; it connects at its first call."""
    return grpc.aio.insecure_channel(address, options=OPTIONS)
