"""The end of a run in a few lines, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolltop.model.estimate import ThroughputEstimate
from rolltop.report import style
from rolltop.report.worker_pages import in_one, told_of_pages

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.report.summary import FailureRecord, RunSummary

_TAIL = 10
"""Last lines of a log that are shown; ``summary.json`` has more of them."""
_INDENT = " " * 10
_SILENT = 2
"""Workers whose pages are told of; the others are counted."""


def throughput_line(estimate: ThroughputEstimate) -> str:
    """Return what is known of the seconds per rollout, in one line."""
    if estimate.steady is not None and estimate.half_width is not None:
        half = f"{estimate.half_width:.2g}"
        digits = len(half.partition(".")[2])
        return (
            f"{estimate.steady:.{digits}f} ± {half} s per rollout"
            f" ({estimate.confidence:.0%}), steady since {estimate.steady_since_s or 0:.0f} s"
        ).replace("%", " %")
    if estimate.full_run is None:
        return f"seconds per rollout unknown: {estimate.reason or 'no rollout was completed'}"
    why = f"; no steady figure: {estimate.reason}" if estimate.reason else ""
    return f"{style.number(estimate.full_run)} s per rollout over the whole run{why}"


def render_text_summary(
    summary: RunSummary,
    *,
    plot: Path | None = None,
    open_command: str | None = None,
    failure_log: Path | None = None,
) -> list[str]:
    """Return the lines that end a run on a terminal, without markup.

    Args:
        summary: What came of the run.
        plot: Where its plot is, None where there is none.
        open_command: What looks at its data.
        failure_log: The log of the process that ended it, None where it has none.
    """
    lines = [_rollouts_line(summary)]
    estimate = ThroughputEstimate(**summary.seconds_per_rollout.model_dump())
    lines.append(f"speed     {throughput_line(estimate)}")
    lines.append(f"busiest   {_bottleneck_line(summary)}")
    lines.extend(_missing_lines(summary))
    if summary.failure is not None:
        lines.extend(_failure_lines(summary.failure, failure_log))
    lines.append(f"plot      {_plot_line(summary, plot)}")
    if open_command is not None:
        lines.append(f"open      {open_command}")
    return lines


def _missing_lines(summary: RunSummary) -> list[str]:
    """Return what is said of the workers' pages that never answered: two of them, and how many."""
    silent = told_of_pages(summary.telemetry.missing)
    if not silent:
        return []
    shown = [*silent[: _SILENT - 1], in_one(silent[_SILENT - 1 :])] if silent[1:] else silent
    return [f"missing   {shown[0]}", *(f"{_INDENT}{reason}" for reason in shown[1:])]


def _failure_lines(failure: FailureRecord, log: Path | None) -> list[str]:
    """Return what ended the run and the end of its log; the reason says the exit status."""
    lines = [f"failure   {failure.process}: {failure.reason}"]
    shown = failure.log_tail[-_TAIL:]
    if shown:
        lines.append(f"{_INDENT}its last log lines:")
        lines.extend(f"{_INDENT}  {line}" for line in shown)
    if log is not None:
        lines.append(f"log       {log}{'' if shown else ' (says nothing)'}")
    return lines


def _rollouts_line(summary: RunSummary) -> str:
    counts = summary.rollouts
    text = f"rollouts  {counts.completed} of {counts.requested} completed"
    if counts.abandoned:
        text += f", {counts.abandoned} abandoned"
    if counts.failed_attempts:
        attempts = "attempt" if counts.failed_attempts == 1 else "attempts"
        text += f", {counts.failed_attempts} failed {attempts}"
    if summary.outcome.value != "completed":
        text += f"; outcome: {summary.outcome.value.replace('_', ' ')}"
    return text


def _plot_line(summary: RunSummary, plot: Path | None) -> str:
    if plot is None:
        missing = summary.telemetry.missing
        known = (
            missing[name]
            for name in ("metrics_plot.png", "report", "prometheus")
            if name in missing
        )
        return f"none: {next(known, 'there was no telemetry')}"
    empty = len(summary.panels.empty)
    note = f", {empty} empty" if empty else ""
    return f"{plot} ({summary.panels.drawn} panels{note})"


def _bottleneck_line(summary: RunSummary) -> str:
    found = summary.bottleneck
    if found is None:
        return f"unknown: {summary.telemetry.missing.get('bottleneck', 'not measured')}"
    why = without_query(found.evidence[0]) if found.evidence else "no evidence"
    return f"{found.service}: {why} (certainty {found.certainty})"


def without_query(evidence: str) -> str:
    """Return a line of evidence without the query in brackets at its end."""
    return evidence.rpartition(" [")[0] or evidence
