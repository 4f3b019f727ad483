"""Ranges of several names, each in a lane of its own: on one axis they would be a tangle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rolltop.report import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from rolltop.report.collect import PanelLine
    from rolltop.report.course import Course

MAX, MIN = " max", " min"
"""How the legends of the two ends of one range end."""
LANES = 6
"""Lanes that have room; those with the largest values are shown."""
FULL = 0.8
"""Share of its lane that the largest value of a range reaches."""


@dataclass(frozen=True, eq=False)
class Band:
    """A range over time: ``t_s`` (n,) unix seconds, ``low`` and ``high`` (n,)."""

    name: str
    colour_key: str
    t_s: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def largest(self) -> float:
        """The largest value, 0 where none is known."""
        return float(np.nan_to_num(self.high).max(initial=0.0))


def bands(lines: Sequence[PanelLine]) -> list[Band]:
    """Return the ranges among lines, those of the largest values where there are too many.

    Empty unless every line is an end of a range, of which both are there.
    """
    ends = {line.legend: line for line in lines}
    names = [line.legend.removesuffix(MAX) for line in lines if line.legend.endswith(MAX)]
    if not names or set(ends) != {name + end for name in names for end in (MAX, MIN)}:
        return []
    found = [_band(name, ends[name + MAX], ends[name + MIN]) for name in names]
    if len(found) <= LANES:
        return found
    return sorted(found, key=lambda band: -band.largest)[:LANES]


def _band(name: str, high: PanelLine, low: PanelLine) -> Band:
    t, at_high, at_low = np.intersect1d(high.t_s, low.t_s, return_indices=True)
    return Band(name, high.colour_key, t, low.values[at_low], high.values[at_high])


def draw_lanes(
    axes: Axes, ranges: Sequence[Band], course: Course, factor: float, colours: style.Colours
) -> None:
    """Draw each range in its lane, from zero on its floor to its largest value, which is said."""
    floors = len(ranges) - 1.0 - np.arange(len(ranges))
    for band, floor in zip(ranges, floors, strict=True):
        scale = FULL / (band.largest or 1.0)
        colour = colours.of(band.colour_key)
        low, high = floor + scale * band.low, floor + scale * band.high
        t = band.t_s - course.start_s
        axes.fill_between(t, low, high, color=colour, alpha=0.35, lw=0)
        axes.plot(t, high, color=colour, lw=1.2, marker="o", markersize=3.5,
                  markevery=style.alone(high))  # fmt: skip
        axes.plot(t, low, color=colour, lw=0.7)
        axes.axhline(floor, color=style.MUTED, lw=0.5)
    axes.set_ylim(0, len(ranges))
    tops = [style.number(band.largest * factor) for band in ranges]
    axes.set_yticks(floors + FULL, tops)
