"""Samples of counters and gauges; counters that restart, miss scrapes and begin late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

UNKNOWN_SPACING_S = 1.0
"""Seconds between two scrapes, taken where a counter has one sample only."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What was scraped of one counter or gauge.

    ``t_s`` ascends, unix seconds, shape (n,); ``values`` has the same shape. ``name`` says whose
    it is: a worker, an instance.
    """

    name: str
    t_s: NDArray[np.float64]
    values: NDArray[np.float64] = field(repr=False)

    def __post_init__(self) -> None:
        if self.t_s.shape != self.values.shape or self.t_s.ndim != 1:
            msg = f"samples of {self.name}: times {self.t_s.shape}, values {self.values.shape}"
            raise ValueError(msg)


def without_resets(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the count of a counter, shape (n,), that never falls.

    A value below its predecessor is a restart from zero: what stood before it is kept.
    """
    if values.size == 0:
        return values.astype(np.float64)
    fell = np.diff(values) < 0
    lost = np.concatenate(([0.0], np.cumsum(np.where(fell, values[:-1], 0.0))))
    return np.asarray(values + lost, dtype=np.float64)


def count_at(counter: Samples, t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the count at times ``t_s`` (m,): linear across a gap, flat after the last sample.

    A counter is born with 0, between its first sample and the scrape before it: series that appear
    at their first use begin with what they were used for.
    """
    if counter.t_s.size == 0:
        return np.zeros_like(t_s)
    born_s = counter.t_s[0] - (spacing_s([counter]) or UNKNOWN_SPACING_S)
    times = np.concatenate(([born_s], counter.t_s))
    count = np.concatenate(([0.0], without_resets(counter.values)))
    return np.asarray(np.interp(t_s, times, count), dtype=np.float64)


def total_at(counters: Iterable[Samples], t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of the counts at times ``t_s`` (m,)."""
    total = np.zeros_like(t_s, dtype=np.float64)
    for counter in counters:
        total += count_at(counter, t_s)
    return total


def increase(counter: Samples, start_s: float, end_s: float) -> float:
    """Return by how much the counter rose from ``start_s`` to ``end_s``."""
    first, last = count_at(counter, np.array([start_s, end_s]))
    return float(last - first)


def total(counters: Iterable[Samples]) -> float:
    """Return the whole count of all counters, restarts included."""
    return float(sum(without_resets(c.values)[-1] for c in counters if c.values.size))


def spacing_s(samples: Iterable[Samples]) -> float | None:
    """Return the usual time between two samples in seconds; None where none has two."""
    gaps = [np.diff(s.t_s) for s in samples if s.t_s.size > 1]
    return float(np.median(np.concatenate(gaps))) if gaps else None
