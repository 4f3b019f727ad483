"""Whether a figure can be read: texts that overlap, that leave the canvas, or cover the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axis import Axis
from matplotlib.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

SLACK_PX = 1.0
"""Pixels by which two boxes may touch: a box is a little larger than its ink."""


@dataclass(frozen=True)
class Reading:
    """What stands in the way of reading a figure; all empty where nothing does.

    ``overlapping`` are pairs of texts, ``outside`` texts that leave the canvas, ``over_data`` the
    titles of the axes whose legend covers the data of any axes.
    """

    overlapping: list[tuple[str, str]]
    outside: list[str]
    over_data: list[str]


def read_figure(figure: Figure) -> Reading:
    """Return all that stands in the way of reading a figure, from one drawing of it."""
    texts, boxes = _drawn_texts(figure)
    width, height = figure.canvas.get_width_height()
    low, high = -SLACK_PX, np.array([width, height]) + SLACK_PX
    outside = np.any((boxes[:, :2] < low) | (boxes[:, 2:] > high), axis=1).tolist()
    return Reading(
        overlapping=[(texts[i], texts[j]) for i, j in _overlaps(boxes, boxes) if i < j],
        outside=[text for text, out in zip(texts, outside, strict=True) if out],
        over_data=_legends_over_data(figure),
    )


def overlapping_texts(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap on the canvas."""
    return read_figure(figure).overlapping


def _legends_over_data(figure: Figure) -> list[str]:
    framed = [(a.get_title(loc="left"), a.get_legend()) for a in figure.axes]
    legends = [(title, legend) for title, legend in framed if legend is not None]
    frames = _array([axes.get_window_extent() for axes in figure.axes])
    boxes = _array([legend.get_window_extent() for _, legend in legends])
    return [legends[i][0] for i in sorted({i for i, _ in _overlaps(boxes, frames)})]


def _drawn_texts(figure: Figure) -> tuple[list[str], NDArray[np.float64]]:
    """Return every text that is drawn, (n,), with its box in pixels, (n, 4)."""
    figure.draw_without_rendering()
    hidden = _undrawn_tick_labels(figure)
    drawn = [
        text
        for text in _texts(figure)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]
    return [t.get_text() for t in drawn], _array([t.get_window_extent() for t in drawn])


def _array(boxes: Sequence[Bbox]) -> NDArray[np.float64]:
    """Return boxes as (n, 4): x0, y0, x1, y1."""
    return np.array([(b.x0, b.y0, b.x1, b.y1) for b in boxes], dtype=np.float64).reshape(-1, 4)


def _overlaps(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the pairs of indices of boxes (n, 4) and (m, 4) that overlap."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    pairs = np.argwhere((high - low > SLACK_PX).all(axis=2))
    return [(int(i), int(j)) for i, j in pairs]


def _texts(figure: Figure) -> list[Text]:
    return list(figure.findobj(Text))


def _undrawn_tick_labels(figure: Figure) -> set[int]:
    """Return the ids of labels of ticks that lie outside of their axis, or whose axis is off."""
    hidden: set[int] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            hidden |= _outside_view(axis, shown=axes.axison and axis.get_visible())
    return hidden


def _outside_view(axis: Axis, *, shown: bool) -> set[int]:
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    return {
        id(label)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
        if not shown or not low - slack <= tick.get_loc() <= high + slack
    }
