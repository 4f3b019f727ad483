"""The time axis of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Course:
    """The run's own time: ``start_s`` in unix seconds, its length, its warm-up where known."""

    start_s: float
    span_s: float
    warm_up_s: float | None = None
