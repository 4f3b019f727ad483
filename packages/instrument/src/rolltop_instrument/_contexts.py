"""The context managers that a worker's code holds: a rollout, a timed block, a call."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Self

from rolltop_instrument._calls import CallSite, status_of
from rolltop_instrument._cells import LONGEST_S
from rolltop_instrument._guest import fault, guarded


class Timed:
    """Times a block and hands its seconds on if it ends without an exception."""

    __slots__ = ("_began", "_done", "_place")

    def __init__(self, place: str, done: Callable[[float], None]) -> None:
        self._place = place
        self._done = done
        self._began = 0.0

    def __enter__(self) -> Self:
        """Begin."""
        self._began = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record."""
        seconds = perf_counter() - self._began
        if error is None:
            try:
                self._done(seconds)
            except Exception as problem:  # noqa: BLE001 - never into the host
                fault(self._place, problem)


class Rollout:
    """A rollout under way.

    Args:
        began: Called when it begins.
        ended: Called when it ends: with its seconds, whether it failed, and ``first_wave``.

    Attributes:
        first_wave: It began part-way and is discarded: it counts apart when it succeeds. May be
            set while the rollout runs.
    """

    def __init__(
        self,
        began: Callable[[], None],
        ended: Callable[[float, bool, bool], None],
        *,
        first_wave: bool,
    ) -> None:
        self._on_begin = began
        self._on_end = ended
        self._began = 0.0
        self.first_wave = first_wave

    async def __aenter__(self) -> Self:
        """Begin."""
        self._on_begin()
        self._began = perf_counter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record; an exception goes on to the host."""
        seconds = perf_counter() - self._began
        self._on_end(seconds, error is not None, self.first_wave)


class Call:
    """A call that is not gRPC's, under way."""

    def __init__(self, site: CallSite | None) -> None:
        self._site = site
        self._server: tuple[float, float] | None = None
        self._began = 0.0

    @guarded
    def server_times(self, *, queue_s: float, service_s: float) -> None:
        """What the server says about this call, in seconds; nonsense is left out."""
        queue_s, service_s = float(queue_s), float(service_s)
        if 0 <= queue_s <= LONGEST_S and 0 <= service_s <= LONGEST_S:
            self._server = (queue_s, service_s)

    async def __aenter__(self) -> Self:
        """Begin."""
        if self._site is not None:
            try:
                self._site.begin()
            except Exception as problem:  # noqa: BLE001 - never into the host
                self._site = None
                fault("beginning a call", problem)
        self._began = perf_counter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record; an exception goes on to the host."""
        seconds = perf_counter() - self._began
        if self._site is None:
            return
        try:
            code = None if error is None else status_of(error)
            self._site.end(seconds, None, self._server, code)
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("recording a call", problem)
