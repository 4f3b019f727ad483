"""Read a run's telemetry within one limit of time, and give it up when somebody asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from rolltop.errors import QueryError
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.transport import HttpTransport, TooLateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.model.series import Series
    from rolltop.prometheus.transport import Transport

T = TypeVar("T")
LIMIT_S = 20.0
"""For all questions of a report together; a healthy Prometheus needs a second or two."""
QUESTION_LIMIT_S = 5.0
LATE = "Prometheus did not answer in time"


class GivenUpError(BaseException):
    """Nobody waits for the answers any more.

    It is no ``Exception``: whoever goes on after a question that failed must not go on after this.
    """


class TimedSource:
    """A Prometheus to ask for a limited time; it may be used by several threads at once.

    The time counts from its making. After the first question without an answer in time every
    other fails at once: a server that hangs costs one wait, not one a question.

    Args:
        url: Where it is.
        limit_s: Seconds for all questions together.
        question_limit_s: Seconds for one of them.
        transport: What carries the requests, HTTP by default.
        monotonic: The clock, seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        limit_s: float = LIMIT_S,
        question_limit_s: float = QUESTION_LIMIT_S,
        transport: Transport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.late = False
        """Whether a question was not answered in time."""
        self._url = url
        self._question_limit_s = question_limit_s
        self._transport: Transport = transport or HttpTransport(url)
        self._monotonic = monotonic
        self._until_s = monotonic() + limit_s
        self._given_up = False

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        """Return what :meth:`Prometheus.query` does.

        Raises:
            QueryError: There was no answer, or none in time.
            GivenUpError: Nobody waits for it.
        """
        return self._ask(lambda prometheus: prometheus.query(promql, at))

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """Return what :meth:`Prometheus.query_range` does.

        Raises:
            QueryError: There was no answer, or none in time.
            GivenUpError: Nobody waits for it.
        """
        return self._ask(lambda prometheus: prometheus.query_range(promql, start_s, end_s, step_s))

    def give_up(self) -> None:
        """Let every question from now on raise :class:`GivenUpError`."""
        self._given_up = True

    def _ask(self, question: Callable[[Prometheus], T]) -> T:
        left_s = self._until_s - self._monotonic()
        if self._given_up:
            raise GivenUpError
        if self.late or left_s <= 0:
            self.late = True
            raise QueryError(LATE)
        limit_s = min(self._question_limit_s, left_s)
        try:
            return question(Prometheus(self._url, timeout_s=limit_s, transport=self._transport))
        except QueryError as error:
            if self._given_up:
                raise GivenUpError from error
            if not isinstance(error.__cause__, TooLateError):
                raise
            self.late = True
            raise QueryError(LATE) from error


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Do ``work`` in a thread that nothing waits for, not even the end of this process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    done.add_done_callback(lambda future: future.cancelled() or future.exception())

    def deliver(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        failed: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 (it belongs to whoever waits)
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(deliver, result, failed)

    threading.Thread(target=run, name="report", daemon=True).start()
    return done
