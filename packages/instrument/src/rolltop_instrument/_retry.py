"""An explicit retry: the caller asks for it, each attempt after the first is counted."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from rolltop_instrument._calls import status_of

T = TypeVar("T")

RETRYABLE_CODES = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED")
"""Status codes that are retried when the caller does not say: the call was not carried out."""

RetryOn = Callable[[BaseException], bool] | Iterable[Any] | None
"""A predicate; or exception types, status codes and names of codes; or None for the default."""


class Backoff(NamedTuple):
    """Full jitter: before retry ``n`` (from 1), a random part of ``base_s * 2 ** (n - 1)``.

    Attributes:
        base_s: Upper end before the first retry.
        max_s: Upper end that no wait exceeds.
        sleep: Waits for some seconds.
        random: Draws from [0, 1).
    """

    base_s: float = 0.05
    max_s: float = 2.0
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    random: Callable[[], float] = random_module.random

    async def wait(self, retry: int) -> None:
        """Wait before retry number ``retry``."""
        await self.sleep(self.random() * min(self.max_s, self.base_s * 2.0 ** (retry - 1)))


def _predicate(retry_on: RetryOn) -> Callable[[BaseException], bool]:
    if callable(retry_on) and not isinstance(retry_on, type):
        return retry_on
    wanted = RETRYABLE_CODES if retry_on is None else retry_on
    items = (wanted,) if isinstance(wanted, type | str) else tuple(wanted)
    types = tuple(item for item in items if isinstance(item, type))
    codes = {getattr(item, "name", item) for item in items if not isinstance(item, type)}
    return lambda error: isinstance(error, types) or status_of(error) in codes


async def retry(
    call: Callable[[], Awaitable[T]],
    *,
    attempts: int = 3,
    retry_on: RetryOn = None,
    backoff: Backoff | None = None,
    on_retry: Callable[[], None] | None = None,
) -> T:
    """Await ``call()`` until it succeeds.

    Args:
        call: Makes the awaitable anew for each attempt.
        attempts: Attempts in all, the first included.
        retry_on: Which errors are worth another attempt: a predicate; or exception types, status
            codes and names of codes. By default a connection error and a status of UNAVAILABLE,
            RESOURCE_EXHAUSTED or ABORTED.
        backoff: Waits between attempts.
        on_retry: Called before each attempt after the first.

    Raises:
        ValueError: ``attempts`` is less than 1.
        Exception: The last attempt's error, or one that is not worth another attempt.
    """
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, not {attempts}")
    worth = _predicate(retry_on)
    waits = backoff or Backoff()
    for attempt in range(1, attempts):
        try:
            return await call()
        except Exception as error:
            if not worth(error):
                raise
        await waits.wait(attempt)
        if on_retry is not None:
            on_retry()
    return await call()
