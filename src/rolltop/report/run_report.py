"""All that is said of a run at its end: asked once, estimated, drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rolltop.analysis.bottleneck import BottleneckFinding, find_bottleneck
from rolltop.analysis.samples import total
from rolltop.analysis.throughput import Progress, estimate_throughput
from rolltop.catalogue.panel import SOURCES, WORKER
from rolltop.catalogue.panels import PANELS
from rolltop.model.estimate import Bottleneck, ThroughputEstimate
from rolltop.model.run import RolloutCounts
from rolltop.report.collect import PanelData, Resolution, collect_panels
from rolltop.report.course import Course
from rolltop.report.evidence import (
    Missing,
    ScrapeQuality,
    WorkerSamples,
    ask_load,
    ask_scrapes,
    ask_workers,
)
from rolltop.report.heading import PlotHeader, plot_header
from rolltop.report.reader import RunReader, SeriesSource, Window
from rolltop.report.summary import PanelsRecord, TelemetryRecord
from rolltop.report.worker_pages import in_one, silent_pages, without_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rolltop.catalogue.panel import Panel
    from rolltop.model.run import RunIdentity
    from rolltop.report.worker_pages import WorkerPage

DEFAULT_INTERVAL_S = 1.0


@dataclass(frozen=True)
class RunReport:
    """What the telemetry of a run says.

    ``missing`` names every series, exporter and figure that is not there, with the reason;
    ``lost`` are those among them that should have been: telemetry that was started and failed.
    ``plot`` is None where the plot could not be made; ``plot_error`` is why.
    """

    throughput: ThroughputEstimate
    bottleneck: Bottleneck | None
    panels: PanelsRecord
    plot: Path | None
    missing: dict[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    scrapes_lost: int | None = None
    gaps_s: float | None = None
    n_steps: float | None = None
    plot_error: Exception | None = None

    def telemetry_record(self, cpu_seconds_ratio: float | None = None) -> TelemetryRecord:
        """Return the part of the summary that says what the telemetry lacks and what it cost."""
        return TelemetryRecord(
            missing=dict(self.missing),
            gaps_s=self.gaps_s,
            scrapes_lost=self.scrapes_lost,
            cpu_seconds_ratio=cpu_seconds_ratio,
        )


def make_report(
    prometheus: SeriesSource,
    *,
    identity: RunIdentity,
    plot: Path,
    n_workers: int | None,
    counts: RolloutCounts,
    window: Window,
    scrape_interval_s: float | None = None,
    topology_name: str = "",
    steps_per_rollout: float | None = None,
    reached_end: bool | None = None,
    panels: Sequence[Panel] = PANELS,
    pages: Mapping[str, WorkerPage] | None = None,
) -> RunReport:
    """Ask Prometheus once, estimate, find the bottleneck and draw ``metrics_plot.png``.

    Nothing that goes wrong with telemetry raises: what is missing is named in the report.

    Args:
        prometheus: the run's, or one on a copy of its data.
        identity: who the run is.
        plot: the file that the plot goes to.
        n_workers: how many workers were started; None: not known.
        counts: the rollouts by their result files; none requested: what the workers counted.
        window: the time to look at.
        scrape_interval_s: of the workers; None: read off their samples.
        topology_name: as it is to stand above the plot.
        steps_per_rollout: mean of the completed rollouts; None: not known.
        reached_end: whether the run ended by itself; by default, whether every rollout did.
        panels: what to draw.
        pages: address -> whose page was expected there; None: not known.
    """
    missing, reader = Missing(), RunReader.detect(prometheus, identity.run_uuid, window)
    scrapes = ask_scrapes(reader, window, missing)
    interval = scrape_interval_s or scrapes.interval_s or DEFAULT_INTERVAL_S
    workers = ask_workers(reader, window, interval, missing)
    counts = counts if counts.requested else _counted(workers)
    progress = _progress(workers, counts, window, n_workers, steps_per_rollout, ended=reached_end)
    throughput = estimate_throughput(progress)
    finding = find_bottleneck(ask_load(reader, window, workers, interval, missing))
    silent = silent_pages(scrapes, pages) if _had_workers(progress, counts) else {}
    throughput, finding = without_pages(scrapes, throughput, finding)
    data = _panels(reader, panels, window, interval, scrapes, silent=silent)
    header = plot_header(identity, topology_name, counts, throughput, finding)
    error, drawn = _draw(plot, data, header, _course(progress, window, throughput), missing)
    _name_missing(missing.reasons, scrapes, finding, silent)
    return RunReport(
        throughput=throughput,
        bottleneck=finding.bottleneck,
        panels=drawn,
        plot=None if error else plot,
        missing=missing.reasons,
        lost=_lost(missing.reasons, scrapes, plot.name),
        scrapes_lost=scrapes.lost,
        gaps_s=scrapes.gaps_s,
        n_steps=total(workers.steps) if workers.steps else None,
        plot_error=error,
    )


def _had_workers(progress: Progress, counts: RolloutCounts) -> bool:
    """Return whether workers were there: of a run that was cut short early that is not known."""
    return progress.reached_end or counts.finished > 0


def _counted(workers: WorkerSamples) -> RolloutCounts:
    """Return the rollouts that the workers counted, for a run without result files."""
    return RolloutCounts(
        requested=0,
        completed=round(total(workers.completed)),
        failed_attempts=round(total(workers.failed)),
    )


def _ended(workers: WorkerSamples, counts: RolloutCounts) -> bool:
    """Return whether no rollout was left: none is under way at the end where that is all known."""
    if counts.requested:
        return counts.finished >= counts.requested
    return not any(s.values.size and s.values[-1] > 0 for s in workers.active)


def _panels(
    reader: RunReader,
    panels: Sequence[Panel],
    window: Window,
    interval_s: float,
    scrapes: ScrapeQuality,
    *,
    silent: Mapping[str, str],
) -> list[PanelData]:
    """Return the panels with their series; where nothing is known of targets, all are asked for."""
    resolution = Resolution.of(window, interval_s)
    return collect_panels(
        reader,
        panels,
        window.start_s,
        window.end_s,
        resolution.step_s,
        window_s=resolution.window_s,
        jobs=scrapes.jobs or None,
        intervals_s=scrapes.intervals_s,
        silent={WORKER.job: in_one(silent.values())} if silent else None,
    )


def _progress(
    workers: WorkerSamples,
    counts: RolloutCounts,
    window: Window,
    n_workers: int | None,
    steps_per_rollout: float | None,
    *,
    ended: bool | None,
) -> Progress:
    """Return the run's course as the estimator takes it."""
    seen = [s.t_s for s in workers.steps if s.t_s.size]
    first = min((float(t[0]) for t in seen), default=window.start_s)
    last = max((float(t[-1]) for t in seen), default=window.end_s)
    return Progress(
        steps=workers.steps,
        completed=workers.completed,
        start_s=first if window.first_rollout_s is None else window.first_rollout_s,
        end_s=last if window.last_rollout_s is None else window.last_rollout_s,
        n_completed=counts.completed,
        n_failed_attempts=counts.failed_attempts,
        n_abandoned=counts.abandoned,
        n_first_wave=counts.first_wave,
        reached_end=_ended(workers, counts) if ended is None else ended,
        active=workers.active,
        rollout_duration_s=workers.rollout_duration_s,
        steps_per_rollout=steps_per_rollout,
        n_workers=n_workers,
    )


def _course(progress: Progress, window: Window, throughput: ThroughputEstimate) -> Course:
    """Return the plot's time axis: its zero is what the estimate counts from, the first rollout."""
    span = max(1.0, window.end_s - progress.start_s)
    return Course(progress.start_s, span, throughput.steady_since_s)


def _draw(
    path: Path, data: Sequence[PanelData], header: PlotHeader, course: Course, missing: Missing
) -> tuple[Exception | None, PanelsRecord]:
    """Draw the plot; return why it is not there, if so, and which panels show something.

    Where that fails, for whatever reason, the plot is named as missing.
    """
    try:
        from rolltop.report.plot import draw_plot

        report = draw_plot(path, data, header, course)
    except Exception as error:  # noqa: BLE001 - a plot that fails must not cost the summary
        missing.reasons[path.name] = why = _why_not_drawn(error)
        return error, PanelsRecord(drawn=0, empty={d.panel.title: d.reason or why for d in data})
    return None, PanelsRecord(drawn=len(report.drawn), empty=report.empty)


def _why_not_drawn(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it could not be written: {error.strerror or error}"
    return f"it could not be drawn: {error}"


def _name_missing(
    reasons: dict[str, str],
    scrapes: ScrapeQuality,
    finding: BottleneckFinding,
    silent: Mapping[str, str],
) -> None:
    """Add what is missing as a whole: exporters, single targets, and the bottleneck."""
    if "up" not in reasons:
        for source in SOURCES:
            if source.job not in scrapes.jobs:
                reasons[source.title] = source.absence
            elif not scrapes.jobs[source.job]:
                reasons[source.title] = f"never answered a scrape (job {source.job})"
        for job, address in scrapes.silent:
            known = silent.get(address) if job == WORKER.job else None
            reasons[_page(job, address)] = known or f"never answered a scrape (job {job})"
    if finding.bottleneck is None:
        reasons["bottleneck"] = finding.reason or "not known"


def _page(job: str, address: str) -> str:
    """Return what the page of one target is called among what is missing."""
    title = next((source.title for source in SOURCES if source.job == job), job)
    return f"{title} {address}"


def _lost(reasons: Mapping[str, str], scrapes: ScrapeQuality, plot: str) -> tuple[str, ...]:
    """Return the names of what was started, or is always there, and is missing all the same."""
    expected = {source.title for source in SOURCES if source.job in scrapes.jobs}
    expected |= {_page(job, address) for job, address in scrapes.silent}
    expected |= {WORKER.title, "up", plot, "alpasim_step_duration_seconds_count"}
    return tuple(name for name in reasons if name in expected)
