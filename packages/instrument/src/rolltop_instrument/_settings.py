"""What a host or a launcher says of a worker's telemetry: what makes no sense is one warning."""

from __future__ import annotations

from math import inf
from typing import Any

from rolltop_instrument._guest import warn

MAX_KINDS = 64
"""Kinds of scheduling that get series of their own."""
_LARGEST_PORT = 65535
_LONGEST_NUMBER = 10


def interval_s(name: str, said: Any) -> float:
    """The scrape interval in seconds, as the host or the launcher says it."""
    try:
        seconds = float(said)
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if 0 < seconds < inf:
        return seconds
    warn("%s=%r is not a number of seconds; using 1", name, said)
    return 1.0


def page_port_of(name: str, said: str | None) -> int | None:
    """The page's port as the launcher says it; None where it says none."""
    if said is None:
        return None
    if said.isascii() and said.isdecimal() and len(said) < _LONGEST_NUMBER:
        port = int(said)
        if port <= _LARGEST_PORT:
            return port
    warn("%s=%r is not a port; going on without a page", name, said)
    return None


def kinds_of(said: Any) -> tuple[str, ...]:
    """Kinds of scheduling as the host names them."""
    if isinstance(said, str):
        return (said,)
    try:
        return tuple(map(str, said))[:MAX_KINDS]
    except TypeError:
        warn("renderer_kinds=%r are no names; going on without", said)
        return ()
