"""What a panel is: the one description behind the plot, the web page and the dashboards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """How a panel is drawn: BARS are one value per series over the run, the rest go over time."""

    LINES = "lines"
    STACK = "stack"
    BARS = "bars"


class Section(StrEnum):
    """The heading under which a panel stands, in the order of the plot."""

    SPEED = "Speed"
    SERVICES = "Services"
    WORKERS = "Workers"
    MACHINES = "Machines"
    TELEMETRY = "Telemetry"


@dataclass(frozen=True)
class Source:
    """Where series come from: the ``job`` label of the targets, and what a person calls it."""

    job: str
    title: str


WORKER = Source("alpasim-runtime-worker", "runtime worker")
PROCESS = Source("alpasim-process", "process exporter")
NODE = Source("alpasim-node", "node exporter")
GPU = Source("alpasim-dcgm", "GPU exporter")
ANY = Source("", "target")

HOLD_S = 60.0
"""Seconds for which at least a series that ended still counts in what is said so far."""


@dataclass(frozen=True)
class Threshold:
    """A level worth a line of its own, in the panel's unit."""

    value: float
    label: str


@dataclass(frozen=True)
class PanelQuery:
    """PromQL with ``$run``, ``$window``, ``$hold``, ``$range`` open, a legend with ``{label}``s."""

    promql: str
    legend: str

    def render(self, *, selector: str, window_s: float, range_s: float) -> str:
        """Return the PromQL of one run.

        Args:
            selector: label matchers such as ``run_uuid="..."``; empty matches everything.
            window_s: seconds for ``rate()`` over time.
            range_s: seconds of the whole run, for values over all of it. A quarter of it, and a
                minute at least, is for how long the last value of a worker that left still counts.
        """
        text = self.promql
        times = {"$window": window_s, "$range": range_s, "$hold": max(HOLD_S, range_s / 4)}
        for name, seconds in times.items():
            text = text.replace(name, duration(seconds))
        if not selector:
            text = text.replace(",$run", "")
        return text.replace("$run", selector)

    def legend_of(self, labels: Mapping[str, str]) -> str:
        """Return the legend of one series; a label that it lacks reads ``?``."""
        return self.legend.format_map(_Labels(labels))


class _Labels(dict[str, str]):
    """Labels in which a missing one reads ``?``."""

    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True)
class Panel:
    """One panel.

    ``description`` says what it shows and how to read it. ``series`` are the names without which
    it is empty; ``empty_reason`` says what it means that they are absent although their source
    answered. ``colour_by`` is the label whose value picks the colour, so that a service looks the
    same everywhere; empty: the legend picks it.
    """

    key: str
    title: str
    unit: str
    section: Section
    queries: tuple[PanelQuery, ...]
    series: tuple[str, ...]
    empty_reason: str
    description: str
    kind: Kind = Kind.LINES
    source: Source = WORKER
    colour_by: str = "service"
    thresholds: tuple[Threshold, ...] = ()
    y_max: float | None = None


def duration(seconds: float) -> str:
    """Return a Prometheus duration, rounded up: to milliseconds below 10 s, else to seconds."""
    if seconds < 10 and not float(seconds).is_integer():  # noqa: PLR2004 - as the docstring says
        return f"{max(1, math.ceil(seconds * 1000))}ms"
    return f"{max(1, math.ceil(seconds))}s"
