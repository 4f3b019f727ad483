"""The end of a run: what its telemetry says, the plot, ``summary.json``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import rolltop
from rolltop.model.estimate import ThroughputEstimate
from rolltop.report.reader import Window
from rolltop.report.run_report import make_report
from rolltop.report.summary import (
    PanelsRecord,
    TelemetryRecord,
    VersionsRecord,
    build_summary,
    topology_record,
    write_summary,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.lifecycle.drive import Ending, RunDriver
    from rolltop.lifecycle.events import EventLog
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.model.run import RolloutCounts
    from rolltop.report.run_report import RunReport
    from rolltop.report.summary import RunSummary


@dataclass(frozen=True)
class Finished:
    """The summary, and what of the telemetry should have been there and is not."""

    summary: RunSummary
    lost: tuple[str, ...]


async def finish(
    run: PreparedRun,
    driver: RunDriver,
    ending: Ending,
    counts: RolloutCounts,
    *,
    events: EventLog,
    note: Callable[[str], None],
) -> Finished:
    """Read the telemetry, draw the plot, stop Prometheus, write the summary.

    Whatever fails on the way to the plot is an entry in ``telemetry.missing``.
    """
    report: RunReport | None = None
    missing = dict(driver.prometheus.missing)
    if driver.prometheus.up:
        try:
            report = await asyncio.to_thread(_report, run, driver, ending, counts)
        except Exception as error:  # noqa: BLE001 (telemetry is a guest: a run has a summary)
            missing["report"] = f"{type(error).__name__}: {error}"
            note(f"warning: no plot: {error}")
    await driver.stop_prometheus()
    summary = _summary(run, driver, ending, counts, report=report, missing=missing)
    try:
        write_summary(run.paths.summary, summary)
    except OSError as error:
        note(f"warning: {run.paths.summary} cannot be written: {error.strerror}")
    events.append("summary", panels=summary.panels.drawn, missing=summary.telemetry.missing)
    return Finished(summary, (*missing, *(report.lost if report else ())))


def _report(
    run: PreparedRun, driver: RunDriver, ending: Ending, counts: RolloutCounts
) -> RunReport:
    ended_s = driver.ended_s or run.identity.started.timestamp()
    return make_report(
        driver.prometheus.client,
        identity=run.identity,
        plot=run.paths.plot,
        n_workers=run.config.runtime.nr_workers,
        counts=counts,
        window=Window(
            start_s=driver.started_s or run.identity.started.timestamp(),
            end_s=ended_s,
            first_rollout_s=driver.rollouts.first_started_s,
            last_rollout_s=driver.rollouts.last_ended_s,
        ),
        scrape_interval_s=run.config.telemetry.worker_interval_s,
        topology_name=run.config.topology_name,
        steps_per_rollout=driver.rollouts.steps_per_rollout,
        reached_end=ending.failure is None and not ending.detail,
    )


def _summary(
    run: PreparedRun,
    driver: RunDriver,
    ending: Ending,
    counts: RolloutCounts,
    *,
    report: RunReport | None,
    missing: dict[str, str],
) -> RunSummary:
    reason = next(iter(missing.values()), "there was no telemetry")
    telemetry = (
        report.telemetry_record(driver.cpu_seconds_ratio())
        if report
        else TelemetryRecord(missing={}, gaps_s=None, scrapes_lost=None, cpu_seconds_ratio=None)
    )
    first_s = driver.rollouts.first_started_s
    return build_summary(
        identity=run.identity,
        outcome=ending.outcome,
        failure=ending.failure,
        nodes=sorted({p.node for p in run.plan.processes}),
        topology=topology_record(
            run.config.topology(), name=run.config.topology_name, digest=run.plan.topology_digest
        ),
        counts=counts,
        throughput=report.throughput if report else _without_telemetry(driver, counts, reason),
        bottleneck=report.bottleneck if report else None,
        panels=report.panels if report else PanelsRecord(drawn=0, empty={}),
        telemetry=telemetry.model_copy(update={"missing": telemetry.missing | missing}),
        first_rollout=None if first_s is None else datetime.fromtimestamp(first_s, UTC),
        ended=datetime.now(UTC),
        versions=VersionsRecord(rolltop=rolltop.__version__, prometheus=driver.prometheus.version),
    )


def _without_telemetry(driver: RunDriver, counts: RolloutCounts, reason: str) -> ThroughputEstimate:
    """Return what the results alone say: the time of the run over its completed rollouts."""
    start, end = driver.started_s, driver.rollouts.last_ended_s
    known = counts.completed and start is not None and end is not None
    return ThroughputEstimate(
        full_run=(end - start) / counts.completed if known else None,  # type: ignore[operator]
        last_5m=None,
        steady=None,
        half_width=None,
        confidence=0.95,
        steady_since_s=None,
        reason=f"no telemetry: {reason}",
    )
