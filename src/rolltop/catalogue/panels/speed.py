"""How fast the run goes."""

from __future__ import annotations

from rolltop.catalogue.panel import Kind, Panel, PanelQuery, Section
from rolltop.catalogue.panels.parts import (
    NO_CALL,
    NO_STEP,
    mean_so_far,
    p95_so_far,
    quantiles,
    read_off,
    slope,
    so_far,
)

_COMPLETED = 'status="completed"'

SPEED: tuple[Panel, ...] = (
    Panel(
        key="rollouts",
        title="Rollouts",
        unit="rollouts",
        section=Section.SPEED,
        queries=(
            PanelQuery(so_far("alpasim_rollouts_total", _COMPLETED), "completed"),
            PanelQuery(so_far("alpasim_rollouts_total", 'status="failed"'), "failed attempts"),
            PanelQuery(so_far("rolltop_rollouts_abandoned_total"), "abandoned"),
        ),
        series=("alpasim_rollouts_total", "rolltop_rollouts_abandoned_total"),
        empty_reason="no worker counted rollouts",
        description="Rollouts so far. An attempt that failed is not a rollout.",
    ),
    Panel(
        key="seconds_per_rollout",
        title="Seconds per completed rollout, so far",
        unit="s",
        section=Section.SPEED,
        queries=(
            PanelQuery(
                "max(last_over_time(alpasim_simulation_elapsed_seconds{$run}[$range]))"
                f" / ({so_far('alpasim_rollouts_total', _COMPLETED)} > 0)",
                "since the start",
            ),
        ),
        series=("alpasim_simulation_elapsed_seconds", "alpasim_rollouts_total"),
        empty_reason="no rollout was completed",
        description="Time since the start over completed rollouts; still falls while it warms up.",
    ),
    Panel(
        key="step_rate",
        title="Steps per second",
        unit="steps/s",
        section=Section.SPEED,
        queries=(
            PanelQuery(f"sum({slope('alpasim_step_duration_seconds_count')})", "all workers"),
        ),
        series=("alpasim_step_duration_seconds_count",),
        empty_reason=NO_STEP,
        description="The speed of the run: throughput is estimated from this counter.",
    ),
    Panel(
        key="step_duration",
        title="Duration of a step",
        unit="s",
        section=Section.SPEED,
        queries=quantiles("alpasim_step_duration_seconds"),
        series=("alpasim_step_duration_seconds_bucket",),
        empty_reason=NO_STEP,
        description="Over the last seconds; what a rollout waits for, again and again. "
        + read_off(1.6, "20 ms", "2 s"),
    ),
    Panel(
        key="rollout_duration",
        title="Duration of a rollout, so far",
        unit="s",
        section=Section.SPEED,
        queries=(
            PanelQuery(
                mean_so_far("alpasim_rollout_duration_seconds"),
                "mean",
            ),
            PanelQuery(
                p95_so_far("alpasim_rollout_duration_seconds"),
                "95th percentile",
            ),
        ),
        series=("alpasim_rollout_duration_seconds_bucket",),
        empty_reason="no rollout was completed",
        description="Completed rollouts since the start. " + read_off(1.6, "1 s", "600 s"),
    ),
    Panel(
        key="step_time",
        title="Where a step's time goes",
        unit="s of calls per step",
        section=Section.SPEED,
        kind=Kind.STACK,
        queries=(
            PanelQuery(
                f"sum by (service) ({slope('alpasim_rpc_duration_seconds_sum')})"
                " / on() group_left()"
                f" (sum({slope('alpasim_step_duration_seconds_count')}) > 0)",
                "{service}",
            ),
        ),
        series=("alpasim_rpc_duration_seconds_sum", "alpasim_step_duration_seconds_count"),
        empty_reason=NO_CALL,
        description="Calls that run side by side count each, so the sum may exceed the step.",
    ),
)
