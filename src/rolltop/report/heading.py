"""What stands above a plot: which run, how fast, limited by what."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.report.text import throughput_line, without_query

if TYPE_CHECKING:
    from rolltop.analysis.bottleneck import BottleneckFinding
    from rolltop.model.estimate import ThroughputEstimate
    from rolltop.model.run import RolloutCounts, RunIdentity

TITLE_CHARS = 90
LINE_CHARS = 190


@dataclass(frozen=True)
class PlotHeader:
    """The run, and what was found of it, one line each."""

    title: str
    lines: tuple[str, ...] = ()


def plot_header(
    identity: RunIdentity,
    topology: str,
    counts: RolloutCounts,
    throughput: ThroughputEstimate,
    finding: BottleneckFinding,
) -> PlotHeader:
    """Return the heading of a run's plot; ``topology`` is its name or digest, or empty."""
    about = [
        f"run {identity.run_uuid[:8]}",
        *([f"topology {topology}"] if topology else []),
        f"started {identity.started:%Y-%m-%d %H:%M:%S} UTC",
        f"{counts.completed}{_of(counts)} rollouts completed",
        *([f"{counts.abandoned} abandoned"] if counts.abandoned else []),
        *([f"{counts.failed_attempts} failed attempts"] if counts.failed_attempts else []),
    ]
    speed = throughput_line(throughput)
    if throughput.steady_since_s:
        speed += " (warm-up shaded)"
    lines = (" · ".join(about), speed, _limit_line(finding))
    return PlotHeader(
        _cut(identity.run_name, TITLE_CHARS), tuple(_cut(t, LINE_CHARS) for t in lines)
    )


def _of(counts: RolloutCounts) -> str:
    return f" of {counts.requested}" if counts.requested else ""


def _limit_line(finding: BottleneckFinding) -> str:
    found = finding.bottleneck
    if found is None:
        return f"busiest service unknown: {finding.reason}"
    why = "; ".join(without_query(line) for line in found.evidence[:2])
    return f"busiest service {found.service}: {why} (certainty {found.certainty})"


def _cut(text: str, chars: int) -> str:
    return textwrap.shorten(text, chars, placeholder=" …")
