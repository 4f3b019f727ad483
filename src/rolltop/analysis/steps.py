"""Where a step's time goes, by service and method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class MethodLoad:
    """What all workers recorded of one method in a window: calls and their seconds."""

    service: str
    method: str
    calls: float
    seconds: float
    p95_s: float | None = None


@dataclass(frozen=True)
class MethodShare:
    """One method's part in a step.

    ``share`` is of the time of all calls: calls that run side by side count each, so it is no
    share of the step's duration.
    """

    service: str
    method: str
    calls_per_step: float
    mean_s: float
    p95_s: float | None
    seconds_per_step: float
    share: float


def step_shares(methods: Sequence[MethodLoad], n_steps: float) -> tuple[MethodShare, ...]:
    """Return each method's part in a step, the largest first; empty where no step was made."""
    all_seconds = sum(m.seconds for m in methods)
    if n_steps <= 0 or all_seconds <= 0:
        return ()
    shares = [
        MethodShare(
            service=m.service,
            method=m.method,
            calls_per_step=m.calls / n_steps,
            mean_s=m.seconds / m.calls,
            p95_s=m.p95_s,
            seconds_per_step=m.seconds / n_steps,
            share=m.seconds / all_seconds,
        )
        for m in methods
        if m.calls > 0
    ]
    return tuple(sorted(shares, key=lambda s: s.seconds_per_step, reverse=True))


def seconds_by_service(shares: Sequence[MethodShare]) -> dict[str, float]:
    """Return seconds of calls per step by service, the largest first."""
    seconds: dict[str, float] = {}
    for share in shares:
        seconds[share.service] = seconds.get(share.service, 0.0) + share.seconds_per_step
    return dict(sorted(seconds.items(), key=lambda item: item[1], reverse=True))
