"""How fast the run goes."""

from __future__ import annotations

from rolltop.catalogue.panel import Kind, Panel, PanelQuery, Section
from rolltop.catalogue.panels.parts import (
    NO_STEP,
    at_most,
    mean_so_far,
    p95_so_far,
    quantiles,
    read_off,
    slope,
    so_far,
)

_COMPLETED = 'status="completed"'
_ROLLOUT_P95 = p95_so_far("alpasim_rollout_duration_seconds")
_ELAPSED = "max(last_over_time(alpasim_simulation_elapsed_seconds{$run}[$range]))"
_STEPS = f"(sum({slope('alpasim_step_duration_seconds_count')}) > 0)"
_STEP = f"sum({slope('alpasim_step_duration_seconds_sum')}) / {_STEPS}"
_CALLS = slope("alpasim_rpc_duration_seconds_sum")
_OWN = f"clamp_min({_STEP} - (sum({_CALLS}) or vector(0)) / {_STEPS}, 0)"

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
                f"{_ELAPSED} / ({so_far('alpasim_rollouts_total', _COMPLETED)} > 0)",
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
        title="Duration of a step, rough percentiles",
        unit="s",
        section=Section.SPEED,
        queries=quantiles("alpasim_step_duration_seconds"),
        series=("alpasim_step_duration_seconds_bucket",),
        empty_reason=NO_STEP,
        description="Over the last seconds; what a rollout waits for, again and again. "
        + read_off(3, "5 ms", "30 s"),
    ),
    Panel(
        key="rollout_duration",
        title="Duration of a rollout, so far, rough percentile",
        unit="s",
        section=Section.SPEED,
        queries=(
            PanelQuery(
                mean_so_far("alpasim_rollout_duration_seconds"),
                "mean",
            ),
            PanelQuery(at_most(_ROLLOUT_P95, _ELAPSED), "95th percentile"),
        ),
        series=("alpasim_rollout_duration_seconds_bucket",),
        empty_reason="no rollout was completed",
        description="Completed rollouts since the start; their `result.json` have it exactly. "
        + read_off(1.6, "1 s", "600 s"),
    ),
    Panel(
        key="step_time",
        title="Where a step's time goes (calls may overlap)",
        unit="s per step",
        section=Section.SPEED,
        kind=Kind.STACK,
        queries=(
            PanelQuery(
                f"sum by (service) ({_CALLS}) / on() group_left() {_STEPS}",
                "{service}",
            ),
            PanelQuery(
                f'label_replace({_OWN}, "service", "runtime", "", "")',
                "in worker and waiting",
            ),
        ),
        series=("alpasim_step_duration_seconds_sum", "alpasim_step_duration_seconds_count"),
        empty_reason=NO_STEP,
        description="The mean step: its calls, and the rest, which the worker works or waits. "
        "Calls that run side by side count each: their sum may exceed the step, and leaves no rest "
        "then.",
    ),
)
