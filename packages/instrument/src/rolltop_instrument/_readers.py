"""Who has read a worker's page, and the wait at the end for the last values to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Literal

Reader = Literal["own", "central"]
"""The run's own Prometheus, or the central one, which asks with ``from=central``."""


class Readers:
    """When each kind of reader last began to read a page that it then got."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.seen: set[Reader] = set()
        self.last_read: dict[Reader, float] = {}
        self.on_read: Callable[[], None] | None = None

    def comes(self, reader: Reader) -> float:
        """``reader`` asks for the page (from the page's threads).

        Returns:
            When it does, for ``has_read``.
        """
        began = self.clock()
        self.seen.add(reader)
        return began

    def has_read(self, reader: Reader, began: float) -> None:
        """``reader`` got a page whose making began at ``began`` (from the page's threads)."""
        self.last_read[reader] = max(began, self.last_read.get(reader, began))
        notify = self.on_read
        if notify is not None:
            notify()

    async def linger(self, patience_s: Mapping[Reader, float], *, expect_own: bool) -> None:
        """Wait until each reader that has ever come has read again from now on.

        Args:
            patience_s: For how long at the most, per reader, in seconds.
            expect_own: Wait for the run's own reader even if it has not come so far.
        """
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(woken.set)

        ended = self.clock()
        awaited: set[Reader] = {*self.seen, "own"} if expect_own else set(self.seen)
        self.on_read = wake
        try:
            while waits := self._waits(awaited, ended, patience_s):
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), min(waits))
                woken.clear()
        finally:
            self.on_read = None

    def _waits(
        self, awaited: set[Reader], ended: float, patience_s: Mapping[Reader, float]
    ) -> list[float]:
        """Seconds that are left for each reader who still lacks the last values."""
        now = self.clock()
        left = (
            ended + patience_s[reader] - now
            for reader in awaited
            if self.last_read.get(reader, ended) <= ended
        )
        return [seconds for seconds in left if seconds > 0]
