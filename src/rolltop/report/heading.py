"""What stands above a plot: which run, how fast, limited by what."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.analysis.bottleneck import RUNTIME
from rolltop.report.text import throughput_line, without_query

if TYPE_CHECKING:
    from rolltop.analysis.bottleneck import BottleneckFinding
    from rolltop.model.estimate import ThroughputEstimate
    from rolltop.model.run import RolloutCounts, RunIdentity

TITLE_CHARS = 90
LINE_CHARS = 215


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
    lines = (" · ".join(about), _speed_line(throughput, counts), _limit_line(finding))
    return PlotHeader(
        _cut(identity.run_name, TITLE_CHARS), tuple(_cut(t, LINE_CHARS) for t in lines)
    )


def _of(counts: RolloutCounts) -> str:
    return f" of {counts.requested}" if counts.requested else ""


def _speed_line(throughput: ThroughputEstimate, counts: RolloutCounts) -> str:
    """Return the seconds per rollout, and from what of the run they come.

    The steady figure is none of the rollouts that were completed, which an eye would look for.
    """
    speed = throughput_line(throughput)
    if throughput.steady is None:
        return speed
    speed += ": from the steps per second from there until rollouts run out"
    if throughput.steady_since_s:
        speed += " (shaded: warm-up)"
    if throughput.full_run is not None and counts.completed:
        whole = throughput.full_run * counts.completed
        speed += (
            f" · whole run: {counts.completed} rollouts in {whole:.0f} s,"
            f" {throughput.full_run:.3g} s each"
        )
    return speed


def _limit_line(finding: BottleneckFinding) -> str:
    found = finding.bottleneck
    if found is None:
        return f"busiest service unknown: {finding.reason}"
    why = "; ".join(without_query(line) for line in found.evidence[:2])
    who = (
        "the workers limit the run"
        if found.service == RUNTIME
        else f"busiest service {found.service}"
    )
    about = f"certainty {found.certainty}; while the run was busy, the bars are of all of it"
    return f"{_cut(f'{who}: {why}', LINE_CHARS - len(about) - 3)} ({about})"


def _cut(text: str, chars: int) -> str:
    return textwrap.shorten(text, chars, placeholder=" …")
