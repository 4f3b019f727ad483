"""Stamps of waiting and serving, made where work is queued and where it starts.

A bare interceptor sees neither: it sees the whole call. So a service gives its work to a
``StampedExecutor`` (threads) or holds a ``StampedSlot`` (coroutines) while it serves; both add to
the stamps of the current call. Nothing here needs gRPC; ``ServerTimingInterceptor`` carries the
stamps home in trailing metadata, other transports read ``current_stamps()``.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from rolltop_instrument.grpc_server import ServerTimingInterceptor

__all__ = [
    "ServerTimingInterceptor",
    "StampedExecutor",
    "StampedSlot",
    "Stamps",
    "current_stamps",
    "stamped_call",
]

P = ParamSpec("P")
T = TypeVar("T")


class Turn:
    """One turn of a call: asked for, begun, ended."""

    __slots__ = ("asked", "began", "ended")

    def __init__(self) -> None:
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

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def ask(self) -> Turn:
        """The call asks for a turn and waits for it from now."""
        turn = Turn()
        self._turns.append(turn)
        return turn

    @property
    def stamped(self) -> bool:
        """Whether any turn was asked for; if not, the call says nothing."""
        return bool(self._turns)

    @property
    def queue_s(self) -> float:
        """Seconds of waiting for turns."""
        now = perf_counter()
        return sum(_first(turn.began, turn.ended, now) - turn.asked for turn in self._turns)

    @property
    def service_s(self) -> float:
        """Seconds of being served."""
        now = perf_counter()
        begun = ((turn.began, turn.ended) for turn in self._turns)
        return sum(_first(ended, now) - began for began, ended in begun if began is not None)


def _first(*times: float | None) -> float:
    """The first time that is known."""
    return next(time for time in times if time is not None)


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
    """A semaphore of ``n`` places that stamps waiting for a place and holding it.

    Args:
        n: Calls that may hold a place at once.

    Raises:
        ValueError: ``n`` is less than 1.
    """

    def __init__(self, n: int = 1) -> None:
        if n < 1:
            raise ValueError(f"a slot needs at least one place, not {n}")
        self._semaphore = asyncio.Semaphore(n)
        self._held: WeakKeyDictionary[asyncio.Task[Any], list[Turn]] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        """Wait for a place."""
        turn = current_stamps().ask()
        try:
            await self._semaphore.acquire()
        except BaseException:
            turn.end()
            raise
        turn.begin()
        task = asyncio.current_task()
        if task is not None:
            self._held.setdefault(task, []).append(turn)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the place back."""
        task = asyncio.current_task()
        turns = None if task is None else self._held.get(task)
        if turns:  # else it is left in another task than it was entered in
            turns.pop().end()
        self._semaphore.release()


def __getattr__(name: str) -> Any:
    """The interceptor, which needs gRPC, from here too."""
    if name == "ServerTimingInterceptor":
        from rolltop_instrument._extras import require_grpc

        require_grpc()
        from rolltop_instrument.grpc_server import ServerTimingInterceptor

        return ServerTimingInterceptor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
