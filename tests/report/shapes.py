"""Panels with data of every shape, without a Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rolltop.catalogue.panel import Kind
from rolltop.catalogue.panels import PANELS
from rolltop.report.collect import PanelData, PanelLine, only_finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop.catalogue.panel import Panel

START_S = 1_750_000_000.0
SERVICES = ("renderer", "driver", "physics", "controller", "trafficsim")


def filled(
    names: Sequence[str] = SERVICES, *, seconds: float = 90.0, scale: float = 1.0, seed: int = 0
) -> list[PanelData]:
    """Return all panels, each with one series per name."""
    rng = np.random.default_rng(seed)
    t = START_S + np.linspace(0, seconds, 80)

    def line(panel: Panel, name: str) -> PanelLine:
        level = scale * rng.uniform(0.001, 1)
        if panel.kind is Kind.BARS:
            return PanelLine(name, name, t[-1:], np.array([level]))
        return PanelLine(name, name, t, level * (1 + 0.1 * rng.standard_normal(t.size)))

    return [PanelData(panel, tuple(line(panel, name) for name in names)) for panel in PANELS]


def with_values(values: Sequence[float]) -> list[PanelData]:
    """Return all panels, each with one series of these values."""
    array = only_finite(np.array(values, dtype=np.float64))
    t = START_S + np.arange(array.size, dtype=np.float64)
    return [
        PanelData(
            panel,
            (
                PanelLine(
                    "renderer",
                    "renderer",
                    t[-1:] if panel.kind is Kind.BARS else t,
                    array[-1:] if panel.kind is Kind.BARS else array,
                ),
            ),
        )
        for panel in PANELS
    ]


def empty(reason: str) -> list[PanelData]:
    """Return all panels without data."""
    return [PanelData(panel, reason=reason) for panel in PANELS]
