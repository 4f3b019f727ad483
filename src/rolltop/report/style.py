"""How the plot looks: colours that colour-blind people can tell apart, sizes, number formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

INK = "#1b1f24"
MUTED = "#6a737d"
GRID = "#e3e6ea"
WARM_UP = "#eceff3"
EMPTY = "#f7f8fa"
FAULT = "#b3261e"

SIZE = 8.0
"""Points of the smallest text."""
LEFT = 0.68
"""Inches from the begin of a cell to its axes."""
RIGHT = 0.25
"""Inches from the end of the axes to the end of their cell."""

_DARK = "#2f363d"
_VIOLET = "#7a4fc4"
_LIGHT = "#a8b1bb"
_FIXED = {
    "renderer": "#0072b2",
    "driver": "#e69f00",
    "physics": "#009e73",
    "controller": "#d55e00",
    "trafficsim": "#cc79a7",
    "runtime": "#4d4d4d",
    "completed": _DARK,
    "failed attempts": FAULT,
    "abandoned": "#7a3b8f",
    "mean": _DARK,
    "median": _VIOLET,
    "95th percentile": _LIGHT,
    "work": _DARK,
    "poll": _LIGHT,
    "idle": "#dfe3e8",
    "all workers": _DARK,
    "since the start": _DARK,
    "waiting": _DARK,
    "hit": _LIGHT,
    "miss": _DARK,
}
"""Okabe and Ito's colours for the services, in all panels, and greys for what is of none."""
_SPARE = ("#56b4e9", "#882255", "#999933", "#332288", "#117733", "#a6761d", "#88ccee", "#661100")
"""Colours for names that not every run has: none of them is a service's of those above."""
_WORKERS = (
    "#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#e5c100",
)  # fmt: skip
"""Steps of viridis, the last one darker, for things that are counted: workers, GPUs."""

LEVEL = ""
"""The name, of no series, whose colour a threshold has."""


@dataclass(frozen=True)
class Pen:
    """How a line is drawn: its width in points, and its dashes as matplotlib takes them."""

    width: float = 1.6
    dashes: str | tuple[float, tuple[float, ...]] = "-"


PEN = Pen()
LEVEL_PEN = Pen(0.8, (0, (4, 3)))
_MEDIAN_PEN = Pen(1.6, (0, (3, 1.3)))
_RETRIED_PEN = Pen(0.9, (0, (2, 1.5)))


def pen(legend: str) -> Pen:
    """Return how the line of a legend is drawn: what lies close to another differs in dashes."""
    if legend == "median":
        return _MEDIAN_PEN
    return _RETRIED_PEN if legend.endswith(" retried") else PEN


def alone(values: NDArray[np.float64]) -> list[int]:
    """Return the indices of the values without one beside them: a line would not show them."""
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return [int(i) for i in np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])]


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are finite, 0 where none is."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else 0.0


class Colours:
    """Gives every name one colour for a whole figure."""

    def __init__(self, names: Iterable[str]) -> None:
        unknown = sorted({n for n in names if n not in _FIXED}, key=_natural)
        numbered = [n for n in unknown if n.isdigit()]
        named = [n for n in unknown if not n.isdigit()]
        self._colours = dict(_FIXED)
        self._colours.update((name, _SPARE[i % len(_SPARE)]) for i, name in enumerate(named))
        self._colours.update(
            (name, _WORKERS[_spread(i, len(numbered))]) for i, name in enumerate(numbered)
        )

    def of(self, name: str) -> str:
        """Return the colour of a name."""
        return self._colours.get(name, MUTED)


def _spread(index: int, count: int) -> int:
    """Return which of the workers' colours the ``index``-th of ``count`` gets: far apart if few."""
    if count <= 1:
        return 2
    if count <= len(_WORKERS):
        return round(index * (len(_WORKERS) - 1) / (count - 1))
    return index % len(_WORKERS)


def _natural(name: str) -> tuple[int, int, str]:
    """Return a key that sorts 2 before 10, and numbers before words."""
    return (0, int(name), "") if name.isdigit() else (1, 0, name)


def scaled(unit: str, largest: float) -> tuple[float, str]:
    """Return factor and unit in which values of at most ``largest`` read well.

    Seconds become ms or µs; every other unit stays.
    """
    word, _, rest = unit.partition(" ")
    comma = "," if word.endswith(",") else ""
    if word.rstrip(",") != "s" or largest <= 0:
        return 1.0, unit
    for factor, name, enough in ((1.0, "s", 0.8), (1e3, "ms", 0.8e-3)):
        if largest >= enough:
            return factor, f"{name}{comma} {rest}".strip()
    return 1e6, f"µs{comma} {rest}".strip()


_COUNTS = {"rollouts", "calls", "calls or attempts", "requests", "targets", "samples"}


def is_count(unit: str) -> bool:
    """Return whether a panel's unit is of things that are counted: their ticks are integers."""
    return unit.partition(",")[0] in _COUNTS


def number(value: float) -> str:
    """Return a value in three figures and as few letters: ``0.25``, ``980``, ``12.5k``, ``3M``."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if factor <= abs(value) < 1000 * factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def elapsed(seconds: float) -> str:
    """Return a time since the run's start as an axis says it: ``40 s``, ``2 min``, ``1.5 h``."""
    if seconds == 0:
        return "0"
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:g} s"
    if seconds < 7200:  # noqa: PLR2004 - two hours
        return f"{seconds / 60:g} min"
    return f"{seconds / 3600:g} h"


def time_ticks(span_s: float, at_most: int = 6) -> list[float]:
    """Return round times from 0 to ``span_s`` seconds, at most ``at_most`` of them."""
    steps = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
    step = next((s for s in steps if span_s / s <= at_most - 1), None)
    if step is None:
        step = 86400 * (int(span_s / 86400 / (at_most - 1)) + 1)
    return [float(t) for t in range(0, int(span_s) + 1, step)]
