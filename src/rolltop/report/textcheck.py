"""Whether a figure can be read: texts that overlap, that leave the canvas, or cover the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axis import Axis
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

SLACK_PX = 1.0
"""Pixels by which two boxes may touch: a box is a little larger than its ink."""


def overlapping_texts(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap on the canvas."""
    boxes = drawn_texts(figure)
    return [
        (first, second)
        for i, (first, box) in enumerate(boxes)
        for second, other in boxes[i + 1 :]
        if _overlap(box, other)
    ]


def texts_outside(figure: Figure) -> list[str]:
    """Return the texts that leave the canvas."""
    width, height = figure.canvas.get_width_height()
    return [
        text
        for text, box in drawn_texts(figure)
        if box.x0 < -SLACK_PX
        or box.y0 < -SLACK_PX
        or box.x1 > width + SLACK_PX
        or box.y1 > height + SLACK_PX
    ]


def legends_over_data(figure: Figure) -> list[str]:
    """Return the titles of the axes whose legend covers the data of any axes."""
    figure.canvas.draw()
    frames = [axes.get_window_extent() for axes in figure.axes]
    return [
        axes.get_title(loc="left")
        for axes in figure.axes
        if (legend := axes.get_legend()) is not None
        and any(_overlap(legend.get_window_extent(), frame) for frame in frames)
    ]


def drawn_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every text that is drawn, with its box in pixels."""
    figure.canvas.draw()
    hidden = _undrawn_tick_labels(figure)
    return [
        (text.get_text(), text.get_window_extent())
        for text in _texts(figure)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


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


def _overlap(a: Bbox, b: Bbox) -> bool:
    return bool(
        min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK_PX
        and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK_PX
    )
