"""What analysis needs to know of a run, asked of its Prometheus."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rolltop.analysis.bottleneck import InstanceLoad, RunLoad
from rolltop.analysis.samples import Samples, increase, spacing_s
from rolltop.analysis.steps import MethodLoad
from rolltop.analysis.throughput import busy_window
from rolltop.catalogue.duration import duration
from rolltop.catalogue.panel import WORKER
from rolltop.report.reader import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rolltop.model.series import Series
    from rolltop.report.reader import RunReader

LATE = 1.5
"""Scrape intervals between two samples from which one is missing."""
MIN_BUSY_INTERVALS = 6
"""Scrape intervals that the busy window must span to be looked at alone."""


@dataclass
class Missing:
    """Series and exporters that are not there, with the reason; what it is told is never lost."""

    reasons: dict[str, str] = field(default_factory=dict)

    def ask(self, name: str, query: Callable[[], list[Series]]) -> list[Series]:
        """Return what a query returns; where it fails or is empty, note ``name`` as missing."""
        try:
            answer = query()
        except Exception as error:  # noqa: BLE001 - an unknown is named, it does not end a report
            self.reasons[name] = f"the query failed: {error}"
            return []
        if not answer:
            self.reasons[name] = "no target of the run exports it"
        return answer


@dataclass(frozen=True)
class ScrapeQuality:
    """How well the run was scraped.

    ``interval_s``: between two scrapes of a worker. ``jobs``: job -> whether a target of it ever
    answered; ``intervals_s``: job -> seconds between two scrapes; ``silent``: (job, address) of
    every target that never answered. ``lost``: scrapes of workers that failed or did not take
    place while the worker lived, all of them where it never answered. ``gaps_s``: the time in
    which samples were missing, seconds, of the worst worker. None where nothing is known.
    """

    interval_s: float | None
    jobs: dict[str, bool] = field(default_factory=dict)
    intervals_s: dict[str, float] = field(default_factory=dict)
    silent: tuple[tuple[str, str], ...] = ()
    lost: int | None = None
    gaps_s: float | None = None


@dataclass(frozen=True)
class WorkerSamples:
    """What the workers counted, one entry per worker."""

    steps: tuple[Samples, ...]
    completed: tuple[Samples, ...]
    failed: tuple[Samples, ...]
    active: tuple[Samples, ...]
    rollout_duration_s: float | None


def ask_scrapes(reader: RunReader, window: Window, missing: Missing) -> ScrapeQuality:
    """Return how well the run was scraped, from the samples of ``up`` themselves."""
    seconds = int(window.range_s) + 1
    answer = missing.ask("up", lambda: reader.instant(f"up{{$run}}[{seconds}s]", window))
    targets: dict[str, list[Series]] = {}
    for series in answer:
        targets.setdefault(series.labels.get("job", ""), []).append(series)
    spacings = {job: spacing_s(_samples(ups, "instance")) for job, ups in targets.items()}
    workers = targets.get(WORKER.job, [])
    interval = spacings.get(WORKER.job)
    losses = [_losses(up, interval) for up in workers] if interval is not None else []
    return ScrapeQuality(
        interval,
        jobs={job: any(map(_answered, ups)) for job, ups in targets.items()},
        intervals_s={job: spacing for job, spacing in spacings.items() if spacing is not None},
        silent=tuple(
            (job, up.labels.get("instance", "?"))
            for job, ups in targets.items()
            for up in ups
            if not _answered(up)
        ),
        lost=sum(n for n, _ in losses) if losses else None,
        gaps_s=max(gap for _, gap in losses) if losses else None,
    )


def _answered(up: Series) -> bool:
    """Return whether a target ever answered a scrape."""
    return bool((up.values > 0).any())


def _losses(up: Series, interval_s: float) -> tuple[int, float]:
    """Return scrapes lost, and seconds without a sample, from the first answer to the last.

    Of a target that never answered, every scrape is lost.
    """
    answered = np.flatnonzero(up.values > 0)
    if answered.size == 0:
        return up.values.size, float(up.values.size * interval_s)
    between = np.diff(up.t_s[answered])
    late = between[between > LATE * interval_s]
    lost = int(np.round(late / interval_s - 1).sum())
    return lost, float((late - interval_s).sum())


def ask_workers(
    reader: RunReader, window: Window, step_s: float, missing: Missing
) -> WorkerSamples:
    """Return the workers' counters over the window."""

    def over(name: str, matchers: str = "", *, needed: bool = True) -> tuple[Samples, ...]:
        promql = f"sum by (worker_id) ({name}{{{matchers}$run}})"
        note = missing if needed else Missing()
        answer = note.ask(name, lambda: reader.over(promql, window, step_s))
        return _samples(answer, "worker_id")

    return WorkerSamples(
        steps=over("alpasim_step_duration_seconds_count"),
        completed=over("alpasim_rollouts_total", 'status="completed",'),
        failed=over("alpasim_rollouts_total", 'status="failed",', needed=False),
        active=over("alpasim_renderer_active_rollouts"),
        rollout_duration_s=_rollout_duration(reader, window, missing),
    )


def _rollout_duration(reader: RunReader, window: Window, missing: Missing) -> float | None:
    """Return the mean duration of a completed rollout, seconds."""
    look_back = f"[{int(window.range_s) + 1}s]"
    name = "alpasim_rollout_duration_seconds"
    promql = (
        f"sum(max_over_time({name}_sum{{$run}}{look_back}))"
        f" / (sum(max_over_time({name}_count{{$run}}{look_back})) > 0)"
    )
    answer = missing.ask(name, lambda: reader.instant(promql, window))
    return _scalar(answer)


def ask_load(
    reader: RunReader,
    window: Window,
    workers: WorkerSamples,
    interval_s: float,
    missing: Missing,
) -> RunLoad:
    """Return what the services and the workers did while the run was busy."""
    busy = busy_window(workers.steps) or (window.start_s, window.end_s)
    if busy[1] - busy[0] < MIN_BUSY_INTERVALS * interval_s:
        busy = (window.start_s, window.end_s)
    busy = round(busy[0], 3), round(max(busy[1], busy[0] + 1.0), 3)
    span = busy[1] - busy[0]

    def risen(name: str, by: str) -> dict[tuple[str, ...], float]:
        answer = missing.ask(name, lambda: _counts(reader, window, f"{name}{{$run}}", by, busy))
        labels = by.split(", ")
        return {tuple(s.labels.get(k, "") for k in labels): _rise(s, busy) for s in answer}

    return RunLoad(
        duration_s=span,
        n_steps=sum(increase(s, *busy) for s in workers.steps),
        instances=_instances(risen),
        methods=_methods(risen),
        worker_work=_loop_work(reader, window, busy, missing),
        cpu=_cpu(reader, window, busy),
        step_s=_step_duration(risen),
    )


def _counts(
    reader: RunReader, window: Window, selector: str, by: str, busy: tuple[float, float]
) -> list[Series]:
    """Return what counters had come to at both ends of a time; those of workers that left count."""
    look_back = duration(window.range_s)
    promql = f"sum by ({by}) (last_over_time({selector}[{look_back}]))"
    return reader.over(promql, Window(*busy), busy[1] - busy[0])


def _rise(counts: Series, busy: tuple[float, float]) -> float:
    """Return by how much a count rose; one that is not there at the begin has begun at 0."""
    at_begin = counts.t_s.size > 0 and counts.t_s[0] < (busy[0] + busy[1]) / 2
    began = float(counts.values[0]) if at_begin else 0.0
    return max(0.0, float(counts.values[-1]) - began)


def _instances(
    risen: Callable[[str, str], dict[tuple[str, ...], float]],
) -> tuple[InstanceLoad, ...]:
    """Return what each instance of a service did."""
    by = "service, endpoint"
    calls = risen("rolltop_rpc_calls_total", by)
    seconds = risen("rolltop_rpc_endpoint_seconds_total", by)
    queue = risen("rolltop_rpc_endpoint_queue_seconds_total", by)
    service = risen("rolltop_rpc_endpoint_service_seconds_total", by)
    return tuple(
        InstanceLoad(
            service=key[0],
            instance=key[1],
            calls=n,
            seconds=seconds.get(key, 0.0),
            queue_s=queue.get(key),
            service_s=service.get(key),
        )
        for key, n in calls.items()
    )


def _methods(
    risen: Callable[[str, str], dict[tuple[str, ...], float]],
) -> tuple[MethodLoad, ...]:
    """Return what was called, by method."""
    by = "service, method"
    seconds = risen("alpasim_rpc_duration_seconds_sum", by)
    calls = risen("alpasim_rpc_duration_seconds_count", by)
    return tuple(MethodLoad(key[0], key[1], n, seconds.get(key, 0.0)) for key, n in calls.items())


def _step_duration(risen: Callable[[str, str], dict[tuple[str, ...], float]]) -> float | None:
    """Return the mean duration of a step, seconds."""
    seconds, steps = (
        sum(risen(f"alpasim_step_duration_seconds_{part}", "job").values())
        for part in ("sum", "count")
    )
    return seconds / steps if steps > 0 else None


def _loop_work(
    reader: RunReader, window: Window, busy: tuple[float, float], missing: Missing
) -> float | None:
    """Return the share of time that the workers' event loops were at work, their mean."""
    name = "alpasim_event_loop_work_seconds_total"
    promql = f"avg(deriv({name}{{$run}}[{duration(busy[1] - busy[0])}]))"
    return _scalar(missing.ask(name, lambda: reader.instant(promql, window, at_s=busy[1])))


def _cpu(reader: RunReader, window: Window, busy: tuple[float, float]) -> dict[str, float]:
    """Return the cores that each group of processes used; a run without the exporter has none."""
    promql = (
        "sum by (groupname) (deriv(namedprocess_namegroup_cpu_seconds_total"
        f"{{$run}}[{duration(busy[1] - busy[0])}]))"
    )
    answer = Missing().ask("", lambda: reader.instant(promql, window, at_s=busy[1]))
    return {s.labels["groupname"]: float(s.values[-1]) for s in answer if "groupname" in s.labels}


def _samples(series: Iterable[Series], label: str) -> tuple[Samples, ...]:
    """Return series as samples, named by a label."""
    return tuple(Samples(s.labels.get(label, ""), s.t_s, s.values) for s in series)


def _scalar(answer: list[Series]) -> float | None:
    """Return the one value of an answer; None where there is none, or it is not finite."""
    if not answer or answer[0].values.size == 0:
        return None
    value = float(answer[0].values[-1])
    return value if np.isfinite(value) else None
