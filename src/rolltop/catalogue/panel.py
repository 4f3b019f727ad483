"""What a panel is: the one description behind the plot, the web page and the dashboards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rolltop.catalogue.duration import duration

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
    """Where series come from: the ``job`` label of the targets, and what a person calls it.

    ``started`` says whether a run of this version starts it. What it does not start may be there
    all the same: a site's own, or that of a run of AlpaSim.
    """

    job: str
    title: str
    started: bool = True

    @property
    def absence(self) -> str:
        """Why a run has no target of it."""
        if self.started:
            return f"no {self.title} in this run (no target of job {self.job})"
        return f"not in this version of rolltop, which starts no {self.title}"


WORKER = Source("alpasim-runtime-worker", "runtime worker")
PROCESS = Source("alpasim-process", "process exporter", started=False)
NODE = Source("alpasim-node", "node exporter", started=False)
GPU = Source("alpasim-dcgm", "GPU exporter", started=False)
SOURCES = (WORKER, PROCESS, NODE, GPU)
"""All sources that a run can have, each a job of its own."""
ANY = Source("", "target")


@dataclass(frozen=True)
class Threshold:
    """A level worth a line of its own, in the panel's unit."""

    value: float
    label: str


@dataclass(frozen=True)
class PanelQuery:
    """PromQL with ``$run``, ``$window``, ``$range`` open, and a legend with ``{label}``s."""

    promql: str
    legend: str

    def render(self, *, selector: str, window_s: float, range_s: float) -> str:
        """Return the PromQL of one run.

        Args:
            selector: label matchers such as ``run_uuid="..."``; empty matches everything.
            window_s: seconds over which a slope over time is taken.
            range_s: seconds of the whole run: for values over all of it, and because the last
                value of a worker that left counts to the end.
        """
        text = self.promql
        for name, seconds in (("$window", window_s), ("$range", range_s)):
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
