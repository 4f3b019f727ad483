from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


def p95_of_buckets(bounds: tuple[float, ...], values: list[float]) -> float:
    """Return the 95th percentile as Prometheus reads it off a histogram of ``values``."""
    rank = 0.95 * len(values)
    counts = [sum(value <= bound for value in values) for bound in bounds]
    n = next(n for n, count in enumerate(counts) if count >= rank)
    low, below = (bounds[n - 1], counts[n - 1]) if n else (0.0, 0)
    return low + (bounds[n] - low) * (rank - below) / (counts[n] - below)


RANGES = [(names.ROLLOUT_DURATION, 1.0, 600.0), (names.STEP_DURATION, 0.02, 2.0)]


@pytest.mark.parametrize(("metric", "low", "high"), RANGES, ids=["rollout", "step"])
@given(data=st.data())
def test_the_95th_percentile_is_within_a_factor_of_the_true_one(
    metric: names.Metric, low: float, high: float, data: st.DataObject
) -> None:
    durations = st.floats(low, high, exclude_min=True)
    values = sorted(data.draw(st.lists(durations, min_size=1, max_size=60)))
    true = values[math.ceil(0.95 * len(values)) - 1]

    assert 1 / 1.6 - 1e-9 <= p95_of_buckets(metric.buckets, values) / true <= 1.6 + 1e-9


def test_rollouts_of_twelve_seconds_do_not_read_as_24() -> None:
    values = [8.6 + 3.3 * n / 37 for n in range(38)] + [12.3, 12.65]

    assert p95_of_buckets(names.ROLLOUT_DURATION.buckets, values) < 16


def test_no_bucket_that_earlier_runs_have_is_gone() -> None:
    rollout, step = names.ROLLOUT_DURATION.buckets, names.STEP_DURATION.buckets
    assert {0.1, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 600} <= set(rollout)
    assert {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30} <= set(step)
