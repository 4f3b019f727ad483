"""What the services do: how busy they are, who waits for them, what fails."""

from __future__ import annotations

from rolltop.catalogue.panel import Kind, Panel, PanelQuery, Section, Threshold
from rolltop.catalogue.panels.parts import (
    NO_CALL,
    NO_SERVER_TIME,
    mean_by_endpoint,
    mean_by_service,
    mean_so_far,
    p95_by_service,
    p95_so_far,
    read_off,
    slope,
    so_far,
)

SERVICES: tuple[Panel, ...] = (
    Panel(
        key="instances_busy",
        title="How busy the instances are",
        unit="share of time",
        section=Section.SERVICES,
        queries=(
            PanelQuery(
                f"sum by (service) ({slope('rolltop_rpc_endpoint_service_seconds_total')})"
                " / count by (service) (count by (service, endpoint)"
                " (last_over_time(rolltop_rpc_calls_total{$run}[$range])))",
                "{service}",
            ),
        ),
        series=("rolltop_rpc_endpoint_service_seconds_total",),
        empty_reason=NO_SERVER_TIME,
        y_max=1.05,
        thresholds=(Threshold(1.0, "always busy"),),
        description="Mean over a service's instances. The highest is the limit unless all are low.",
    ),
    Panel(
        key="calls",
        title="Calls per second",
        unit="calls/s",
        section=Section.SERVICES,
        queries=(
            PanelQuery(
                f"sum by (service) ({slope('alpasim_rpc_duration_seconds_count')})",
                "{service}",
            ),
        ),
        series=("alpasim_rpc_duration_seconds_count",),
        empty_reason=NO_CALL,
        description="Calls that ended, of all workers.",
    ),
    Panel(
        key="rpc_mean",
        title="Duration of a call, mean",
        unit="s",
        section=Section.SERVICES,
        queries=(mean_by_service("alpasim_rpc_duration_seconds"),),
        series=("alpasim_rpc_duration_seconds_sum",),
        empty_reason=NO_CALL,
        description="As the caller sees it: waiting, serving and the way there and back.",
    ),
    Panel(
        key="rpc_p95",
        title="Duration of a call, rough 95th percentile",
        unit="s",
        section=Section.SERVICES,
        queries=(p95_by_service("alpasim_rpc_duration_seconds"),),
        series=("alpasim_rpc_duration_seconds_bucket",),
        empty_reason=NO_CALL,
        description="As the caller sees it: waiting, serving and the way there and back. "
        + read_off(3, "0.5 ms", "60 s"),
    ),
    Panel(
        key="server_queue",
        title="A call waits in the service, mean",
        unit="s",
        section=Section.SERVICES,
        queries=(mean_by_service("rolltop_rpc_server_queue_seconds"),),
        series=("rolltop_rpc_server_queue_seconds_sum",),
        empty_reason=NO_SERVER_TIME,
        description="From a call's arrival to its turn: what more instances would shorten.",
    ),
    Panel(
        key="server_service",
        title="A call is served, mean",
        unit="s",
        section=Section.SERVICES,
        queries=(mean_by_service("rolltop_rpc_server_service_seconds"),),
        series=("rolltop_rpc_server_service_seconds_sum",),
        empty_reason=NO_SERVER_TIME,
        description="From a call's turn to its answer: what a faster service would shorten.",
    ),
    Panel(
        key="queue_depth",
        title="Calls in flight of a worker, max and min",
        unit="calls",
        section=Section.SERVICES,
        queries=(
            PanelQuery(
                "max by (service) (max_over_time("
                "alpasim_rpc_queue_depth_at_start_latest{$run}[$window]))",
                "{service} max",
            ),
            PanelQuery(
                "min by (service) (avg_over_time("
                "alpasim_rpc_queue_depth_at_start_latest{$run}[$window]))",
                "{service} min",
            ),
        ),
        series=("alpasim_rpc_queue_depth_at_start_latest",),
        empty_reason=NO_CALL,
        description="Busiest and idlest worker. A low minimum is a worker that starves.",
    ),
    Panel(
        key="failures",
        title="Failures and retries, so far",
        unit="calls or attempts",
        section=Section.SERVICES,
        queries=(
            PanelQuery(so_far("alpasim_rollouts_total", 'status="failed"'), "failed attempts"),
            PanelQuery(
                so_far("rolltop_rpc_failures_total", by="service, code") + " > 0",
                "{service} {code}",
            ),
            PanelQuery(
                so_far("rolltop_rpc_retries_total", by="service") + " > 0",
                "{service} retried",
            ),
        ),
        series=("alpasim_rollouts_total", "rolltop_rpc_failures_total"),
        empty_reason="no attempt at a rollout and no call has failed, or none was counted",
        description="Attempts at a rollout that failed, and the calls behind them.",
    ),
    Panel(
        key="endpoint_service",
        title="A call is served, mean by instance",
        unit="s, whole run",
        section=Section.SERVICES,
        kind=Kind.BARS,
        queries=(mean_by_endpoint("rolltop_rpc_endpoint_service_seconds_total"),),
        series=("rolltop_rpc_endpoint_service_seconds_total", "rolltop_rpc_calls_total"),
        empty_reason=NO_SERVER_TIME,
        description="One slow instance among many stands out here.",
    ),
    Panel(
        key="endpoint_queue",
        title="A call waits, mean by instance",
        unit="s, whole run",
        section=Section.SERVICES,
        kind=Kind.BARS,
        queries=(mean_by_endpoint("rolltop_rpc_endpoint_queue_seconds_total"),),
        series=("rolltop_rpc_endpoint_queue_seconds_total", "rolltop_rpc_calls_total"),
        empty_reason=NO_SERVER_TIME,
        description="Rollouts that are unevenly spread over the instances stand out here.",
    ),
    Panel(
        key="method_mean",
        title="Duration of a call, mean by method",
        unit="s, whole run",
        section=Section.SERVICES,
        kind=Kind.BARS,
        queries=(
            PanelQuery(
                mean_so_far("alpasim_rpc_duration_seconds", by="service, method"),
                "{service} {method}",
            ),
        ),
        series=("alpasim_rpc_duration_seconds_sum",),
        empty_reason=NO_CALL,
        description="Which of a service's methods takes the time.",
    ),
    Panel(
        key="method_p95",
        title="Duration of a call, rough 95th percentile by method",
        unit="s, whole run",
        section=Section.SERVICES,
        kind=Kind.BARS,
        queries=(
            PanelQuery(
                p95_so_far("alpasim_rpc_duration_seconds", by="service, method"),
                "{service} {method}",
            ),
        ),
        series=("alpasim_rpc_duration_seconds_bucket",),
        empty_reason=NO_CALL,
        description="Which of a service's methods takes long now and then. "
        + read_off(3, "0.5 ms", "60 s"),
    ),
)
