"""The time axis of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Course:
    """The run's own time from its first rollout on, which is zero on the axis and in all figures.

    ``start_s`` in unix seconds, its length, and its warm-up where known, in seconds.
    """

    start_s: float
    span_s: float
    warm_up_s: float | None = None
