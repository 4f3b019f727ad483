"""Stamps of waiting and serving, made where work is queued and where it starts.

A bare interceptor sees neither: it sees the whole call. So a service gives its work to a
``StampedExecutor`` (threads) or holds a ``StampedSlot`` (coroutines) while it serves; both add to
the stamps of the current call. Nothing here needs gRPC: what carries the stamps home in trailing
metadata is in ``rolltop_instrument.grpc_server``; other transports read ``current_stamps()``.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import perf_counter
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

__all__ = [
    "StampedExecutor",
    "StampedSlot",
    "Stamps",
    "current_stamps",
    "stamped_call",
]

P = ParamSpec("P")
T = TypeVar("T")

_TURNS_KEPT = 64
"""Turns of one call that are kept apart."""


class Turn:
    """One turn of a call: asked for, begun, ended; of a slot if it holds a place of one."""

    __slots__ = ("asked", "began", "ended", "slot")

    def __init__(self, slot: StampedSlot | None = None) -> None:
        self.slot = slot
        self.began: float | None = None
        self.ended: float | None = None
        self.asked = perf_counter()

    def begin(self) -> None:
        """It is the call's turn: waiting ends, serving begins."""
        self.began = perf_counter()

    def end(self) -> None:
        """The turn is over, or the caller has given up waiting for it."""
        self.ended = perf_counter()


class Stamps:
    """What a call spent in the server, in seconds; sums where it had several turns.

    A turn that still lasts counts until now, so that a handler which aborts in the middle of
    being served sends home what it was served.
    """

    __slots__ = ("_past", "_turns")

    def __init__(self) -> None:
        self._past = (0.0, 0.0)
        self._turns: list[Turn] = []

    def ask(self, slot: StampedSlot | None = None) -> Turn:
        """The call asks for a turn (of a slot) and waits for it from now."""
        if len(self._turns) >= _TURNS_KEPT:
            self._forget_ended()
        turn = Turn(slot)
        self._turns.append(turn)
        return turn

    def leave(self, slot: StampedSlot) -> None:
        """The call gives back the place of a slot that it took last, if it holds one."""
        for turn in reversed(self._turns):
            if turn.slot is slot and turn.began is not None and turn.ended is None:
                turn.ended = perf_counter()
                return

    @property
    def stamped(self) -> bool:
        """Whether any turn was asked for; if not, the call says nothing."""
        return bool(self._turns)

    @property
    def queue_s(self) -> float:
        """Seconds of waiting for turns."""
        return self.times()[0]

    @property
    def service_s(self) -> float:
        """Seconds of being served."""
        return self.times()[1]

    def times(self) -> tuple[float, float]:
        """Seconds of waiting for turns and of being served, as of now."""
        return self._add_up(self._turns)

    def _add_up(self, turns: list[Turn]) -> tuple[float, float]:
        queue_s, service_s = self._past
        now = perf_counter()
        for turn in turns:
            ended = now if turn.ended is None else turn.ended
            if turn.began is None:
                queue_s += ended - turn.asked
            else:
                queue_s += turn.began - turn.asked
                service_s += ended - turn.began
        return queue_s, service_s

    def _forget_ended(self) -> None:
        """Keep of the turns that are over only their sums: a task may serve without end."""
        ended = [turn for turn in self._turns if turn.ended is not None]
        self._past = self._add_up(ended)
        self._turns = [turn for turn in self._turns if turn not in ended]


_STAMPS: contextvars.ContextVar[Stamps | None] = contextvars.ContextVar(
    "rolltop_stamps", default=None
)


def current_stamps() -> Stamps:
    """The stamps of the call that this code serves; begun here when nothing has begun them."""
    stamps = _STAMPS.get()
    if stamps is None:
        stamps = begin_stamps()
    return stamps


def begin_stamps() -> Stamps:
    """Begin fresh stamps in the current context (a task's own, as gRPC gives each call)."""
    stamps = Stamps()
    _STAMPS.set(stamps)
    return stamps


@contextmanager
def stamped_call() -> Iterator[Stamps]:
    """A call's scope, for a transport that serves many calls in one task."""
    stamps = Stamps()
    token = _STAMPS.set(stamps)
    try:
        yield stamps
    finally:
        _STAMPS.reset(token)


class StampedExecutor:
    """A thread pool that stamps submit, start and end of each piece of work.

    Args:
        max_workers: Pieces of work that run at once.
    """

    def __init__(self, max_workers: int = 1) -> None:
        self._pool = ThreadPoolExecutor(max_workers, thread_name_prefix="stamped")

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn`` in the pool, in a copy of the caller's context.

        Raises:
            BaseException: Whatever ``fn`` raises.
            RuntimeError: The executor was shut down.
        """
        turn = current_stamps().ask()
        context = contextvars.copy_context()
        work = functools.partial(context.run, fn, *args, **kwargs)
        try:
            return await asyncio.wrap_future(self._pool.submit(_timed, turn, work))
        finally:
            if (
                turn.ended is None
            ):  # cancelled: what still waits or runs is not this call's any more
                turn.end()

    def shutdown(self, *, wait: bool = True) -> None:
        """Take no more work; with ``wait``, return when the running work has ended."""
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def __enter__(self) -> Self:
        """Use as a context that shuts the pool down."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Shut the pool down."""
        self.shutdown()


def _timed(turn: Turn, work: Callable[[], T]) -> T:
    turn.begin()
    try:
        return work()
    finally:
        turn.end()


class StampedSlot:
    """``n`` places that calls hold in turn; stamps waiting for a place and holding it.

    A place that is given back goes to whoever has waited longest. It belongs to one event loop.

    Args:
        n: Calls that may hold a place at once.

    Raises:
        ValueError: ``n`` is less than 1.
    """

    def __init__(self, n: int = 1) -> None:
        if n < 1:
            raise ValueError(f"a slot needs at least one place, not {n}")
        self._free = n
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> Self:
        """Wait for a place."""
        turn = (_STAMPS.get() or begin_stamps()).ask(self)
        if self._free:
            self._free -= 1
            turn.began = turn.asked
            return self
        try:
            await self._wait()
        except BaseException:
            turn.end()
            raise
        turn.begin()
        return self

    async def _wait(self) -> None:
        """Stand in the queue; an error leaves it, and passes on a place that came with it."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except BaseException:
            if place.done() and not place.cancelled():
                self._give_back()
            else:
                with suppress(ValueError):
                    self._waiting.remove(place)
            raise

    def _give_back(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # it may be cancelled in this very turn
                place.set_result(None)
                return
        self._free += 1

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the place back."""
        stamps = _STAMPS.get()
        if stamps is not None:  # else it is left in another task than it was entered in
            stamps.leave(self)
        if self._waiting:
            self._give_back()
        else:
            self._free += 1
