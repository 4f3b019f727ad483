"""Draw a run's plot again from the data that it left, also if it was killed before it had one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from rolltop.files import read_file
from rolltop.lifecycle.expected import planned_pages
from rolltop.lifecycle.judged import read_judged
from rolltop.lifecycle.rollouts import RolloutWatch, parse_requested
from rolltop.lifecycle.view import open_view
from rolltop.model.run import RolloutCounts, RunIdentity
from rolltop.report.last_move import last_move_s
from rolltop.report.reader import RunReader, Window
from rolltop.report.run_report import make_report
from rolltop.report.summary import read_summary

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.lifecycle.view import View
    from rolltop.model.run import RunPaths
    from rolltop.report.run_report import RunReport
    from rolltop.report.summary import RunSummary


_METADATA_BYTES_MAX = 64 << 10
_ROLLOUTS_BYTES_MAX = 512 << 20
_SLACK_S = 2.0
"""Between a rollout's end and the last sample of the run."""


def replot(paths: RunPaths, *, output: Path | None = None) -> RunReport:
    """Draw ``metrics_plot.png``, into the run directory unless ``output`` names a file.

    The run's data are read on a copy; nothing else of the run is touched. A run that said what it
    judged over is judged over the same again; of one that was killed the data decide, up to where
    its work came to its end.

    Raises:
        AnalysisError: the run has no samples.
        DependencyError: there is no Prometheus.
        PrometheusError: its data cannot be read.
    """
    watch = RolloutWatch(paths.rollouts, requested=_requested(paths))
    counts = watch.refresh()
    summary = _summary(paths)
    judged = read_judged(paths.events)
    identity = read_identity(paths)
    with open_view(paths) as view:
        return make_report(
            view.prometheus,
            identity=identity,
            plot=output or paths.plot,
            n_workers=summary.topology.nr_workers if summary else None,
            counts=RolloutCounts(**summary.rollouts.model_dump()) if summary else counts,
            window=judged.window if judged else _window(view, watch, summary, identity),
            scrape_interval_s=judged.interval_s if judged else None,
            topology_name=(summary.topology.name or "") if summary else "",
            steps_per_rollout=watch.steps_per_rollout,
            reached_end=judged.reached_end if judged else None,
            pages=planned_pages(paths),
        )


def read_identity(paths: RunPaths) -> RunIdentity:
    """Return who a run was by its metadata; what they do not say is empty.

    A time without an offset, as AlpaSim writes it, is taken as UTC: it orders, it does not measure.
    """
    try:
        loaded: Any = yaml.safe_load(read_file(paths.metadata, max_bytes=_METADATA_BYTES_MAX))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        loaded = None
    said: dict[str, Any] = loaded if isinstance(loaded, dict) else {}
    return RunIdentity(
        run_uuid=str(said.get("run_uuid") or ""),
        run_name=str(said.get("run_name") or paths.run_dir.name),
        user=str(said.get("user") or said.get("run_user") or ""),
        started=_time(said.get("run_time")),
        slurm_job_id=str(said.get("slurm_job_id") or ""),
    )


def _time(said: object) -> datetime:
    try:
        moment = said if isinstance(said, datetime) else datetime.fromisoformat(str(said))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _requested(paths: RunPaths) -> frozenset[tuple[str, str]]:
    """Return the rollouts that were asked for, none where the run does not say."""
    try:
        text = read_file(paths.rollouts_file, max_bytes=_ROLLOUTS_BYTES_MAX).decode(
            errors="replace"
        )
    except OSError:
        return frozenset()
    return parse_requested(text.splitlines())


def _summary(paths: RunPaths) -> RunSummary | None:
    try:
        return read_summary(paths.summary)
    except (OSError, ValueError):
        return None


def _window(
    view: View, watch: RolloutWatch, summary: RunSummary | None, identity: RunIdentity
) -> Window:
    """Return the time to look at of a run that does not say it: that of its samples, while it ran.

    It ends with the last rollout or step, whichever is later: then the run was stopped, or killed.
    """
    started_s = summary.times.started.timestamp() if summary else 0.0
    span = view.span or (started_s, started_s + 1.0)
    first_rollout_s, last_rollout_s = rollout_times(watch, span)
    whole = Window(*span)
    reader = RunReader.detect(view.prometheus, identity.run_uuid, whole)
    ends = [each for each in (last_rollout_s, last_move_s(reader, whole)) if each is not None]
    return Window(
        start_s=span[0],
        end_s=min(span[1], max(ends, default=span[1])),
        first_rollout_s=first_rollout_s,
        last_rollout_s=last_rollout_s,
    )


def rollout_times(
    watch: RolloutWatch, span: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return when the first rollout started and the last ended, unix seconds, None if not known.

    The results' modification times are taken, if the run's samples, from ``span[0]`` to
    ``span[1]``, are of that time: a copy of a run may have the times of the copying.
    """
    first_s, last_s = watch.first_started_s, watch.last_ended_s
    least_s, most_s = span[0] - _SLACK_S, span[1] + _SLACK_S
    known = [each for each in (first_s, last_s) if each is not None]
    if not all(least_s <= each <= most_s for each in known):
        return None, None
    return first_s, last_s
