"""The legend of a panel: a few rows between its title and its axes, where it covers nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rolltop.catalogue.panel import Kind
from rolltop.report import style
from rolltop.report.fit import DPI, fitted, width
from rolltop.report.lanes import bands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from rolltop.report.collect import PanelData, PanelLine

ENTRIES = 10
"""Entries of a legend; the rest is counted in the last of them."""
ROWS = 3
ROW = 0.17
"""Inches from one row of a legend to the next."""
TEXT = 1.35
"""Inches that an entry's text may take: three of them have room side by side."""
_HANDLE = 1.6
_HANDLE_GAP = 0.4
_COLUMN_GAP = 1.0
"""Measures of an entry, in sizes of its text."""
_GAP = _COLUMN_GAP * style.SIZE / 72
_BESIDE = (_HANDLE + _HANDLE_GAP) * style.SIZE / 72 + _GAP


@dataclass(frozen=True)
class Entry:
    """One entry: its text, and what its line or area looks like; ``key`` None: it has neither."""

    text: str
    key: str | None = None
    pen: style.Pen = style.PEN
    area: bool = False

    def handle(self, colours: style.Colours) -> Artist:
        """Return what stands beside the text."""
        if self.key is None:
            return Line2D([], [], lw=0)
        colour = colours.of(self.key)
        if self.area:
            return Patch(facecolor=colour, lw=0)
        return Line2D([], [], color=colour, lw=self.pen.width, ls=self.pen.dashes)


@dataclass(frozen=True)
class Legend:
    """The entries that are shown, in columns, each filled from the top down."""

    entries: tuple[Entry, ...]
    columns: int

    @property
    def rows(self) -> int:
        """Rows that they take."""
        return math.ceil(len(self.entries) / self.columns) if self.entries else 0

    def draw(self, axes: Axes, colours: style.Colours, *, above: int) -> None:
        """Draw it in the first of ``above`` rows on top of the axes."""
        if not self.entries:
            return
        height = axes.get_window_extent().height / DPI
        axes.legend(
            [entry.handle(colours) for entry in self.entries],
            [entry.text for entry in self.entries],
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0 + ROW * (above - self.rows) / height),
            borderaxespad=0.25,
            borderpad=0,
            frameon=False,
            fontsize=style.SIZE,
            labelcolor=style.INK,
            ncols=self.columns,
            handlelength=_HANDLE,
            handletextpad=_HANDLE_GAP,
            columnspacing=_COLUMN_GAP,
            labelspacing=0.3,
        )


def legend_of(data: PanelData, inches: float) -> Legend:
    """Return the legend of a panel, of which no row is wider than ``inches``."""
    if data.empty or data.panel.kind is Kind.BARS:
        return Legend((), 1)
    found = [_cut(entry) for entry in _entries(data)]
    at_most = min(ENTRIES, len(found))
    while at_most > 1:
        shown = _first(found, at_most)
        columns = _columns(shown, inches)
        if columns is not None:
            return Legend(shown, columns)
        at_most -= 1
    return Legend(_first(found, 1), 1)


def _first(found: Sequence[Entry], n: int) -> tuple[Entry, ...]:
    """Return ``n`` entries, the last of which counts those that have no room."""
    if len(found) <= n:
        return tuple(found)
    return (*found[: n - 1], Entry(f"and {len(found) - n + 1} more"))


def _columns(entries: Sequence[Entry], inches: float) -> int | None:
    """Return the most columns that have room, of as few rows as that makes; None: too many rows."""
    widths = [width(entry.text, style.SIZE) + _BESIDE for entry in entries]
    for rows in range(1, ROWS + 1):
        columns = math.ceil(len(widths) / rows)
        if sum(max(part) for part in np.array_split(widths, columns)) <= inches + _GAP:
            return columns
    return None


def _cut(entry: Entry) -> Entry:
    return Entry(fitted(entry.text, TEXT, style.SIZE), entry.key, entry.pen, entry.area)


def _entries(data: PanelData) -> list[Entry]:
    """Return all entries of a panel, in their order; the largest first where there are many."""
    levels = [Entry(t.label, style.LEVEL, style.LEVEL_PEN) for t in data.panel.thresholds]
    if data.panel.kind is Kind.STACK:
        areas = [Entry(d.legend, d.colour_key, area=True) for d in reversed(data.lines)]
        return areas + levels
    ranges = bands(data.lines)
    if ranges:
        named = [Entry(b.name, b.colour_key, area=True) for b in ranges]
        return [*named, Entry("shaded: min to max"), *levels]
    lines: Sequence[PanelLine] = data.lines
    if len(lines) > ENTRIES:
        lines = sorted(lines, key=lambda line: -style.mean(line.values))
    return [Entry(d.legend, d.colour_key, style.pen(d.legend)) for d in lines] + levels
