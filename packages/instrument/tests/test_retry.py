from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rolltop_instrument import Backoff, WorkerTelemetry, retry


class Flaky:
    """Fails with the given errors in turn, then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def rpc_error(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata())


def patient() -> tuple[Backoff, list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return Backoff(base_s=1, max_s=4, sleep=sleep, random=lambda: 0.5), slept


async def test_it_answers_after_failures_and_counts_each_retry(value: Callable[..., float]) -> None:
    telemetry = WorkerTelemetry()
    backoff, slept = patient()
    flaky = Flaky(rpc_error(grpc.StatusCode.UNAVAILABLE), ConnectionResetError())
    assert await telemetry.retry("driver", flaky, attempts=3, backoff=backoff) == "answer"
    assert flaky.calls == 3
    assert slept == [0.5, 1.0]
    assert value(telemetry, "rolltop_rpc_retries_total", service="driver") == 2


async def test_the_last_error_goes_on(value: Callable[..., float]) -> None:
    telemetry = WorkerTelemetry()
    backoff, _ = patient()
    last = ConnectionResetError("third")
    flaky = Flaky(ConnectionResetError("first"), ConnectionResetError("second"), last)
    with pytest.raises(ConnectionResetError) as caught:
        await telemetry.retry("driver", flaky, attempts=3, backoff=backoff)
    assert caught.value is last
    assert value(telemetry, "rolltop_rpc_retries_total", service="driver") == 2


@pytest.mark.parametrize(
    "retry_on",
    [
        None,
        (TimeoutError,),
        TimeoutError,
        (grpc.StatusCode.ABORTED,),
        ("ABORTED", TimeoutError),
        lambda error: isinstance(error, TimeoutError),
    ],
)
async def test_an_error_that_is_not_worth_it_goes_on_at_once(retry_on: object) -> None:
    flaky = Flaky(rpc_error(grpc.StatusCode.INVALID_ARGUMENT))
    with pytest.raises(grpc.aio.AioRpcError):
        await retry(flaky, retry_on=retry_on)
    assert flaky.calls == 1


@pytest.mark.parametrize(
    ("retry_on", "error"),
    [
        ((grpc.StatusCode.INTERNAL,), rpc_error(grpc.StatusCode.INTERNAL)),
        ("INTERNAL", rpc_error(grpc.StatusCode.INTERNAL)),
        ([ValueError, "INTERNAL"], ValueError()),
        (ValueError, ValueError()),
        (lambda error: True, KeyError()),
        (None, rpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED)),
    ],
)
async def test_what_is_worth_another_attempt(retry_on: object, error: Exception) -> None:
    backoff, _ = patient()
    assert await retry(Flaky(error), retry_on=retry_on, backoff=backoff) == "answer"


async def test_a_cancellation_is_never_retried() -> None:
    flaky = Flaky(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await retry(flaky, retry_on=lambda error: True)
    assert flaky.calls == 1


async def test_no_attempt_is_no_retry() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await retry(Flaky(), attempts=0)


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True))
def test_waits_grow_and_are_bounded(number: int, draw: float) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asyncio.run(Backoff(0.05, 2.0, sleep, lambda: draw).wait(number))
    assert 0 <= slept[0] <= min(2.0, 0.05 * 2.0 ** (number - 1))
