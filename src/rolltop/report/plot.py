"""``metrics_plot.png``: all panels of a run on one sheet, three to a row, under their headings."""

from __future__ import annotations

import contextlib
import gc
import io
import textwrap
import warnings
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rolltop.catalogue.panel import Kind
from rolltop.files import replace_file
from rolltop.report import style
from rolltop.report.axes import bars_from, draw_panel
from rolltop.report.collect import PanelData
from rolltop.report.fit import DPI
from rolltop.report.legend import ROW, Legend, legend_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from rolltop.report.course import Course
    from rolltop.report.heading import PlotHeader

COLUMNS = 3
_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
    "axes.unicode_minus": False,
}

_NOTE_CHARS = 200
_NOTE_LINES = 8
_MARGIN = 0.35
_CELL = 6.35
_AXES_HEIGHT = 1.72
_EMPTY_HEIGHT = 0.62
_ABOVE = 0.36
_BELOW = 0.42
_BELOW_BARS = 0.52
_HEADING = 0.64
_TITLE = 0.62
_LINE = 0.27
_NOTE = 0.2
_APART = 0.03
"""The sheet's measures, in inches."""


@dataclass(frozen=True)
class PanelReport:
    """Titles of the panels that show something, and of those that do not, with the reason."""

    drawn: tuple[str, ...] = ()
    empty: dict[str, str] = field(default_factory=dict)


def draw_plot(
    path: Path, data: Sequence[PanelData], header: PlotHeader, course: Course
) -> PanelReport:
    """Write the plot to ``path``, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    image = io.BytesIO()
    with mpl.rc_context(_RC), _no_collection(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        sheet = build_sheet(data, header, course)
        sheet.figure.savefig(image, format="png", dpi=DPI, pil_kwargs={"compress_level": 3})
    replace_file(path, image.getvalue())
    return panel_report(sheet.data)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: of the many small objects of a figure none can go yet.

    A fifth of the CPU that a plot takes would go into looking for them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def panel_report(data: Sequence[PanelData]) -> PanelReport:
    """Return which panels show something, and why the others do not."""
    return PanelReport(
        drawn=tuple(d.panel.title for d in data if not d.empty),
        empty={d.panel.title: d.reason or "no data" for d in data if d.empty},
    )


@dataclass(frozen=True)
class Sheet:
    """A figure on an Agg canvas, not drawn yet, and the panels as they stand on it.

    ``cells`` are the left and right ends of every panel's cell, in pixels.
    """

    figure: Figure
    data: tuple[PanelData, ...]
    cells: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _Row:
    """Panels side by side, with their legends; ``heading`` names the section that they begin."""

    members: tuple[PanelData, ...]
    legends: tuple[Legend, ...]
    heading: str | None

    @property
    def above(self) -> int:
        """Rows of a legend between the titles and the axes."""
        return max(legend.rows for legend in self.legends)

    @property
    def axes_height(self) -> float:
        """Inches: a row without any data needs little."""
        return _EMPTY_HEIGHT if all(m.empty for m in self.members) else _AXES_HEIGHT

    @property
    def height(self) -> float:
        """Inches from its titles to the next row, without the heading."""
        if all(m.empty for m in self.members):
            below = 0.1
        else:
            below = _BELOW_BARS if any(_has_bars(m) for m in self.members) else _BELOW
        return _ABOVE + ROW * self.above + self.axes_height + below


def build_sheet(data: Sequence[PanelData], header: PlotHeader, course: Course) -> Sheet:
    """Return the sheet; a panel that cannot be drawn says so in its place.

    Those that are empty are named at the end, with the reason that they share.
    """
    rows = _rows([d for d in data if d.failed or not d.empty])
    notes = _notes([d for d in data if d.empty and not d.failed])
    width = 2 * _MARGIN + COLUMNS * _CELL
    height = _header_height(header) + sum(r.height + _HEADING * bool(r.heading) for r in rows)
    height += _MARGIN / 2 + (_HEADING + _NOTE * len(notes) if notes else 0.0)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    colours = style.Colours(line.colour_key for d in data for line in d.lines)
    top = _draw_header(figure, header, height)
    drawn: list[PanelData] = []
    cells: list[tuple[float, float]] = []
    for row in rows:
        if row.heading:
            top = _draw_heading(figure, row.heading, top)
        for column, (panel, legend) in enumerate(zip(row.members, row.legends, strict=True)):
            above = 0 if _has_bars(panel) else row.above
            tall = row.axes_height + ROW * (row.above - above)
            axes = figure.add_axes(_box(figure, panel, column, top - ROW * above, tall))
            drawn.append(_draw(axes, panel, course, colours, legend, above=above))
            left = _MARGIN + column * _CELL
            cells.append((left * DPI, (left + _CELL) * DPI))
        top -= row.height
    if notes:
        _draw_notes(figure, notes, top)
    as_drawn = dict(zip((d.panel.key for d in drawn), drawn, strict=True))
    return Sheet(figure, tuple(as_drawn.get(d.panel.key, d) for d in data), tuple(cells))


def _rows(data: Sequence[PanelData]) -> list[_Row]:
    """Return panels in rows, those of each section by themselves."""
    room = _CELL - style.LEFT - _APART
    return [
        _Row(
            members=tuple(members[i : i + COLUMNS]),
            legends=tuple(legend_of(m, room) for m in members[i : i + COLUMNS]),
            heading=str(section) if i == 0 else None,
        )
        for section, group in groupby(data, key=lambda d: d.panel.section)
        for members in [list(group)]
        for i in range(0, len(members), COLUMNS)
    ]


def _notes(empty: Sequence[PanelData]) -> list[str]:
    """Return lines that name the empty panels, those of one reason together."""
    titles: dict[str, list[str]] = {}
    for panel in empty:
        reason = (panel.reason or "no data").splitlines()[0]
        titles.setdefault(reason, []).append(panel.panel.title)
    return [
        line
        for reason, names in titles.items()
        for line in textwrap.wrap(
            f"{reason}: {' · '.join(names)}",
            _NOTE_CHARS,
            subsequent_indent="    ",
            max_lines=_NOTE_LINES,
            placeholder=" …",
        )
    ]


def _draw(
    axes: Axes,
    data: PanelData,
    course: Course,
    colours: style.Colours,
    legend: Legend,
    *,
    above: int,
) -> PanelData:
    """Draw a panel, or why it cannot be drawn; return what was drawn."""
    try:
        draw_panel(axes, data, course, colours, legend, above=above)
    except Exception as error:  # noqa: BLE001 - one panel's fault must not cost the others
        axes.clear()
        data = PanelData(data.panel, reason=f"it could not be drawn: {error}", failed=True)
        draw_panel(axes, data, course, colours, legend, above=above)
    return data


def _has_bars(data: PanelData) -> bool:
    """Return whether a panel has bars, and so a label under its axes."""
    return data.panel.kind is Kind.BARS and not data.empty


def _header_height(header: PlotHeader) -> float:
    return _MARGIN + _TITLE + _LINE * len(header.lines)


def _box(
    figure: Figure, data: PanelData, column: int, top: float, axes_height: float
) -> tuple[float, float, float, float]:
    """Return the axes' box as shares of the figure; ``top`` in inches from the bottom."""
    width, height = figure.get_size_inches()
    bars = _has_bars(data)
    left = bars_from(data) if bars else style.LEFT
    x = _MARGIN + column * _CELL + left
    y = top - _ABOVE - axes_height
    return x / width, y / height, (_CELL - left - style.RIGHT) / width, axes_height / height


def _draw_header(figure: Figure, header: PlotHeader, height: float) -> float:
    """Draw the title and its lines; return where the panels begin, inches from the bottom."""
    width = figure.get_figwidth()
    x = (_MARGIN + 0.1) / width
    y = height - _MARGIN - 0.12
    figure.text(
        x, y / height, header.title, fontsize=18, fontweight="bold", color=style.INK, va="center"
    )
    y -= 0.42
    for line in header.lines:
        figure.text(x, y / height, line, fontsize=11.5, color=style.INK, va="center")
        y -= _LINE
    return height - _header_height(header)


def _draw_heading(figure: Figure, name: str, top: float) -> float:
    """Draw a section's heading with a line under it; return where its panels begin, inches."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    x = (_MARGIN + 0.1) / width
    y = top - 0.38
    figure.text(
        x, y / height, name.upper(), fontsize=10.5, fontweight="bold", color=style.MUTED,
        va="center",
    )  # fmt: skip
    rule = (y - 0.14) / height
    figure.add_artist(Line2D([x, 1 - x], [rule, rule], color=style.GRID, lw=1.0))
    return top - _HEADING


def _draw_notes(figure: Figure, notes: Sequence[str], top: float) -> None:
    """Draw, under a heading, which panels are empty and why."""
    y = _draw_heading(figure, "Nothing to show", top)
    width, height = figure.get_size_inches()
    for note in notes:
        figure.text(
            (_MARGIN + 0.1) / width, y / height, note, fontsize=style.SIZE + 0.5, color=style.MUTED,
            va="center",
        )  # fmt: skip
        y -= _NOTE
