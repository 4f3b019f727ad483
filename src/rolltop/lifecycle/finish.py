"""The end of a run: what its telemetry says, the plot, ``summary.json``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import rolltop
from rolltop.catalogue import questions
from rolltop.errors import RolltopError
from rolltop.lifecycle.expected import worker_pages
from rolltop.lifecycle.judged import EVENT as JUDGED
from rolltop.lifecycle.judged import Judged
from rolltop.lifecycle.monitoring import NAME
from rolltop.lifecycle.reading import LATE, GivenUpError, TimedSource, in_thread
from rolltop.lifecycle.view import open_view
from rolltop.model.estimate import ThroughputEstimate
from rolltop.prometheus.database import has_samples
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
    from collections.abc import Callable, Coroutine

    from rolltop.lifecycle.drive import Ending, RunDriver
    from rolltop.lifecycle.events import EventLog
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.model.run import RolloutCounts
    from rolltop.report.reader import SeriesSource
    from rolltop.report.run_report import RunReport
    from rolltop.report.summary import RunSummary

_RESTART_LIMIT_S = 10.0
"""For a Prometheus that died at the very end to be there again."""
_REPORT_LIMIT_S = 60.0
"""For the questions, which have a limit of their own, and the drawing."""
_GIVE_UP_S = 2.0
_GONE = "Prometheus did not run when its data were to be read"
FROM_DISK = "; what it had written was read from the disk"
"""Added to the reason why Prometheus is missing, where its data are not."""


@dataclass(frozen=True)
class Finished:
    """The summary, and what of the telemetry should have been there and is not.

    ``written``: whether it lies in the run directory, and that is the one that the run began with.
    ``samples``: whether there are any to be looked at.
    """

    summary: RunSummary
    lost: tuple[str, ...]
    written: bool = True
    samples: bool = False


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
    judged = _judged(run, driver, ending)
    events.append(JUDGED, **judged.fields())
    driver.look_for_directory()
    reading = _Reading(run, driver, judged, counts)
    await reading.read(note)
    await driver.prometheus.close()
    driver.look_for_directory()
    report, missing, counts = reading.report, reading.missing, reading.counts
    summary = _summary(run, driver, ending, counts, report=report, missing=missing)
    lost = driver.directory_lost is not None
    written = not lost
    try:
        write_summary(run.paths.summary, summary)
    except OSError as error:
        written = False
        if not lost:
            note(f"warning: {run.paths.summary} cannot be written: {error.strerror}")
    events.append("summary", panels=summary.panels.drawn, missing=summary.telemetry.missing)
    named = (*missing, *(report.lost if report else ()))
    return Finished(summary, named, written, samples=not lost and has_samples(run.paths.data))


def finish_without_telemetry(
    run: PreparedRun, driver: RunDriver, ending: Ending, reason: str
) -> None:
    """Write the summary of a run that was broken off before its end could be told otherwise.

    Nothing is asked and nothing is drawn: ``reason`` stands for all that the telemetry would say.

    Raises:
        OSError: It cannot be written.
    """
    counts = driver.rollouts.refresh()
    missing = {"report": reason}
    summary = _summary(run, driver, ending, counts, report=None, missing=missing)
    write_summary(run.paths.summary, summary)


class _Reading:
    """Reads the telemetry and draws the plot, until that is done, takes too long or is given up.

    Afterwards ``report`` is there, or ``missing`` says why not; ``counts`` knows of the attempts
    that failed in rollouts that never reached an end.
    """

    def __init__(
        self, run: PreparedRun, driver: RunDriver, judged: Judged, counts: RolloutCounts
    ) -> None:
        self.report: RunReport | None = None
        self.counts = counts
        self._given_up: dict[str, str] = {}
        self._source: TimedSource | None = None
        self._is_given_up = False
        self._run = run
        self._driver = driver
        self._judged = judged

    @property
    def missing(self) -> dict[str, str]:
        """What is not there, with the reason."""
        return {**self._driver.prometheus.missing, **self._given_up}

    async def read(self, note: Callable[[str], None]) -> None:
        """Read it; whatever goes wrong is an entry in ``missing`` and a note.

        Of a Prometheus that died, what it left on the disk is read.
        """
        prometheus, interrupted = self._driver.prometheus, self._driver.interrupted
        interrupted.clear()
        await _until(prometheus.begin_reading(), interrupted, _RESTART_LIMIT_S)
        if not prometheus.ready:
            if not prometheus.missing:
                prometheus.name_missing(_GONE)
                note(f"warning: {_GONE}")
            await self._read_from_disk(note)
            return
        self._source = TimedSource(prometheus.url)
        await self._take(in_thread(partial(self._make, self._source)), note)
        if self._source.late:
            prometheus.name_missing(LATE)
            note(f"warning: {LATE}: the plot and the summary lack what it knows")
        if not prometheus.up and not self._interrupted:
            await self._read_from_disk(note)

    @property
    def _interrupted(self) -> bool:
        return self._driver.interrupted.is_set()

    async def _read_from_disk(self, note: Callable[[str], None]) -> None:
        """Read a copy of the data that are there, as a later look at the run does."""
        prometheus = self._driver.prometheus
        if not prometheus.left_data or self._interrupted:
            return
        self._source = None
        await self._take(in_thread(self._make_from_disk), note)
        if self.report is not None and prometheus.missing.get(NAME):
            prometheus.missing[NAME] += FROM_DISK

    def _make_from_disk(self) -> RunReport:
        """Ask a Prometheus of its own and draw; in a thread of its own."""
        with open_view(self._run.paths) as view:
            self._source = source = TimedSource(view.url)
            if self._is_given_up:
                source.give_up()
            return self._make(source)

    async def _take(
        self,
        work: asyncio.Future[RunReport],
        note: Callable[[str], None],
    ) -> None:
        """Wait for the report; a signal or its limit of time ends that, and what it asks for."""
        await _until(asyncio.wait({work}), self._driver.interrupted, _REPORT_LIMIT_S)
        if not work.done():
            self._is_given_up = True
            if self._source is not None:
                self._source.give_up()
            await asyncio.wait({work}, timeout=_GIVE_UP_S)
        try:
            self.report = work.result()
            self._given_up.clear()
        except (GivenUpError, asyncio.InvalidStateError):
            reason = (
                "a signal" if self._interrupted else f"it took longer than {_REPORT_LIMIT_S:g} s"
            )
            self._given_up["report"] = f"given up: {reason}"
            note(f"warning: no plot: the telemetry was given up: {reason}")
        except Exception as error:  # noqa: BLE001 (telemetry is a guest: a run has a summary)
            self._given_up["report"] = f"{type(error).__name__}: {error}"
            note(f"warning: no plot: {error}")

    def _make(self, source: TimedSource) -> RunReport:
        """Ask and draw; in a thread of its own."""
        if not self._judged.reached_end:
            self.counts = with_attempts(
                self.counts,
                source,
                run_uuid=self._run.identity.run_uuid,
                start_s=self._judged.window.start_s,
                end_s=self._judged.window.end_s,
            )
        return _report(self._run, self._driver, self._judged, self.counts, source)


def with_attempts(
    counts: RolloutCounts, source: SeriesSource, *, run_uuid: str, start_s: float, end_s: float
) -> RolloutCounts:
    """Return the counts with the failed attempts of rollouts that never reached an end.

    A result names the attempts of its own rollout only; the workers counted all of them.

    Args:
        counts: By the results.
        source: What to ask.
        run_uuid: The run.
        start_s: Its start, unix seconds.
        end_s: Its end; what was cut off by stopping the workers is later, and no failure.
    """
    try:
        found = source.query(questions.failed_attempts(run_uuid, end_s - start_s), end_s)
    except RolltopError:
        return counts
    seen = max((float(series.values[-1]) for series in found if series.values.size), default=0.0)
    return replace(counts, failed_attempts=max(counts.failed_attempts, round(seen)))


async def _until(
    work: Coroutine[object, object, object], interrupted: asyncio.Event, limit_s: float
) -> None:
    """Wait for ``work`` unless a signal comes first or it takes too long."""
    tasks = [asyncio.create_task(each) for each in (work, interrupted.wait())]
    await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _judged(run: PreparedRun, driver: RunDriver, ending: Ending) -> Judged:
    """Return what the report of a run is made over: its drive, without its being stopped."""
    started_s = run.identity.started.timestamp()
    start_s = driver.started_s or started_s
    return Judged(
        Window(
            start_s=start_s,
            end_s=max(start_s, driver.ended_s or start_s),
            first_rollout_s=driver.rollouts.first_started_s,
            last_rollout_s=driver.rollouts.last_ended_s,
        ),
        interval_s=run.config.telemetry.worker_interval_s,
        reached_end=ending.failure is None and not ending.detail,
    )


def _report(
    run: PreparedRun,
    driver: RunDriver,
    judged: Judged,
    counts: RolloutCounts,
    source: TimedSource,
) -> RunReport:
    return make_report(
        source,
        identity=run.identity,
        plot=run.paths.plot,
        n_workers=run.config.runtime.nr_workers,
        counts=counts,
        window=judged.window,
        scrape_interval_s=judged.interval_s,
        topology_name=run.config.topology_name,
        steps_per_rollout=driver.rollouts.steps_per_rollout,
        reached_end=judged.reached_end,
        pages=worker_pages(run.paths, ((p.name, p.metrics_port) for p in run.plan.processes)),
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
