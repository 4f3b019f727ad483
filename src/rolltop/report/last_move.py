"""When a run's work came to its end, read off its counters: what follows is its being stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rolltop.catalogue.duration import duration
from rolltop.errors import RolltopError

if TYPE_CHECKING:
    from rolltop.model.series import Series
    from rolltop.report.reader import RunReader, Window

WORK = (
    "alpasim_step_duration_seconds_count{$run}",
    'alpasim_rollouts_total{status="completed",$run}',
)
"""Counters that move as long as a run drives, and not while it is stopped."""
_POINTS = 500
_TWO_SCRAPES_S = 35.0
"""At the longest interval that a worker is scraped at."""


def last_move_s(reader: RunReader, window: Window) -> float | None:
    """Return when a counter of the work last rose, by its scrapes; None where none ever did.

    The window is looked at from afar first: the samples of a long run are too many to be fetched.

    Args:
        reader: The run's.
        window: From the first to the last of its samples.

    Returns:
        Unix seconds.
    """
    found = [t for counter in WORK if (t := _last_rise_s(reader, window, counter)) is not None]
    return max(found, default=None)


def _last_rise_s(reader: RunReader, window: Window, counter: str) -> float | None:
    step_s = max(1.0, window.range_s / _POINTS)
    within = duration(round(2 * step_s + _TWO_SCRAPES_S))
    try:
        changes = reader.over(
            f"sum(changes({counter}[{within}]))", window.whole_steps(step_s), step_s
        )
        moving = [float(s.t_s[s.values > 0][-1]) for s in changes if (s.values > 0).any()]
        if not moving:
            return None
        near = reader.instant(f"{counter}[{within}]", window, at_s=max(moving))
    except RolltopError:
        return None
    rises = [t for series in near if (t := _rise_s(series)) is not None]
    return max(rises, default=None)


def _rise_s(series: Series) -> float | None:
    """Return the time of the last sample that is larger than the one before it."""
    rises = np.flatnonzero(np.diff(series.values) > 0)
    return float(series.t_s[rises[-1] + 1]) if rises.size else None
