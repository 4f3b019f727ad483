"""One panel on its axes: lines, a stack, bars, or the words that say why there is nothing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from rolltop.catalogue.panel import Kind
from rolltop.report import style
from rolltop.report.fit import DPI, fitted, width
from rolltop.report.lanes import bands, draw_lanes
from rolltop.report.legend import ROW
from rolltop.report.style import SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from rolltop.report.collect import PanelData, PanelLine
    from rolltop.report.course import Course
    from rolltop.report.legend import Legend

BARS = 8
"""Bars of a panel; the rest is counted."""
BAR_CHARS = 40
REASON_CHARS = 66
START = 0.2
"""Share of a panel's time that is its start."""
PEAK = 2.5
"""How many times the rest a peak at the start has to be to be cut off."""
ROOM, CUT_ROOM = 1.08, 1.25
"""How many times the largest value that is shown the axis goes, above all with words on top."""
LEVEL = 0.25
"""Share of its largest value that the median of a level has, at the least."""
SAID = 0.85
"""Share of the axis above which a line would run through what is said of it."""
LETTER = 0.07
"""Inches that a letter of that size takes, at the most, in the mean of a word."""
TITLE = 10.0
SMALL_TITLE = 9.0
"""Points of a title, and of one that has no room otherwise."""
BELOW = 0.3
BESIDE = 0.5
"""Inches from the axes to the middle of their label."""


def draw_panel(
    axes: Axes,
    data: PanelData,
    course: Course,
    colours: style.Colours,
    legend: Legend,
    *,
    above: int,
) -> None:
    """Draw one panel.

    Title and label have fixed places: to let matplotlib find them costs as much as the rest.
    Between title and axes there is room for ``above`` rows of a legend.
    """
    axes.margins(0)
    if data.empty:
        _draw_title(axes, f"{data.panel.title} ({data.panel.unit})", above)
        _draw_reason(axes, data)
        return
    bars = data.panel.kind is Kind.BARS
    _draw_title(axes, data.panel.title, above, bars_from(data) - style.LEFT if bars else 0.0)
    _draw_frame(axes)
    factor, unit = style.scaled(data.panel.unit, _largest(data))
    if bars:
        _draw_bars(axes, data, factor, colours)
        axes.set_xlabel(unit, fontsize=SIZE, color=style.MUTED)
        axes.xaxis.set_label_coords(0.5, _inches(axes, -BELOW, "y"))
        return
    axes.yaxis.set_label_coords(_inches(axes, -BESIDE, "x"), 0.5)
    _draw_time(axes, course)
    ranges = bands(data.lines) if data.panel.kind is Kind.LINES else []
    if ranges:
        draw_lanes(axes, ranges, course, factor, colours)
        unit += ", each from 0"
    else:
        _draw_course(axes, data, course, factor, colours)
    axes.set_ylabel(unit, fontsize=SIZE, color=style.MUTED)
    legend.draw(axes, colours, above=above)


def _draw_course(
    axes: Axes, data: PanelData, course: Course, factor: float, colours: style.Colours
) -> None:
    """Draw lines or a stack, with the thresholds, on one value axis."""
    draw = _draw_stack if data.panel.kind is Kind.STACK else _draw_lines
    draw(axes, data.lines, course, factor, colours)
    pen = style.LEVEL_PEN
    for threshold in data.panel.thresholds:
        axes.axhline(threshold.value * factor, color=style.MUTED, lw=pen.width, ls=pen.dashes)
    _draw_values(axes, data, course, factor)


def bars_from(data: PanelData) -> float:
    """Return the inches from the begin of a cell to its bars: their names stand in between."""
    longest = max(len(_shortened(line.legend, BAR_CHARS)) for line in data.lines)
    return max(style.LEFT, 0.25 + LETTER * max(longest, len("and 99 smaller")))


def _draw_title(axes: Axes, text: str, above: int, outside: float = 0.0) -> None:
    """Draw the title over ``above`` rows, from ``outside`` inches to the left of the axes on."""
    x = -_inches(axes, outside, "x")
    room = axes.get_window_extent().width / DPI + outside
    size = TITLE if width(text, TITLE, bold=True) <= room else SMALL_TITLE
    axes.set_title(
        fitted(text, room, size, bold=True),
        loc="left", x=x, y=1.0, pad=5 + 72 * ROW * above, fontsize=size, fontweight="bold",
        color=style.INK,
    )  # fmt: skip


def _inches(axes: Axes, inches: float, along: str) -> float:
    """Return a length in inches as a share of the axes."""
    frame = axes.get_window_extent()
    pixels = frame.width if along == "x" else frame.height
    return float(inches * axes.figure.dpi / pixels)


def _draw_frame(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(style.GRID)
    axes.tick_params(labelsize=SIZE, colors=style.MUTED, length=2.5, width=0.6)
    axes.set_axisbelow(True)


def _draw_reason(axes: Axes, data: PanelData) -> None:
    """Draw an empty panel: its unit, and why it is empty."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor(style.EMPTY)
    for spine in axes.spines.values():
        spine.set_color(style.GRID)
    reason = (data.reason or "no data").splitlines()[0]
    lines = textwrap.wrap(
        reason, REASON_CHARS, max_lines=3, placeholder=" …", break_on_hyphens=False
    )
    axes.text(
        0.5,
        0.5,
        "\n".join(lines),
        transform=axes.transAxes,
        ha="center",
        va="center",
        fontsize=SIZE + 0.5,
        color=style.FAULT if data.failed else style.MUTED,
        linespacing=1.35,
    )


def _draw_lines(
    axes: Axes,
    lines: Sequence[PanelLine],
    course: Course,
    factor: float,
    colours: style.Colours,
) -> None:
    for line in lines:
        pen = style.pen(line.legend)
        axes.plot(
            line.t_s - course.start_s,
            line.values * factor,
            color=colours.of(line.colour_key),
            lw=pen.width,
            ls=pen.dashes,
            solid_capstyle="round",
            marker="o",
            markersize=3.5,
            markevery=style.alone(line.values),
        )


def _draw_stack(
    axes: Axes,
    lines: Sequence[PanelLine],
    course: Course,
    factor: float,
    colours: style.Colours,
) -> None:
    """Draw series on top of each other."""
    grid = np.unique(np.concatenate([line.t_s for line in lines]))
    layers = np.vstack([_on_grid(line, grid) for line in lines]) * factor
    if grid.size == 1:  # an area of one instant has no width
        grid = grid + 0.01 * course.span_s * np.array([-1.0, 1.0])
        layers = np.repeat(layers, 2, axis=1)
    axes.stackplot(
        grid - course.start_s,
        layers,
        colors=[colours.of(line.colour_key) for line in lines],
        linewidth=0.4,
        edgecolor="white",
    )


def _draw_bars(axes: Axes, data: PanelData, factor: float, colours: style.Colours) -> None:
    """Draw one bar a series, the largest at the top, with its value at its end."""
    ranked = sorted(data.lines, key=lambda line: -float(line.values[-1]))
    shown = ranked[:BARS]
    values = [float(line.values[-1]) * factor for line in shown]
    room = bars_from(data) - 0.12
    labels = [fitted(_shortened(d.legend, BAR_CHARS), room, SIZE) for d in shown]
    rows = np.arange(len(shown))
    axes.barh(rows, values, height=0.66, color=[colours.of(line.colour_key) for line in shown])
    if len(ranked) > BARS:
        rows = np.append(rows, len(shown))
        labels.append(f"and {len(ranked) - BARS} smaller")
    largest = max(values)
    end = _end(1.18 * largest, data.panel.unit)
    for row, value in enumerate(values):
        axes.text(
            value + 0.0127 * end, row, style.number(value), va="center", fontsize=SIZE,
            color=style.INK,
        )  # fmt: skip
    axes.set_yticks(rows, labels, color=style.INK)
    axes.set_ylim(max(len(rows), 5) - 0.4, -0.6)
    axes.set_xlim(0, end)
    axes.xaxis.set_major_locator(_few(data.panel.unit, zero=largest <= 0))
    axes.xaxis.set_major_formatter(lambda value, _: style.number(value))
    axes.grid(visible=True, axis="x", color=style.GRID, lw=0.6)
    axes.tick_params(axis="y", length=0)


def _draw_time(axes: Axes, course: Course) -> None:
    """Draw the time axis in the run's own range, with the warm-up shaded."""
    ticks = style.time_ticks(course.span_s)
    axes.set_xticks(ticks, [style.elapsed(t) for t in ticks])
    axes.set_xlim(0, course.span_s)
    if course.warm_up_s:
        axes.axvspan(0, course.warm_up_s, color=style.WARM_UP, lw=0, zorder=0)
    axes.grid(visible=True, color=style.GRID, lw=0.6)


def _draw_values(axes: Axes, data: PanelData, course: Course, factor: float) -> None:
    """Draw the value axis from zero: a small change must not look like a large one.

    A peak at the very start, of first calls that are slow, would press the rest flat: it is cut
    off, and said where it is.
    """
    t_s, height, split = _heights(data)
    start, rest = height[:split], height[split:]
    cut = _is_cut(start, rest)
    top = factor * float(CUT_ROOM * rest.max() if cut else ROOM * height.max())
    top = max((data.panel.y_max or 0.0) * factor, top)
    axes.set_ylim(0, _end(top, data.panel.unit))
    axes.yaxis.set_major_locator(_few(data.panel.unit, zero=top <= 0))
    axes.yaxis.set_major_formatter(lambda value, _: style.number(value))
    if cut:
        peak = int(start.argmax())
        _say_cut(axes, t_s - course.start_s, height * factor, peak, top)


def _heights(data: PanelData) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return times (n,), the largest value at each, of lines or their stack, and the start's n."""
    grid = np.unique(np.concatenate([line.t_s for line in data.lines]))
    layers = np.vstack([_on_grid(line, grid) for line in data.lines])
    height = layers.sum(axis=0) if data.panel.kind is Kind.STACK else layers.max(axis=0)
    split = int(np.searchsorted(grid, grid[0] + START * (grid[-1] - grid[0]), side="right"))
    return grid, height, split


def _is_cut(start: NDArray[np.float64], rest: NDArray[np.float64]) -> bool:
    """Return whether a peak at the start is cut off: the rest is a level, and would be flat.

    Where the rest is but peaks itself, as of garbage collections, all of them are to be seen.
    """
    if rest.size == 0 or start.max() <= PEAK * rest.max():
        return False
    return bool(np.median(rest) >= LEVEL * rest.max() > 0)


def _say_cut(
    axes: Axes, t_s: NDArray[np.float64], height: NDArray[np.float64], peak: int, top: float
) -> None:
    """Say beside the line that is cut off how high it goes, when, and why it is cut."""
    low = np.flatnonzero(height[peak:] < SAID * top)
    beside = peak + int(low[0]) if low.size else peak
    text = f"↑ {style.number(height[peak])} at {t_s[peak]:.0f} s, cut off: the rest would be flat"
    inch = axes.get_xlim()[1] * _inches(axes, 1.0, "x")
    x = min(t_s[beside] + 0.06 * inch, axes.get_xlim()[1] - width(text, SIZE) * inch)
    axes.text(
        x, top, text, va="top", fontsize=SIZE, color=style.INK,
        bbox={"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 1},
    )  # fmt: skip


def _end(largest: float, unit: str) -> float:
    """Return where a value axis ends: of counts at 1 or later, and at 1 where all is zero."""
    if largest <= 0:
        return 1.0
    return max(1.0, largest) if style.is_count(unit) else largest


def _few(unit: str, *, zero: bool) -> MaxNLocator:
    """Return a locator of few round ticks: of whole numbers for counts, of fewer for ``zero``."""
    if style.is_count(unit):
        return MaxNLocator(nbins=4, steps=[1, 2, 5, 10], integer=True)
    return MaxNLocator(nbins=2 if zero else 4, steps=[1, 2, 2.5, 5, 10])


def _on_grid(line: PanelLine, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a line's values at the times of the grid, 0 where it has none."""
    values = np.zeros_like(grid)
    values[np.searchsorted(grid, line.t_s)] = np.nan_to_num(line.values)
    return values


def _largest(data: PanelData) -> float:
    """Return the largest value that will be seen, in the panel's own unit."""
    return float(max(np.nanmax(np.where(np.isfinite(d.values), d.values, 0)) for d in data.lines))


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
