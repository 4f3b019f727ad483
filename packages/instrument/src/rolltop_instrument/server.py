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
from dataclasses import dataclass
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


@dataclass
class Stamps:
    """What a call spent in the server, in seconds; sums where it was queued several times."""

    queue_s: float = 0.0
    service_s: float = 0.0
    stamped: bool = False

    def add(self, *, queue_s: float, service_s: float) -> None:
        """Add one turn: how long it waited and how long it was served."""
        self.queue_s += queue_s
        self.service_s += service_s
        self.stamped = True


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
        turn = _Turn(current_stamps())
        context = contextvars.copy_context()
        work = functools.partial(context.run, fn, *args, **kwargs)
        try:
            return await asyncio.wrap_future(self._pool.submit(turn.timed, work))
        finally:
            turn.close()

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


class _Turn:
    """One piece of work: submitted now, started and ended in a thread of the pool."""

    __slots__ = ("closed", "ended", "stamps", "started", "submitted")

    def __init__(self, stamps: Stamps) -> None:
        self.stamps = stamps
        self.started: float | None = None
        self.ended: float | None = None
        self.closed = False
        self.submitted = perf_counter()

    def timed(self, work: Callable[[], T]) -> T:
        self.started = perf_counter()
        try:
            return work()
        finally:
            self.ended = perf_counter()

    def close(self) -> None:
        """Add to the stamps what is known when the caller goes on, be it by a cancellation."""
        now = perf_counter()
        started = now if self.started is None else self.started
        ended = now if self.ended is None else self.ended
        self.stamps.add(queue_s=started - self.submitted, service_s=max(0.0, ended - started))


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
        self._held: WeakKeyDictionary[asyncio.Task[Any], list[tuple[Stamps, float, float]]] = (
            WeakKeyDictionary()
        )

    async def __aenter__(self) -> Self:
        """Wait for a place."""
        stamps = current_stamps()
        asked = perf_counter()
        try:
            await self._semaphore.acquire()
        except BaseException:
            stamps.add(queue_s=perf_counter() - asked, service_s=0.0)
            raise
        got = perf_counter()
        task = asyncio.current_task()
        if task is not None:
            self._held.setdefault(task, []).append((stamps, asked, got))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the place back."""
        left = perf_counter()
        task = asyncio.current_task()
        self._semaphore.release()
        mine = None if task is None else self._held.get(task)
        if mine:  # else it is left in another task than it was entered in, and nothing is known
            stamps, asked, got = mine.pop()
            stamps.add(queue_s=got - asked, service_s=left - got)


def __getattr__(name: str) -> Any:
    """The interceptor, which needs gRPC, from here too."""
    if name == "ServerTimingInterceptor":
        from rolltop_instrument.grpc_server import ServerTimingInterceptor

        return ServerTimingInterceptor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
