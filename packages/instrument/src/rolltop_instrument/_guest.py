"""Telemetry is a guest: a fault of ours is logged once and never reaches the host."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

LOGGER = logging.getLogger("rolltop_instrument")


class _Faults:
    """Which places have already been reported, and whether faults are re-raised (our own tests)."""

    def __init__(self) -> None:
        self.reraise = False
        self.seen: set[str] = set()


_FAULTS = _Faults()


def reraise_faults(on: bool) -> None:
    """Switch for tests: let internal faults through instead of logging them once."""
    _FAULTS.reraise = on
    _FAULTS.seen.clear()


def fault(place: str, error: BaseException) -> None:
    """Report an internal fault, once per place.

    Args:
        place: What could not be recorded, in words of the host.
        error: What was raised inside of us.

    Raises:
        BaseException: ``error``, only under ``reraise_faults(True)``.
    """
    if _FAULTS.reraise:
        raise error
    if place not in _FAULTS.seen:
        _FAULTS.seen.add(place)
        LOGGER.warning("telemetry fault in %s (reported once): %r", place, error, exc_info=error)


def guarded(method: Callable[P, None]) -> Callable[P, None]:
    """A method that the host calls: what goes wrong in it, wrong arguments too, stays here."""

    @wraps(method)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault(method.__name__, problem)

    return quiet


def warn(message: str, *args: object) -> None:
    """One warning about something that the telemetry goes on without."""
    LOGGER.warning(message, *args)
