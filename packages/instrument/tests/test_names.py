from __future__ import annotations

import itertools

import pytest
from rolltop_instrument import names

SPECIFIED = {
    "alpasim_rpc_duration_seconds": ("histogram", ("service", "method")),
    "alpasim_rpc_blocking_seconds": ("histogram", ("service", "method")),
    "alpasim_rpc_queue_depth_at_start_latest": ("gauge", ("service",)),
    "rolltop_rpc_calls_total": ("counter", ("service", "endpoint")),
    "rolltop_rpc_failures_total": ("counter", ("service", "code")),
    "rolltop_rpc_endpoint_seconds_total": ("counter", ("service", "endpoint")),
    "rolltop_rpc_endpoint_queue_seconds_total": ("counter", ("service", "endpoint")),
    "rolltop_rpc_endpoint_service_seconds_total": ("counter", ("service", "endpoint")),
    "rolltop_rpc_server_queue_seconds": ("histogram", ("service",)),
    "rolltop_rpc_server_service_seconds": ("histogram", ("service",)),
    "rolltop_rpc_retries_total": ("counter", ("service",)),
    "alpasim_rollout_duration_seconds": ("histogram", ()),
    "alpasim_step_duration_seconds": ("histogram", ()),
    "alpasim_rollouts_total": ("counter", ("status",)),
    "rolltop_rollouts_abandoned_total": ("counter", ()),
    "rolltop_first_wave_rollouts_total": ("counter", ()),
    "alpasim_renderer_active_rollouts": ("gauge", ()),
    "alpasim_renderer_rollouts_started_total": ("counter", ("kind",)),
    "alpasim_renderer_scheduler_wait_seconds": ("histogram", ("kind",)),
    "alpasim_observation_barrier_seconds": ("histogram", ()),
    "alpasim_job_queue_depth": ("gauge", ()),
    "alpasim_simulation_elapsed_seconds": ("gauge", ()),
    "rolltop_scene_load_seconds": ("histogram", ()),
    "rolltop_scene_cache_requests_total": ("counter", ("result",)),
    "rolltop_service_batch_size": ("histogram", ("service",)),
    "alpasim_event_loop_idle_seconds_total": ("counter", ()),
    "alpasim_event_loop_poll_seconds_total": ("counter", ()),
    "alpasim_event_loop_work_seconds_total": ("counter", ()),
    "alpasim_gc_total_duration_seconds": ("gauge", ()),
    "alpasim_gc_max_duration_seconds": ("gauge", ()),
    "alpasim_gc_collection_count_total": ("counter", ()),
    "rolltop_run_info": ("gauge", ("run", "version", "topology")),
}


def test_the_names_on_the_wire_are_those_specified() -> None:
    assert {m.name: (m.kind, m.labels) for m in names.METRICS} == SPECIFIED


@pytest.mark.parametrize("metric", names.METRICS, ids=lambda m: m.name)
def test_a_name_keeps_the_conventions(metric: names.Metric) -> None:
    assert metric.help.endswith(".")
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "histogram") == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    if metric.unit:
        assert metric.family.endswith(f"_{metric.unit}")
    assert not set(metric.labels) & {"worker_id", "run_uuid", "run_name", "node", "job", "le"}


def test_call_durations_resolve_half_a_millisecond_to_a_minute_by_about_two() -> None:
    bounds = names.RPC_DURATION.buckets
    assert (bounds[0], bounds[-1]) == (0.0005, 60.0)
    assert max(b / a for a, b in itertools.pairwise(bounds)) <= 3
    assert 0.005 in bounds


@pytest.mark.parametrize(
    "metric", [names.RPC_BLOCKING, names.RPC_SERVER_QUEUE, names.RPC_SERVER_SERVICE]
)
def test_the_many_histograms_have_eight_buckets_with_the_last(metric: names.Metric) -> None:
    assert len([*metric.buckets, float("inf")]) == 8
