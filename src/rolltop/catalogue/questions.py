"""What is asked of a run's Prometheus besides the panels, and the graphs that a view opens with."""

from __future__ import annotations

import math
from dataclasses import dataclass

_QUEUES = 'sum by (service) (alpasim_rpc_queue_depth_at_start_latest{{run_uuid="{uuid}"}})'
_BUSY = (
    "avg by (service) (sum by (service, endpoint)"
    ' (rate(rolltop_rpc_endpoint_service_seconds_total{{run_uuid="{uuid}"}}[15s])))'
)
_FAILED_ATTEMPTS = (
    'sum(max_over_time(alpasim_rollouts_total{{status="failed", run_uuid="{uuid}"}}[{range_s}s]))'
)


def queues(run_uuid: str) -> str:
    """Return the question for the calls in flight by service."""
    return _QUEUES.format(uuid=run_uuid)


def busy(run_uuid: str) -> str:
    """Return the question for the part of its time that an instance serves, by service."""
    return _BUSY.format(uuid=run_uuid)


def failed_attempts(run_uuid: str, range_s: float) -> str:
    """Return the question for the attempts at a rollout that failed in the last ``range_s``."""
    return _FAILED_ATTEMPTS.format(uuid=run_uuid, range_s=max(1, math.ceil(range_s)))


@dataclass(frozen=True)
class Graph:
    """An expression worth a look, and the series that it needs."""

    title: str
    expr: str
    needs: str


GRAPHS = (
    Graph(
        "steps per second",
        "sum(rate(alpasim_step_duration_seconds_count[30s]))",
        "alpasim_step_duration_seconds_count",
    ),
    Graph(
        "calls in flight by service",
        "sum by (service) (alpasim_rpc_queue_depth_at_start_latest)",
        "alpasim_rpc_queue_depth_at_start_latest",
    ),
    Graph(
        "mean seconds of a call by service",
        "sum by (service) (rate(alpasim_rpc_duration_seconds_sum[30s])) / "
        "sum by (service) (rate(alpasim_rpc_duration_seconds_count[30s]))",
        "alpasim_rpc_duration_seconds_sum",
    ),
)
ANYTHING = Graph("targets that answered", "up", "up")
