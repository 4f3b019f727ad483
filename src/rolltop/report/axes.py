"""One panel on its axes: lines, a stack, bars, or the words that say why there is nothing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, cast

import matplotlib as mpl
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from rolltop.catalogue.panel import Kind
from rolltop.report import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from numpy.typing import NDArray

    from rolltop.report.collect import PanelData, PanelLine
    from rolltop.report.course import Course

LEGENDS = 10
"""Entries of a legend; the rest is counted."""
MAX, MIN = " max", " min"
"""How the legends of the two ends of one range end."""
BARS = 8
"""Bars of a panel; the rest is counted."""
BAR_CHARS = 40
REASON_CHARS = 66
START = 0.2
"""Share of a panel's time that is its start."""
PEAK = 2.5
"""How many times the rest a peak at the start has to be to be cut off."""
SIZE = 8.0
"""Points of the smallest text."""
LETTER = 0.07
"""Inches that a letter of that size takes, at the most, in the mean of a word."""
TITLE = 10.0
SMALL_TITLE = 9.0
"""Points of a title, and of one that would reach over the legend's column."""
LEGEND_HANDLE = 0.33
"""Inches of a legend that are not its text."""
WIDEST = 1.15
"""Width of the widest letter as a share of the text's size: what is short need not be measured."""
BELOW = 0.3
BESIDE = 0.5
"""Inches from the axes to the middle of their label."""


def draw_panel(axes: Axes, data: PanelData, course: Course, colours: style.Colours) -> None:
    """Draw one panel.

    Title and label have fixed places: to let matplotlib find them costs as much as the rest.
    """
    axes.margins(0)
    if data.empty:
        _draw_title(axes, f"{data.panel.title} ({data.panel.unit})")
        _draw_reason(axes, data)
        return
    bars = data.panel.kind is Kind.BARS
    _draw_title(axes, data.panel.title, bars_from(data) - style.LEFT if bars else 0.0)
    _draw_frame(axes)
    factor, unit = style.scaled(data.panel.unit, _largest(data))
    if bars:
        _draw_bars(axes, data, factor, colours)
        axes.set_xlabel(unit, fontsize=SIZE, color=style.MUTED)
        axes.xaxis.set_label_coords(0.5, _inches(axes, -BELOW, "y"))
        return
    axes.set_ylabel(unit, fontsize=SIZE, color=style.MUTED)
    axes.yaxis.set_label_coords(_inches(axes, -BESIDE, "x"), 0.5)
    if data.panel.kind is Kind.STACK:
        entries = _draw_stack(axes, data.lines, course, factor, colours)
    else:
        entries = _draw_lines(axes, data.lines, course, factor, colours)
    entries += [
        (axes.axhline(t.value * factor, color=style.MUTED, lw=0.8, ls=(0, (4, 3))), t.label)
        for t in data.panel.thresholds
    ]
    _draw_time(axes, course)
    peak = _draw_values(axes, data, factor)
    if peak is not None:
        entries.insert(0, (Line2D([], [], lw=0), f"starts with {style.number(peak)}"))
    _draw_legend(axes, entries)


def bars_from(data: PanelData) -> float:
    """Return the inches from the begin of a cell to its bars: their names stand in between."""
    longest = max(len(_shortened(line.legend, BAR_CHARS)) for line in data.lines)
    return max(style.LEFT, 0.25 + LETTER * max(longest, len("and 99 smaller")))


def _draw_title(axes: Axes, text: str, outside: float = 0.0) -> None:
    """Draw the title from ``outside`` inches to the left of the axes on."""
    x = -_inches(axes, outside, "x")
    room = axes.get_window_extent().width / axes.figure.dpi + outside
    size = TITLE if _width(axes, text, TITLE, bold=True) <= room else SMALL_TITLE
    axes.set_title(
        _fitted(axes, text, room, size, bold=True),
        loc="left", x=x, y=1.0, pad=5, fontsize=size, fontweight="bold", color=style.INK,
    )  # fmt: skip


def _width(axes: Axes, text: str, size: float, *, bold: bool = False) -> float:
    """Return the inches that a text takes on the axes' canvas; ``size`` in points."""
    font = FontProperties(family=mpl.rcParams["font.family"], size=size)
    font.set_weight("bold" if bold else "normal")
    canvas = cast("FigureCanvasAgg", axes.figure.canvas)
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    width, _, _ = renderer.get_text_width_height_descent(text, font, ismath=False)
    return float(width / axes.figure.dpi)


def _fitted(axes: Axes, text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """Return the text, or as much of it as has room in ``inches``, with an ellipsis."""
    widest = len(text) * WIDEST * size / 72
    if widest <= inches or _width(axes, text, size, bold=bold) <= inches:
        return text
    fits, over = 0, len(text)
    while over - fits > 1:
        middle = (fits + over) // 2
        wide = _width(axes, text[:middle] + "…", size, bold=bold) > inches
        fits, over = (fits, middle) if wide else (middle, over)
    return text[:fits] + "…"


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
) -> list[tuple[Artist, str]]:
    """Draw lines; the first ones of the legend are the largest where there are too many."""
    entries: list[tuple[Artist, str]] = []
    named: list[PanelLine] = []
    ranges = {line.legend.removesuffix(MIN) for line in lines if line.legend.endswith(MIN)}
    for line in lines:
        lower = line.legend.endswith(MIN)
        retried = line.legend.endswith(" retried")
        (drawn,) = axes.plot(
            line.t_s - course.start_s,
            line.values * factor,
            color=colours.of(line.colour_key),
            lw=0.9 if lower or retried else 1.6,
            ls=(0, (2, 1.5)) if retried else "-",
            alpha=0.5 if lower else None,
            solid_capstyle="round",
            marker="o",
            markersize=3.5,
            markevery=_alone(line.values),
        )
        if not lower:
            name = line.legend.removesuffix(MAX)
            entries.append((drawn, name if name in ranges else line.legend))
            named.append(line)
    if len(entries) > LEGENDS:
        order = np.argsort([-_mean(line.values) for line in named], kind="stable")
        entries = [entries[i] for i in order]
    if ranges:
        entries.insert(0, (Line2D([], [], lw=0.9, color=style.MUTED, alpha=0.5), "thin: min"))
    return entries


def _alone(values: NDArray[np.float64]) -> list[int]:
    """Return the indices of the values without one beside them: a line would not show them."""
    known = np.concatenate([[False], np.isfinite(values), [False]])
    return [int(i) for i in np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])]


def _draw_stack(
    axes: Axes,
    lines: Sequence[PanelLine],
    course: Course,
    factor: float,
    colours: style.Colours,
) -> list[tuple[Artist, str]]:
    """Draw series on top of each other; the legend reads from the top down."""
    grid = np.unique(np.concatenate([line.t_s for line in lines]))
    layers = np.vstack([_on_grid(line, grid) for line in lines]) * factor
    if grid.size == 1:  # an area of one instant has no width
        grid = grid + 0.01 * course.span_s * np.array([-1.0, 1.0])
        layers = np.repeat(layers, 2, axis=1)
    drawn = axes.stackplot(
        grid - course.start_s,
        layers,
        colors=[colours.of(line.colour_key) for line in lines],
        linewidth=0.4,
        edgecolor="white",
    )
    return [(d, line.legend) for d, line in reversed(list(zip(drawn, lines, strict=True)))]


def _draw_bars(axes: Axes, data: PanelData, factor: float, colours: style.Colours) -> None:
    """Draw one bar a series, the largest at the top, with its value at its end."""
    ranked = sorted(data.lines, key=lambda line: -float(line.values[-1]))
    shown = ranked[:BARS]
    values = [float(line.values[-1]) * factor for line in shown]
    room = bars_from(data) - 0.12
    labels = [_fitted(axes, _shortened(d.legend, BAR_CHARS), room, SIZE) for d in shown]
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


def _draw_values(axes: Axes, data: PanelData, factor: float) -> float | None:
    """Draw the value axis from zero: a small change must not look like a large one.

    A peak at the very start, of first calls that are slow, would press the rest flat: it is cut
    off, and returned, in the axis' unit, so that it is said.
    """
    first, rest = _start_and_rest(data)
    peak = max(first, rest)
    cut = first > PEAK * rest > 0
    top = (rest if cut else peak) * factor * 1.08
    top = max((data.panel.y_max or 0.0) * factor, top)
    axes.set_ylim(0, _end(top, data.panel.unit))
    axes.yaxis.set_major_locator(_few(data.panel.unit, zero=top <= 0))
    axes.yaxis.set_major_formatter(lambda value, _: style.number(value))
    return first * factor if cut else None


def _start_and_rest(data: PanelData) -> tuple[float, float]:
    """Return the largest value at the start and after it, of lines or of their stack."""
    grid = np.unique(np.concatenate([line.t_s for line in data.lines]))
    layers = np.vstack([_on_grid(line, grid) for line in data.lines])
    height = layers.sum(axis=0) if data.panel.kind is Kind.STACK else layers.max(axis=0)
    split = int(np.searchsorted(grid, grid[0] + START * (grid[-1] - grid[0]), side="right"))
    return float(height[:split].max()), float(height[split:].max(initial=0.0))


def _draw_legend(axes: Axes, entries: Sequence[tuple[Artist, str]]) -> None:
    """Draw the legend beside the axes, where it covers nothing."""
    shown = list(entries[:LEGENDS])
    legend = axes.legend(
        [artist for artist, _ in shown],
        [_fitted(axes, text, style.LEGEND - LEGEND_HANDLE, SIZE) for _, text in shown],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.03),
        borderaxespad=0,
        frameon=False,
        fontsize=SIZE,
        labelcolor=style.INK,
        handlelength=1.3,
        markerscale=0,
        handletextpad=0.5,
        labelspacing=0.22,
        title=f"and {len(entries) - LEGENDS} more" if len(entries) > LEGENDS else None,
        title_fontsize=SIZE,
        alignment="left",
    )
    legend.get_title().set_color(style.MUTED)


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


def _mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else 0.0


def _shortened(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
