"""What the runtime workers do."""

from __future__ import annotations

from rolltop.catalogue.panel import Kind, Panel, PanelQuery, Section, Threshold
from rolltop.catalogue.panels.parts import (
    NO_CALL,
    NO_STEP,
    mean_so_far,
    p95_by_service,
    p95_so_far,
    quantiles,
    read_off,
    slope,
    so_far,
)


def _loop_share(state: str, *, by: str = "") -> str:
    """Return the share that a state has of all time of the workers' event loops."""
    grouped = f"sum by ({by})" if by else "sum"
    states = {
        name: f"{grouped} ({slope(f'alpasim_event_loop_{name}_seconds_total')})"
        for name in ("idle", "poll", "work")
    }
    return f"{states[state]} / ({' + '.join(states.values())} > 0)"


WORKERS: tuple[Panel, ...] = (
    Panel(
        key="worker_steps",
        title="Steps per second, by worker",
        unit="steps/s",
        section=Section.WORKERS,
        colour_by="worker_id",
        queries=(
            PanelQuery(
                f"sum by (worker_id) ({slope('alpasim_step_duration_seconds_count')})",
                "worker {worker_id}",
            ),
        ),
        series=("alpasim_step_duration_seconds_count",),
        empty_reason=NO_STEP,
        description="A worker that stands still is not to be seen in the total.",
    ),
    Panel(
        key="active_rollouts",
        title="Rollouts under way, by worker",
        unit="rollouts",
        section=Section.WORKERS,
        kind=Kind.STACK,
        colour_by="worker_id",
        queries=(
            PanelQuery(
                "sum by (worker_id) (alpasim_renderer_active_rollouts{$run})",
                "worker {worker_id}",
            ),
        ),
        series=("alpasim_renderer_active_rollouts",),
        empty_reason="no worker says how many rollouts it drives",
        description="Falls when there are no more to start; a worker that starves has fewer.",
    ),
    Panel(
        key="loop_work",
        title="Event loop at work, by worker",
        unit="share of time",
        section=Section.WORKERS,
        colour_by="worker_id",
        queries=(PanelQuery(_loop_share("work", by="worker_id"), "worker {worker_id}"),),
        series=("alpasim_event_loop_work_seconds_total",),
        empty_reason="no worker profiles its event loop",
        y_max=1.05,
        thresholds=(Threshold(1.0, "always at work"),),
        description="A worker whose loop is always at work is itself the limit: more workers help.",
    ),
    Panel(
        key="loop",
        title="Event loop, mean of the workers",
        unit="share of time",
        section=Section.WORKERS,
        kind=Kind.STACK,
        colour_by="",
        queries=tuple(PanelQuery(_loop_share(s), s) for s in ("work", "poll", "idle")),
        series=("alpasim_event_loop_idle_seconds_total",),
        empty_reason="no worker profiles its event loop",
        y_max=1.05,
        description="Idle: nothing to do; poll: asking for events while callbacks are ready.",
    ),
    Panel(
        key="blocking",
        title="An answer waits for the loop, rough 95th percentile",
        unit="s",
        section=Section.WORKERS,
        queries=(p95_by_service("alpasim_rpc_blocking_seconds"),),
        series=("alpasim_rpc_blocking_seconds_bucket",),
        empty_reason=NO_CALL,
        description="From the loop learning of a call's end to its caller's resumption. "
        + read_off(5, "0.1 ms", "500 ms"),
    ),
    Panel(
        key="gc",
        title="Garbage collection, by worker",
        unit="ms per s",
        section=Section.WORKERS,
        colour_by="worker_id",
        queries=(
            PanelQuery(
                f"1000 * sum by (worker_id) ({slope('alpasim_gc_total_duration_seconds')})",
                "worker {worker_id}",
            ),
        ),
        series=("alpasim_gc_total_duration_seconds",),
        empty_reason="no worker profiles its garbage collector",
        description="Of a worker's time, what its garbage collector takes.",
    ),
    Panel(
        key="job_queue",
        title="Rollouts that wait to be started",
        unit="rollouts",
        section=Section.WORKERS,
        queries=(PanelQuery("max(alpasim_job_queue_depth{$run})", "waiting"),),
        series=("alpasim_job_queue_depth",),
        empty_reason="no process reports the queue of rollouts",
        description="Falls to zero when the last rollouts are under way.",
    ),
    Panel(
        key="scheduler_wait",
        title="A rollout waits for its slots, mean so far",
        unit="s",
        section=Section.WORKERS,
        colour_by="",
        queries=(
            PanelQuery(
                mean_so_far("alpasim_renderer_scheduler_wait_seconds", by="kind"),
                "{kind}",
            ),
        ),
        series=("alpasim_renderer_scheduler_wait_seconds_sum",),
        empty_reason="no worker says how long a rollout waited for its slots",
        description="Until a rollout has a slot of every service, by the kind of its scheduling.",
    ),
    Panel(
        key="barrier",
        title="A step waits for observations, rough percentiles",
        unit="s",
        section=Section.WORKERS,
        colour_by="",
        queries=quantiles("alpasim_observation_barrier_seconds"),
        series=("alpasim_observation_barrier_seconds_bucket",),
        empty_reason="no worker has a barrier before the policy",
        description="From the last observation that was sent to the last that was received. "
        + read_off(5, "1 ms", "5 s"),
    ),
    Panel(
        key="scene_cache",
        title="Scene cache, so far",
        unit="requests",
        section=Section.WORKERS,
        colour_by="",
        queries=(
            PanelQuery(
                so_far("rolltop_scene_cache_requests_total", by="result"),
                "{result}",
            ),
        ),
        series=("rolltop_scene_cache_requests_total",),
        empty_reason="the simulator does not report a scene cache",
        description="A miss loads a scene.",
    ),
    Panel(
        key="scene_load",
        title="A scene is loaded, so far, rough percentile",
        unit="s",
        section=Section.WORKERS,
        colour_by="",
        queries=(
            PanelQuery(
                mean_so_far("rolltop_scene_load_seconds"),
                "mean",
            ),
            PanelQuery(
                p95_so_far("rolltop_scene_load_seconds"),
                "95th percentile",
            ),
        ),
        series=("rolltop_scene_load_seconds_bucket",),
        empty_reason="the simulator does not report the loading of scenes",
        description="Time to load a scene that the cache did not hold. "
        + read_off(10, "10 ms", "60 s"),
    ),
    Panel(
        key="worker_rollouts",
        title="Rollouts completed, by worker",
        unit="rollouts, whole run",
        section=Section.WORKERS,
        kind=Kind.BARS,
        colour_by="worker_id",
        queries=(
            PanelQuery(
                so_far("alpasim_rollouts_total", 'status="completed"', by="worker_id"),
                "worker {worker_id}",
            ),
        ),
        series=("alpasim_rollouts_total",),
        empty_reason="no worker counted rollouts",
        description="Whether the workers did equal parts.",
    ),
)
