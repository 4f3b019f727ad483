"""Profiles of the event loop and of the garbage collector, read off the loop's thread.

The loop's selector is wrapped: the wrapper adds up how long it waits and how long it only looks.
All other time is work. The page's thread reads the sums and adds what has passed since, so that a
callback that blocks the loop shows as work while it still runs.

A loop looks several times for each call, for microseconds: of these looks one in seven is timed and
stands for all, unless it took so long that it is no look like the others.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from rolltop_instrument._guest import warn

_LOOKS = 7
"""Looks that one stands for; a prime, since calls come in patterns of a few looks."""


_LONG_LOOK_S = 1e-3
"""A look takes microseconds; one that takes this was preempted, and stands for itself alone."""


class LoopTimes(NamedTuple):
    """Seconds since the profile began."""

    idle_s: float
    poll_s: float
    work_s: float


class _Sums:
    """What the wrapper of a selector adds up; one that is left over adds to its own."""

    __slots__ = ("idle", "poll_s")

    def __init__(self) -> None:
        self.idle: tuple[float, float | None] = (0.0, None)
        """Seconds until now, and since when it waits: one object, as another thread reads it."""
        self.poll_s = 0.0


class LoopProfile:
    """Splits a loop's time into idle, poll and work.

    Args:
        clock: Seconds that only grow.
        looks: How many looks the last of them stands for.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter, looks: int = _LOOKS) -> None:
        self._clock = clock
        self._looks = looks
        self._selector: Any = None
        self._wrapper: Callable[..., Any] | None = None
        self._before: Callable[..., Any] | None = None
        self._began: float | None = None
        self._sums = _Sums()
        self._said = LoopTimes(0.0, 0.0, 0.0)
        self.reason: str | None = "not started"

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin on ``loop``, from its own thread. A loop without a selector has no profile."""
        selector: Any = getattr(loop, "_selector", None)
        if selector is None or not callable(getattr(selector, "select", None)):
            self.reason = f"{type(loop).__module__}.{type(loop).__qualname__} has no selector"
            warn("no event-loop profile: %s", self.reason)
            return
        before = getattr(selector, "__dict__", {}).get("select")
        self._sums = _Sums()
        wrapper = self._wrap(selector.select, self._sums)
        try:
            selector.select = wrapper
        except AttributeError:
            self.reason = f"the selector {type(selector).__qualname__} cannot be wrapped"
            warn("no event-loop profile: %s", self.reason)
            return
        self._selector, self._wrapper, self.reason = selector, wrapper, None
        self._before = before
        self._said = LoopTimes(0.0, 0.0, 0.0)
        self._began = self._clock()

    def _wrap(self, select: Callable[..., Any], sums: _Sums) -> Callable[..., Any]:
        """A ``select`` that keeps the times; each line of it runs several times for each call."""
        clock = self._clock
        idle_s = 0.0
        looks = self._looks

        def timed_select(timeout: float | None = None) -> Any:
            nonlocal idle_s, looks
            if timeout == 0:
                looks -= 1
                if looks:
                    return select(timeout)
                looks = self._looks
                began = clock()
                events = select(timeout)
                seconds = clock() - began
                sums.poll_s += seconds * looks if seconds < _LONG_LOOK_S else seconds
                return events
            began = clock()
            sums.idle = idle_s, began
            try:
                return select(timeout)
            finally:
                idle_s += clock() - began
                sums.idle = idle_s, None

        return timed_select

    def read(self) -> LoopTimes | None:
        """The times until now, the phase that is under way included; None without a profile.

        For one reader at a time: what it said last is the least that it says next.
        """
        began = self._began
        if began is None:
            return None
        now = self._clock()
        (idle_s, idle_since), poll_s = self._sums.idle, self._sums.poll_s
        if idle_since is not None:
            idle_s += max(0.0, now - idle_since)
        times = idle_s, poll_s, now - began - idle_s - poll_s
        # The loop goes on meanwhile, a look under way is work until it ends, and a timed one stands
        # for six that may have been shorter, by less than a millisecond each: a sum may be too
        # large by that much, but no counter goes back.
        self._said = LoopTimes(*map(max, self._said, times))
        return self._said

    def stop(self) -> LoopTimes | None:
        """End, give the selector back as it was, and return the final times."""
        final = self.read()
        selector, self._selector, self._began = self._selector, None, None
        wrapper, self._wrapper = self._wrapper, None
        if selector is None or vars(selector).get("select") is not wrapper:
            # Somebody wrapped it after us: our wrapper stays in, and adds to sums nobody reads.
            return final
        if self._before is None:
            del selector.select
        else:
            selector.select = self._before
        return final


class GcTimes(NamedTuple):
    """Garbage collections since the profile began."""

    total_s: float
    max_s: float
    collections: int


class GcProfile:
    """Counts and times collections; the longest one is of the last one to two windows.

    Args:
        window_s: How long a window is.
        clock: Seconds that only grow.
    """

    def __init__(self, window_s: float = 30.0, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._window_s = window_s
        self._began: float | None = None
        self._total = 0.0
        self._count = 0
        self._window = 0
        self._max = (0.0, 0.0)

    def start(self) -> None:
        """Begin."""
        gc.callbacks.append(self._on_phase)

    def stop(self) -> None:
        """End and take the hook out again."""
        if self._on_phase in gc.callbacks:
            gc.callbacks.remove(self._on_phase)

    def _on_phase(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
        elif self._began is not None:
            now = self._clock()
            seconds = now - self._began
            self._began = None
            self._total += seconds
            self._count += 1
            before, current = self._turn(now)
            self._max = (before, max(current, seconds))

    def _turn(self, now: float) -> tuple[float, float]:
        """The longest of the window before and of the current one."""
        window = int(now // self._window_s)
        if window != self._window:
            before = self._max[1] if window == self._window + 1 else 0.0
            self._window, self._max = window, (before, 0.0)
        return self._max

    def read(self) -> GcTimes:
        """The totals until now."""
        return GcTimes(self._total, max(self._turn(self._clock())), self._count)
