"""The recording rules of a run, as data.

AlpaSim's rule names carry honest values here: completed rollouts only, ``sum(rate())`` and never
``rate(sum())``. New rules are named ``level:metric:operations``, in base units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from rolltop.catalogue.duration import duration

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Rule:
    """One recorded series; ``fast`` rules are evaluated every second, the others at leisure."""

    record: str
    expr: str
    description: str
    fast: bool = False


def _p95(series: str, extra: str = "") -> str:
    """Return the 95th percentile of a histogram over a minute, per run."""
    labels = f"run_uuid, run_name{extra}"
    return f"histogram_quantile(0.95, sum by ({labels}, le) (rate({series}_bucket[1m])))"


def _rate(series: str) -> str:
    """Return how fast a counter of all workers rises over a minute, per run."""
    return f"sum by (run_uuid, run_name) (rate({series}[1m]))"


WORKER_COMPLETED = "rolltop:worker_rollouts_completed:last"
"""A series that carries itself on: it must stand before those that read it."""

RULES: tuple[Rule, ...] = (
    Rule(
        "rolltop:run_steps:rate1m",
        _rate("alpasim_step_duration_seconds_count"),
        "Steps per second of the run, all workers.",
        fast=True,
    ),
    Rule(
        WORKER_COMPLETED,
        "sum by (run_uuid, run_name, worker_id)"
        ' (alpasim_rollouts_total{status="completed"})'
        f" or ({WORKER_COMPLETED} and on (run_uuid) alpasim_simulation_elapsed_seconds)",
        "Rollouts that a worker completed; of one that has left, for as long as its run goes on.",
    ),
    Rule(
        "alpasim:simulation_rollouts_completed:sum",
        f"sum by (run_uuid, run_name) ({WORKER_COMPLETED})",
        "Rollouts that were completed; no attempt that failed, none that was abandoned.",
    ),
    Rule(
        "alpasim:simulation_seconds_per_rollout:avg",
        "max by (run_uuid, run_name) (alpasim_simulation_elapsed_seconds)"
        " / (alpasim:simulation_rollouts_completed:sum > 0)",
        "Seconds since the start over completed rollouts; absent until one is completed.",
    ),
    Rule(
        "alpasim:step_duration_seconds:p95",
        _p95("alpasim_step_duration_seconds"),
        "95th percentile of a step's duration over a minute, read off buckets.",
    ),
    Rule(
        "alpasim:rollout_duration_seconds:p95",
        _p95("alpasim_rollout_duration_seconds"),
        "95th percentile of a rollout's duration over a minute, read off buckets.",
    ),
    Rule(
        "alpasim:rpc_duration_seconds:p95",
        _p95("alpasim_rpc_duration_seconds", ", method"),
        "95th percentile of a call's duration over a minute, for every method, read off buckets.",
    ),
    Rule(
        "alpasim:rpc_queue_depth_at_start_latest:max",
        "max by (run_uuid, run_name, service) (alpasim_rpc_queue_depth_at_start_latest)",
        "Calls in flight to a service of the busiest worker.",
    ),
    Rule(
        "alpasim:rpc_queue_depth_at_start_latest:min",
        "min by (run_uuid, run_name, service) (alpasim_rpc_queue_depth_at_start_latest)",
        "Calls in flight to a service of the idlest worker.",
    ),
    Rule(
        "alpasim:event_loop_idle_fraction:ratio",
        f"{_rate('alpasim_event_loop_idle_seconds_total')}"
        f" / ({_rate('alpasim_event_loop_idle_seconds_total')}"
        f" + {_rate('alpasim_event_loop_poll_seconds_total')}"
        f" + {_rate('alpasim_event_loop_work_seconds_total')})",
        "Share of the last minute that the workers' event loops were idle, mean of the workers.",
    ),
)


def render_rules(*, interval_s: float = 5.0, fast_interval_s: float = 1.0) -> str:
    """Return the rules as a Prometheus rule file: a fast group and one at ``interval_s``."""
    groups = (
        ("rolltop-fast", fast_interval_s, [rule for rule in RULES if rule.fast]),
        ("rolltop", interval_s, [rule for rule in RULES if not rule.fast]),
    )
    document = {"groups": [_group(*group) for group in groups]}
    return yaml.safe_dump(document, sort_keys=False, width=100)


def _group(name: str, interval_s: float, rules: Iterable[Rule]) -> dict[str, object]:
    """Return one group of a rule file."""
    return {
        "name": name,
        "interval": duration(interval_s),
        "rules": [{"record": rule.record, "expr": rule.expr} for rule in rules],
    }
