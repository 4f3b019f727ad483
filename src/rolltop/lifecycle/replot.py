"""Draw a run's plot again from the data that it left, also if it was killed before it had one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from rolltop.lifecycle.rollouts import RolloutWatch
from rolltop.lifecycle.view import open_view
from rolltop.model.run import RunIdentity
from rolltop.report.reader import Window
from rolltop.report.run_report import make_report
from rolltop.report.summary import read_summary

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.lifecycle.view import View
    from rolltop.model.run import RunPaths
    from rolltop.report.run_report import RunReport
    from rolltop.report.summary import RunSummary


def replot(paths: RunPaths, *, output: Path | None = None) -> RunReport:
    """Draw ``metrics_plot.png``, into the run directory unless ``output`` names a file.

    The run's data are read on a copy; nothing else of the run is touched.

    Raises:
        DependencyError: there is no Prometheus.
        PrometheusError: the run has no data.
    """
    watch = RolloutWatch(paths.rollouts, requested=_requested(paths))
    counts = watch.refresh()
    summary = _summary(paths)
    with open_view(paths) as view:
        return make_report(
            view.prometheus,
            identity=read_identity(paths),
            plot=output or paths.plot,
            n_workers=summary.topology.nr_workers if summary else None,
            counts=counts,
            window=_window(view, watch, summary),
            topology_name=(summary.topology.name or "") if summary else "",
            steps_per_rollout=watch.steps_per_rollout,
        )


def read_identity(paths: RunPaths) -> RunIdentity:
    """Return who a run was by its metadata; what they do not say is empty.

    A time without an offset, as AlpaSim writes it, is taken as UTC: it orders, it does not measure.
    """
    try:
        loaded: Any = yaml.safe_load(paths.metadata.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
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


def _requested(paths: RunPaths) -> int:
    """Return how many rollouts were asked for, 0 where the run does not say."""
    try:
        with paths.rollouts_file.open(encoding="utf-8", errors="replace") as file:
            return sum(1 for line in file if line.strip())
    except OSError:
        return 0


def _summary(paths: RunPaths) -> RunSummary | None:
    try:
        return read_summary(paths.summary)
    except (OSError, ValueError):
        return None


def _window(view: View, watch: RolloutWatch, summary: RunSummary | None) -> Window:
    """Return the time to look at: that of the samples, cut where the rollouts ended."""
    started_s = summary.times.started.timestamp() if summary else 0.0
    first_s, last_s = view.span or (started_s, started_s + 1.0)
    return Window(
        start_s=first_s,
        end_s=last_s,
        first_rollout_s=watch.first_started_s,
        last_rollout_s=watch.last_ended_s,
    )
