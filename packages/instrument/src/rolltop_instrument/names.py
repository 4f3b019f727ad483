"""Every name that a worker puts on the wire, as data.

This is the only place where these names, their labels, units and buckets are written down: the
page is rendered from it, and rolltop generates its catalogue and its reference page from it.
Names of AlpaSim are kept to the letter, so that its dashboards and rules work unchanged.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Appears = Literal["start", "use", "service", "call", "server"]

WORKER_LABEL = "worker_id"
"""The label that every series of a worker carries first."""

TIMES_KEY = "rolltop-times-us"
"""Trailing metadata ``1500,20000``: microseconds that the call waited in the server for a turn, and
that it was served for. One entry, since an entry costs more than what it holds."""

KNOWN_CODES = ("DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNKNOWN")
"""Status codes whose failure counters exist at 0 as soon as a service is known.

Those that faults have: UNKNOWN is what an exception in a handler makes. A counter that appears with
its first failure hides that one from ``rate()``.
"""

_RPC_SECONDS = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60,
)  # fmt: skip
_BLOCKING_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5)
_SERVER_SECONDS = (0.0005, 0.002, 0.01, 0.05, 0.2, 1, 5)
# A percentile is read off a bucket's bounds, so it may be off by their ratio: at most 1.6 for
# rollouts of 1 s to 600 s and steps of 20 ms to 2 s. Finer, or more of them, and a worker of five
# services of eleven methods in all has more than its 550 series.
_ROLLOUT_SECONDS = (
    0.1, 0.5, 1, 1.6, 2.5, 3.5, 5, 7, 10, 16, 25, 35, 50, 70, 100, 160, 250, 400, 600,
)  # fmt: skip
_STEP_SECONDS = (
    0.005, 0.01, 0.02, 0.032, 0.05, 0.07, 0.1, 0.14, 0.2, 0.32, 0.5, 0.7, 1, 1.4, 2, 5, 10, 30,
)  # fmt: skip
_BARRIER_SECONDS = (0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 5)
_WAIT_SECONDS = (0.01, 0.1, 0.5, 1, 5, 10, 60)
_LOAD_SECONDS = (0.01, 0.1, 0.5, 1, 5, 20, 60)
_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metric(NamedTuple):
    """One metric family.

    Attributes:
        name: As its samples are named; a counter's ends in ``_total``.
        kind: Its type.
        unit: Base unit, or "" for counts.
        labels: Labels besides ``worker_id``.
        help: One sentence on what it says.
        buckets: Upper bounds of a histogram, without ``+Inf``.
        appears: When its first child exists: at the ``start``, at the first ``use``, as soon as a
            ``service`` is known, at the first ``call``, or when a ``server`` says its times.
    """

    name: str
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    appears: Appears = "start"

    @property
    def family(self) -> str:
        """The name of the family in OpenMetrics: a counter's without ``_total``."""
        return self.name.removesuffix("_total") if self.kind == "counter" else self.name


def _counter(
    name: str, labels: tuple[str, ...], text: str, appears: Appears = "start", unit: str = ""
) -> Metric:
    return Metric(name, "counter", unit, labels, text, appears=appears)


def _gauge(
    name: str, labels: tuple[str, ...], text: str, appears: Appears = "start", unit: str = ""
) -> Metric:
    return Metric(name, "gauge", unit, labels, text, appears=appears)


def _histogram(  # noqa: PLR0917 - a table's columns
    name: str,
    labels: tuple[str, ...],
    text: str,
    buckets: tuple[float, ...],
    appears: Appears = "start",
    unit: str = "seconds",
) -> Metric:
    return Metric(name, "histogram", unit, labels, text, tuple(map(float, buckets)), appears)


RPC_DURATION = _histogram(
    "alpasim_rpc_duration_seconds",
    ("service", "method"),
    "Duration of a call as its caller sees it, from the send to the resumption of the caller.",
    _RPC_SECONDS,
    "call",
)
RPC_BLOCKING = _histogram(
    "alpasim_rpc_blocking_seconds",
    ("service", "method"),
    "Time from the loop learning of a call's completion to the resumption of who waits for it.",
    _BLOCKING_SECONDS,
    "call",
)
RPC_QUEUE_DEPTH = _gauge(
    "alpasim_rpc_queue_depth_at_start_latest",
    ("service",),
    "Calls of this worker in flight to the service when its latest call started; 0 when idle.",
    "service",
)
RPC_CALLS = _counter(
    "rolltop_rpc_calls_total",
    ("service", "endpoint"),
    "Calls that ended, per instance of a service.",
    "call",
)
RPC_FAILURES = _counter(
    "rolltop_rpc_failures_total",
    ("service", "code"),
    "Calls that ended with another status than OK.",
    "service",
)
RPC_ENDPOINT_SECONDS = _counter(
    "rolltop_rpc_endpoint_seconds_total",
    ("service", "endpoint"),
    "Summed duration of calls, per instance of a service.",
    "call",
    "seconds",
)
RPC_ENDPOINT_QUEUE_SECONDS = _counter(
    "rolltop_rpc_endpoint_queue_seconds_total",
    ("service", "endpoint"),
    "Summed time that calls waited in the server, per instance of a service.",
    "server",
    "seconds",
)
RPC_ENDPOINT_SERVICE_SECONDS = _counter(
    "rolltop_rpc_endpoint_service_seconds_total",
    ("service", "endpoint"),
    "Summed time that calls were served for, per instance of a service.",
    "server",
    "seconds",
)
RPC_SERVER_QUEUE = _histogram(
    "rolltop_rpc_server_queue_seconds",
    ("service",),
    "Time that a call waited in the server for a turn, as the server says.",
    _SERVER_SECONDS,
    "server",
)
RPC_SERVER_SERVICE = _histogram(
    "rolltop_rpc_server_service_seconds",
    ("service",),
    "Time that a call was served for, as the server says.",
    _SERVER_SECONDS,
    "server",
)
RPC_RETRIES = _counter(
    "rolltop_rpc_retries_total",
    ("service",),
    "Calls that the retry wrapper made again.",
    "service",
)
ROLLOUT_DURATION = _histogram(
    "alpasim_rollout_duration_seconds",
    (),
    "Duration of a completed rollout.",
    _ROLLOUT_SECONDS,
)
STEP_DURATION = _histogram(
    "alpasim_step_duration_seconds",
    (),
    "Duration of a completed step of a rollout; its count is the step counter.",
    _STEP_SECONDS,
)
ROLLOUTS = _counter(
    "alpasim_rollouts_total",
    ("status",),
    "Rollouts completed, and attempts at a rollout that failed.",
)
ROLLOUTS_ABANDONED = _counter(
    "rolltop_rollouts_abandoned_total",
    (),
    "Rollouts given up after the last retry.",
)
FIRST_WAVE_ROLLOUTS = _counter(
    "rolltop_first_wave_rollouts_total",
    (),
    "Rollouts of the first wave, started part-way and discarded.",
)
RENDERER_ACTIVE = _gauge(
    "alpasim_renderer_active_rollouts",
    (),
    "Rollouts that are under way in this worker.",
)
RENDERER_STARTED = _counter(
    "alpasim_renderer_rollouts_started_total",
    ("kind",),
    "Rollouts that got a renderer, by the kind of their scheduling.",
)
RENDERER_WAIT = _histogram(
    "alpasim_renderer_scheduler_wait_seconds",
    ("kind",),
    "Time that a rollout waited for a renderer.",
    _WAIT_SECONDS,
)
OBSERVATION_BARRIER = _histogram(
    "alpasim_observation_barrier_seconds",
    (),
    "Time that a step waited until all of its observations had been submitted.",
    _BARRIER_SECONDS,
)
JOB_QUEUE_DEPTH = _gauge(
    "alpasim_job_queue_depth",
    (),
    "Rollouts that wait to be started, reported by the one process that owns the queue.",
    "use",
)
SIMULATION_ELAPSED = _gauge(
    "alpasim_simulation_elapsed_seconds",
    (),
    "Time since the worker's telemetry began.",
    unit="seconds",
)
SCENE_LOAD = _histogram(
    "rolltop_scene_load_seconds",
    (),
    "Time to load a scene that the cache did not hold.",
    _LOAD_SECONDS,
)
SCENE_CACHE_REQUESTS = _counter(
    "rolltop_scene_cache_requests_total",
    ("result",),
    "Scenes asked of the cache.",
)
BATCH_SIZE = _histogram(
    "rolltop_service_batch_size",
    ("service",),
    "Requests that a service handled in one batch.",
    _BATCH_SIZES,
    "use",
    "",
)
LOOP_IDLE = _counter(
    "alpasim_event_loop_idle_seconds_total",
    (),
    "Time that the event loop waited with nothing to do.",
    unit="seconds",
)
LOOP_POLL = _counter(
    "alpasim_event_loop_poll_seconds_total",
    (),
    "Time that the event loop polled for events with callbacks ready, from one poll in seven.",
    unit="seconds",
)
LOOP_WORK = _counter(
    "alpasim_event_loop_work_seconds_total",
    (),
    "Time that the event loop ran callbacks, a callback that still runs included.",
    unit="seconds",
)
GC_TOTAL = _gauge(
    "alpasim_gc_total_duration_seconds",
    (),
    "Summed duration of garbage collections.",
    unit="seconds",
)
GC_MAX = _gauge(
    "alpasim_gc_max_duration_seconds",
    (),
    "Longest garbage collection of the last 30 to 60 seconds.",
    unit="seconds",
)
GC_COUNT = _counter(
    "alpasim_gc_collection_count_total",
    (),
    "Garbage collections.",
)
RUN_INFO = _gauge(
    "rolltop_run_info",
    ("run", "version", "topology"),
    "Always 1; says which run this worker belongs to.",
)

METRICS: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)
"""All families, in the order of the page."""
