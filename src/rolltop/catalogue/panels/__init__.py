"""The panels of a run, as data.

``$run`` stands for the label matchers of one run, ``$window`` for the time over which a slope is
taken, and ``$range`` for the whole run.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rolltop.catalogue.panels.machines import MACHINES, TELEMETRY
from rolltop.catalogue.panels.services import SERVICES
from rolltop.catalogue.panels.speed import SPEED
from rolltop.catalogue.panels.workers import WORKERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rolltop.catalogue.panel import Panel

PANELS: tuple[Panel, ...] = (*SPEED, *SERVICES, *WORKERS, *MACHINES, *TELEMETRY)
"""All panels, in the order of the plot."""

PANELS_BY_KEY: Mapping[str, Panel] = MappingProxyType({panel.key: panel for panel in PANELS})
