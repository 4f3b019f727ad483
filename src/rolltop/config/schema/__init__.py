"""The schema of a run's configuration and of a simulator's description."""

from __future__ import annotations

from rolltop.config.schema.run import (
    ChosenSimulator,
    Endpoint,
    Fault,
    Placement,
    Ports,
    Run,
    RunConfig,
    Runtime,
    Telemetry,
)
from rolltop.config.schema.sim import (
    Health,
    Process,
    Scenes,
    Scheduler,
    Service,
    Simulator,
    StepsPerRollout,
    Worker,
)

__all__ = [
    "ChosenSimulator",
    "Endpoint",
    "Fault",
    "Health",
    "Placement",
    "Ports",
    "Process",
    "Run",
    "RunConfig",
    "Runtime",
    "Scenes",
    "Scheduler",
    "Service",
    "Simulator",
    "StepsPerRollout",
    "Telemetry",
    "Worker",
]
