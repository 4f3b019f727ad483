"""What a launch will start, before anything is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolltop.model.target import TargetGroup


class Role(StrEnum):
    """What a process is for; processes start in this order and stop in the reverse."""

    PROMETHEUS = "prometheus"
    EXPORTER = "exporter"
    DEVICE = "device"
    SERVICE = "service"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class HealthKind(StrEnum):
    """How a process shows that it is ready."""

    NONE = "none"
    TCP = "tcp"
    HTTP = "http"
    GRPC = "grpc"


@dataclass(frozen=True)
class HealthCheck:
    """How to ask a process whether it is ready; ``path`` is for HTTP only."""

    kind: HealthKind = HealthKind.NONE
    path: str = "/"
    timeout_s: float = 60.0


@dataclass(frozen=True)
class ProcessPlan:
    """One process. ``name`` is unique in the run (``renderer-3``) and names its log."""

    name: str
    role: Role
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    """What is set beside the launcher's own environment."""
    service: str | None = None
    node: str = "localhost"
    gpu: int | None = None
    port: int | None = None
    metrics_port: int | None = None
    health: HealthCheck = field(default_factory=HealthCheck)
    group: str | None = None
    oom_patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchPlan:
    """Everything that a launch starts, in the order of its start."""

    processes: tuple[ProcessPlan, ...]
    files: dict[str, str] = field(default_factory=dict)
    """Files to write before the start: name relative to the run directory -> text."""
    warnings: tuple[str, ...] = ()
    targets: tuple[TargetGroup, ...] = ()
    """What the run's Prometheus scrapes; none where telemetry is off."""
    prometheus_port: int | None = None
    topology_digest: str = ""

    def of_role(self, role: Role) -> tuple[ProcessPlan, ...]:
        """Return the processes of one role, in their order."""
        return tuple(p for p in self.processes if p.role is role)
