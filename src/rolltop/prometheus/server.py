"""A Prometheus process from outside: whether it is ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rolltop.errors import PrometheusError
from rolltop.logs import tail
from rolltop.prometheus.query import Prometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rolltop.prometheus.transport import Transport

_FIRST_PAUSE_S = 0.01
_LAST_PAUSE_S = 0.2
_REQUEST_TIMEOUT_S = 2.0
_TAIL_LINES = 5


def wait_ready(
    url: str,
    timeout_s: float,
    *,
    is_alive: Callable[[], bool] = lambda: True,
    log: Path | None = None,
    transport: Transport | None = None,
) -> None:
    """Return once the server at ``url`` can be asked.

    Args:
        url: Its address.
        timeout_s: How long it may take: seconds for a short run, longer for a long log to replay.
        is_alive: Whether its process still runs; asked between two tries.
        log: Where it writes, for the message if it fails.
        transport: What carries the requests, HTTP by default.

    Raises:
        PrometheusError: It ended, or is not ready in time; the message has its last log lines.
    """
    until = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    with Prometheus(url, timeout_s=_REQUEST_TIMEOUT_S, transport=transport) as prometheus:
        while not prometheus.ready():
            if not is_alive():
                raise PrometheusError(
                    f"Prometheus ended before it was ready{_says(log)}", hint=_hint(log)
                )
            if time.monotonic() >= until:
                raise PrometheusError(
                    f"Prometheus at {url} is not ready after {timeout_s:g} s{_says(log)}",
                    hint=_hint(log),
                )
            time.sleep(pause)
            pause = min(_LAST_PAUSE_S, pause * 2)


def _says(log: Path | None) -> str:
    said = tail(log, _TAIL_LINES) if log is not None else ()
    return ": " + " | ".join(said) if said else ""


def _hint(log: Path | None) -> str | None:
    return f"its log is {log}" if log is not None else None
