"""Every name of AlpaSim's rules and dashboard: kept here, or why not.

A name counts as kept where the catalogue really has it, so the table cannot claim more than is so;
a name that is neither kept nor explained is an error.
"""

from __future__ import annotations

from rolltop_instrument.names import METRICS

from rolltop.catalogue.panel import GPU, NODE, PROCESS
from rolltop.catalogue.rules import RULES
from scripts.pages.markdown import code, table

_INTERMEDIATE = "dropped: a step towards a percentile, which is now taken from the series itself"
_BY_METHOD = "dropped: `alpasim:rpc_duration_seconds:p95` has every method, this one too"
_AT_SIGHT = "dropped: the panel computes it over the width that is looked at"
_PROCESS = PROCESS.absence
_NODE = NODE.absence
_GPU = GPU.absence

_RULES = {
    "alpasim:rpc_duration_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:rpc_duration_seconds_bucket:rate1m": _INTERMEDIATE,
    "alpasim:rpc_blocking_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:rpc_duration_seconds:p95": "",
    "alpasim:rpc_blocking_seconds:p95": _AT_SIGHT,
    "alpasim:rpc_queue_depth_at_start_latest:max": "",
    "alpasim:rpc_queue_depth_at_start_latest:min": "",
    "alpasim:rollout_duration_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:step_duration_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:rollout_duration_seconds:p95": "",
    "alpasim:step_duration_seconds:p95": "",
    "alpasim:rollout_duration_seconds:p95_by_worker": _AT_SIGHT,
    "alpasim:driver_drive_rpc_duration_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:driver_drive_rpc_duration_seconds_bucket:rate1m": _INTERMEDIATE,
    "alpasim:driver_drive_rpc_duration_seconds:p95": _BY_METHOD,
    "alpasim:nre_render_rpc_duration_seconds_bucket:sum": _INTERMEDIATE,
    "alpasim:nre_render_rpc_duration_seconds_bucket:rate1m": _INTERMEDIATE,
    "alpasim:nre_render_rpc_duration_seconds:p95": _BY_METHOD,
    "alpasim:event_loop_idle_fraction:ratio": "",
    "alpasim:simulation_rollouts_completed:sum": "",
    "alpasim:simulation_seconds_per_rollout:avg": "",
    "alpasim:simulation_seconds_per_rollout:rate5m": (
        "dropped: a handful of events in a run of long rollouts; `rolltop:run_steps:rate1m` has"
        " hundreds of times more"
    ),
    "alpasim:process_cpu_utilization_percent:rate30s": _PROCESS,
    "alpasim:process_cpu_utilization_percent:max_by_group:rate30s": _PROCESS,
    "alpasim:process_cpu_utilization_percent:per_process:rate30s": _PROCESS,
    "alpasim:gpu_utilization_percent:avg": _GPU,
    "alpasim:gpu_memory_gb:avg": _GPU,
    "alpasim:gpu_memory_total_gb:avg": _GPU,
    "alpasim:gpu_memory_pressure_percent:avg": _GPU,
}

_SERIES = {
    "alpasim_rpc_duration_seconds": "",
    "alpasim_rpc_blocking_seconds": "",
    "alpasim_rollout_duration_seconds": "",
    "alpasim_step_duration_seconds": "",
    "alpasim_renderer_active_rollouts": "",
    "alpasim_renderer_rollouts_started_total": "",
    "alpasim_renderer_scheduler_wait_seconds": "",
    "alpasim_gc_total_duration_seconds": "",
    "alpasim_gc_max_duration_seconds": "",
    "alpasim_gc_collection_count_total": "",
    "alpasim_slurm_process_exporter_scrape_duration_seconds": _PROCESS,
    "namedprocess_namegroup_memory_bytes": _PROCESS,
    "namedprocess_namegroup_cpu_seconds_total": _PROCESS,
    "node_cpu_seconds_total": _NODE,
    "node_memory_MemAvailable_bytes": _NODE,
    "node_memory_MemTotal_bytes": _NODE,
    "DCGM_FI_DEV_GPU_UTIL": _GPU,
    "DCGM_FI_PROF_SM_ACTIVE": _GPU,
}


def rules() -> str:
    """Return AlpaSim's 29 recording rules."""
    return _table("rule", _RULES, {rule.record for rule in RULES})


def series() -> str:
    """Return the families that its dashboard reads besides its rules."""
    return _table("series", _SERIES, {metric.name for metric in METRICS})


def _table(head: str, names: dict[str, str], ours: set[str]) -> str:
    rows = []
    for name, reason in names.items():
        if name not in ours and not reason:
            msg = f"{name} is neither kept nor explained"
            raise ValueError(msg)
        rows.append((code(name), "kept" if name in ours else reason))
    return table((head, "here"), rows)
