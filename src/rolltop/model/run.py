"""A run: who it is, where its files lie, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Outcome(StrEnum):
    """How a run ended. UNKNOWN is never read as success."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILED = "node_failed"
    UNKNOWN = "unknown"


class ExitStatus(IntEnum):
    """What the command line returns. Where two hold: 2, 5, 4, 3, 1."""

    OK = 0
    SOME_ABANDONED = 1
    USAGE = 2
    PROCESS_FAILED = 3
    OUT_OF_MEMORY = 4
    CANCELLED = 5
    NOT_ENOUGH_DATA = 6
    TELEMETRY_MISSING = 7
    OUR_FAULT = 70


@dataclass(frozen=True)
class RunIdentity:
    """Who a run is. ``started`` is timezone-aware, UTC."""

    run_uuid: str
    run_name: str
    user: str
    started: datetime
    command: tuple[str, ...] = ()
    slurm_job_id: str = ""
    git_commit: str | None = None


@dataclass(frozen=True)
class Failure:
    """The process that ended a run: ``exit_status`` is None where it could not even start."""

    process: str
    exit_status: int | None
    reason: str
    log_tail: tuple[str, ...] = ()


@dataclass(frozen=True)
class RolloutCounts:
    """Rollouts of a run; an attempt or a retry is never a rollout."""

    requested: int
    completed: int = 0
    abandoned: int = 0
    failed_attempts: int = 0
    first_wave: int = 0
    scenes_failed: dict[str, int] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """Rollouts that reached an end, be it abandoned."""
        return self.completed + self.abandoned

    @property
    def left(self) -> int:
        """Rollouts that have not reached an end, nor were discarded with the first wave."""
        return max(0, self.requested - self.finished - self.first_wave)


@dataclass(frozen=True)
class RunPaths:
    """The only place that knows the names of a run directory's files."""

    run_dir: Path

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.run_dir / "config.yaml"

    @property
    def metadata(self) -> Path:
        """Who the run is, under AlpaSim's name."""
        return self.run_dir / "run_metadata.yaml"

    @property
    def plan(self) -> Path:
        """What was started, as planned."""
        return self.run_dir / "plan.json"

    @property
    def events(self) -> Path:
        """One JSON object a line: every start, end, failure and decision."""
        return self.run_dir / "events.jsonl"

    @property
    def summary(self) -> Path:
        """The run's result."""
        return self.run_dir / "summary.json"

    @property
    def plot(self) -> Path:
        """The run's picture."""
        return self.run_dir / "metrics_plot.png"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.run_dir / "logs"

    @property
    def rollouts(self) -> Path:
        """``<scene>/<uuid>/result.json`` per finished rollout."""
        return self.run_dir / "rollouts"

    @property
    def rollouts_file(self) -> Path:
        """The rollouts to drive, JSON lines."""
        return self.run_dir / "rollouts.jsonl"

    @property
    def endpoints_file(self) -> Path:
        """Service -> list of instances."""
        return self.run_dir / "endpoints.json"

    @property
    def faults_file(self) -> Path:
        """``sim.faults`` as JSON."""
        return self.run_dir / "faults.json"

    @property
    def prometheus(self) -> Path:
        """Everything of the run's Prometheus."""
        return self.run_dir / "prometheus"

    @property
    def prometheus_config(self) -> Path:
        """The scrape configuration."""
        return self.prometheus / "prometheus.yml"

    @property
    def targets(self) -> Path:
        """Folder of file-SD files."""
        return self.prometheus / "targets"

    @property
    def rules(self) -> Path:
        """Folder of recording rules."""
        return self.prometheus / "rules"

    @property
    def data(self) -> Path:
        """The time-series database."""
        return self.prometheus / "data"

    def log_of(self, process: str) -> Path:
        """Return the log of one process, ``logs/<process>.log``."""
        return self.logs / f"{process}.log"
