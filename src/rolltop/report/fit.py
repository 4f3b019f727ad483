"""How wide a text is, and as much of it as has room."""

from __future__ import annotations

from functools import lru_cache

import matplotlib as mpl
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties

DPI = 100
"""Pixels of the sheet in an inch."""
WIDEST = 1.15
"""Width of the widest letter as a share of the text's size: what is short need not be measured."""


@lru_cache(maxsize=1)
def _renderer() -> RendererAgg:
    return RendererAgg(1, 1, DPI)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=2048)
def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the inches that a text takes on the sheet; ``size`` in points."""
    font = FontProperties(family=mpl.rcParams["font.family"], size=size)
    font.set_weight("bold" if bold else "normal")
    measure = _renderer().get_text_width_height_descent
    pixels, _, _ = measure(text, font, ismath=False)  # type: ignore[no-untyped-call]
    return float(pixels / DPI)


def fitted(text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """Return the text, or as much of it as has room in ``inches``, with an ellipsis."""
    widest = len(text) * WIDEST * size / 72
    if widest <= inches or width(text, size, bold=bold) <= inches:
        return text
    fits, over = 0, len(text)
    while over - fits > 1:
        middle = (fits + over) // 2
        wide = width(text[:middle] + "…", size, bold=bold) > inches
        fits, over = (fits, middle) if wide else (middle, over)
    return text[:fits] + "…"
