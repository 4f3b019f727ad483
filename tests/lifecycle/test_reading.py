"""The telemetry is read within one limit of time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from rolltop.errors import QueryError
from rolltop.lifecycle.reading import LATE, GivenUpError, TimedSource, in_thread
from rolltop.prometheus.transport import Answer, NoAnswerError, TooLateError

NOTHING = {"status": "success", "data": {"resultType": "vector", "result": []}}
BODY = json.dumps(NOTHING).encode()


class Carrier:
    """Answers, or fails, and notes how long it was given."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.limits: list[float] = []

    def get(self, path: str, timeout_s: float) -> Answer:
        raise AssertionError(path)

    def post(self, path: str, form: Mapping[str, str | Sequence[str]], timeout_s: float) -> Answer:
        self.limits.append(timeout_s)
        if self.failure is not None:
            raise self.failure
        return Answer(200, "application/json", BODY)

    def close(self) -> None:
        """Nothing is open."""


def _source(carrier: Carrier, clock: list[float]) -> TimedSource:
    return TimedSource("http://h:1", transport=carrier, monotonic=lambda: clock[0])


def test_each_question_gets_what_is_left() -> None:
    carrier, clock = Carrier(), [100.0]
    source = _source(carrier, clock)
    assert source.query("up", 1.0) == []
    clock[0] = 117.0
    assert source.query_range("up", 1.0, 2.0, 1.0) == []
    assert carrier.limits == [5.0, 3.0]
    clock[0] = 120.0
    with pytest.raises(QueryError, match=LATE):
        source.query("up")
    assert source.late
    assert len(carrier.limits) == 2


def test_after_the_first_that_is_late_nothing_is_asked() -> None:
    carrier = Carrier(TooLateError("no answer within 5 s"))
    source = _source(carrier, [0.0])
    for _ in range(3):
        with pytest.raises(QueryError, match=LATE):
            source.query("up")
    assert source.late
    assert len(carrier.limits) == 1


def test_another_failure_is_that_questions_own() -> None:
    carrier = Carrier(NoAnswerError("connection refused"))
    source = _source(carrier, [0.0])
    for _ in range(2):
        with pytest.raises(QueryError, match="connection refused"):
            source.query("up")
    assert not source.late
    assert len(carrier.limits) == 2


def test_what_is_given_up_ends_whoever_asks() -> None:
    source = _source(Carrier(), [0.0])
    source.give_up()
    with pytest.raises(GivenUpError):
        source.query("up")
    assert not issubclass(GivenUpError, Exception)


async def test_a_thread_brings_its_result_or_its_failure() -> None:
    def fail() -> None:
        raise GivenUpError

    assert await in_thread(lambda: 3) == 3
    with pytest.raises(GivenUpError):
        await in_thread(fail)
