"""The telemetry of one runtime worker: a context around its whole life."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial, wraps
from math import inf
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

from rolltop_instrument import names
from rolltop_instrument._bounds import OTHER, Bound
from rolltop_instrument._calls import CallBook
from rolltop_instrument._cells import Registry, observe
from rolltop_instrument._contexts import Call, Rollout, Timed
from rolltop_instrument._fork import in_forked_child
from rolltop_instrument._guest import fault, warn
from rolltop_instrument._page import Page
from rolltop_instrument._profiles import GcProfile, LoopProfile
from rolltop_instrument._readers import Reader, Readers
from rolltop_instrument._retry import Backoff, RetryOn, retry
from rolltop_instrument._settings import MAX_KINDS, interval_s, kinds_of, page_port_of
from rolltop_instrument._version import __version__

if TYPE_CHECKING:
    from grpc.aio import Channel, ClientInterceptor
    from prometheus_client import CollectorRegistry

P = ParamSpec("P")
T = TypeVar("T")

CENTRAL_INTERVAL_S = 10.0
"""How often a central Prometheus scrapes."""
_LINGER_INTERVALS = 2
_LOOP = (names.LOOP_IDLE, names.LOOP_POLL, names.LOOP_WORK)


def _guest(
    method: Callable[Concatenate[WorkerTelemetry, P], None],
) -> Callable[Concatenate[WorkerTelemetry, P], None]:
    """Record if enabled; an internal fault is logged once and stays here."""

    @wraps(method)
    def guarded(self: WorkerTelemetry, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.enabled:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault(method.__name__, problem)

    return guarded


class WorkerTelemetry:
    """Records what a worker does and serves it at ``http://host:port/metrics``.

    Use it as an async context manager around the worker's life, on the worker's event loop. It
    never raises into its host: a taken port or a fault of its own is one warning in the log.
    At its end it stays until whoever has read the page has read the last values, for two scrape
    intervals at the most. It belongs to the process that made it: in a forked child it is off.

    Args:
        worker_id: The label of all of this worker's series.
        run_uuid: The run; a reader that asks for another one gets 410.
        port: Port of the page, 0 for any, None for no page.
        host: Address of the page.
        run_name: The run's name, for people.
        version: What ``rolltop_run_info`` says of the version; ours by default.
        topology_digest: What ``rolltop_run_info`` says of the topology.
        scrape_interval_s: How often the run's own Prometheus scrapes.
        enabled: False makes everything a no-op.
        renderer_kinds: Kinds of scheduling whose series exist at 0 from the start.
    """

    def __init__(
        self,
        *,
        worker_id: str | int = "0",
        run_uuid: str = "",
        port: int | None = None,
        host: str = "127.0.0.1",
        run_name: str = "",
        version: str = __version__,
        topology_digest: str = "",
        scrape_interval_s: float = 1.0,
        enabled: bool = True,
        renderer_kinds: tuple[str, ...] = ("fifo",),
    ) -> None:
        self.enabled = enabled
        self.worker_id = str(worker_id)
        self.run_uuid = str(run_uuid)
        self.run_name = str(run_name)
        self._address = (host, port)
        self._scrape_interval_s = interval_s("scrape_interval_s", scrape_interval_s)
        self._lock = threading.RLock()
        self._kinds = Bound(MAX_KINDS, "kinds of scheduling")
        self._registry = Registry(names.METRICS, self.worker_id)
        self._book = CallBook(self._registry)
        self._loop_profile = LoopProfile()
        self._gc_profile = GcProfile()
        self._readers = Readers()
        self._page: Page | None = None
        self._began: float | None = None
        self._ending = False
        self._frozen = False
        self._inherited = False
        info = (self.run_uuid, str(version), str(topology_digest))
        self._create_known(kinds_of(renderer_kinds), info)
        self._registry.before_render(self._refresh)
        in_forked_child(self, WorkerTelemetry._turn_off_in_child)

    @classmethod
    def from_environment(
        cls,
        *,
        worker_id: str | int | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        environ: Mapping[str, str] = os.environ,
        **changes: Any,
    ) -> Self:
        """A worker's telemetry as its launcher says it in ``ROLLTOP_*`` variables.

        ``ROLLTOP_WORKER_ID``, ``ROLLTOP_METRICS_PORT``, ``ROLLTOP_RUN_UUID``,
        ``ROLLTOP_RUN_NAME``, ``ROLLTOP_TOPOLOGY_DIGEST``, ``ROLLTOP_SCRAPE_INTERVAL_S``;
        ``ROLLTOP_TELEMETRY=0`` turns it off. What is given goes before the environment. Outside of
        a run it is worker "0", and has a page only where ``port`` is given.

        Args:
            worker_id: The label of all of this worker's series.
            port: Port of the page, 0 for any. In a run leave it to the launcher, which reads the
                page at the port that it chose.
            host: Address of the page.
            environ: Where the variables are.
            changes: Other arguments of the class.
        """
        if worker_id is None:
            worker_id = environ.get("ROLLTOP_WORKER_ID", "0")
        if port is None:
            port = page_port_of("ROLLTOP_METRICS_PORT", environ.get("ROLLTOP_METRICS_PORT"))
        settings: dict[str, Any] = {
            "run_uuid": environ.get("ROLLTOP_RUN_UUID", ""),
            "run_name": environ.get("ROLLTOP_RUN_NAME", ""),
            "topology_digest": environ.get("ROLLTOP_TOPOLOGY_DIGEST", ""),
            "scrape_interval_s": interval_s(
                "ROLLTOP_SCRAPE_INTERVAL_S", environ.get("ROLLTOP_SCRAPE_INTERVAL_S", "1")
            ),
            "enabled": environ.get("ROLLTOP_TELEMETRY", "1") != "0",
        }
        return cls(worker_id=worker_id, port=port, host=host, **{**settings, **changes})

    def _create_known(self, kinds: tuple[str, ...], info: tuple[str, str, str]) -> None:
        """Create every child that is known from the start, so that its first event shows."""
        cell = self._registry.cell
        for metric in names.METRICS:
            if metric.appears == "start" and not metric.labels and metric not in _LOOP:
                cell(metric)
        for status in ("completed", "failed"):
            cell(names.ROLLOUTS, status)
        for result in ("hit", "miss"):
            cell(names.SCENE_CACHE_REQUESTS, result)
        for kind in filter(self._kinds.admits, kinds):
            cell(names.RENDERER_STARTED, kind)
            cell(names.RENDERER_WAIT, kind)
        cell(names.RUN_INFO, *info)[0] = 1

    # ---- life ----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Begin: profiles and page."""
        if self.enabled:
            try:
                self._start(asyncio.get_running_loop())
            except Exception as problem:  # noqa: BLE001 - never into the host
                fault("starting the telemetry", problem)
        elif self._inherited:
            warn("no telemetry: it was made before this process was forked, which needs its own")
        return self

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._began = perf_counter()
        self._loop_profile.start(loop)
        self._gc_profile.start()
        host, port = self._address
        if port is None:
            return
        try:
            self._page = Page(host, port, self.run_uuid, self._chunks, self._readers)
        except OSError as error:
            warn("no telemetry page at %s:%s: %s; the worker goes on without it", host, port, error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End: wait for the readers, then leave everything as it was found."""
        if not self.enabled:
            return
        try:
            self._freeze()
            await self._linger()
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("ending the telemetry", problem)
        finally:
            self._close()

    def _freeze(self) -> None:
        """Bring the last values, after whoever is at it, and take the hooks out."""
        self._ending = True
        self._registry.refresh()
        self._unhook()

    def _unhook(self) -> None:
        self._loop_profile.stop()
        self._gc_profile.stop()

    async def _linger(self) -> None:
        """Stay until each reader has the last values, for two of its intervals at the most."""
        if self._page is not None:
            patience_s: dict[Reader, float] = {
                "own": _LINGER_INTERVALS * self._scrape_interval_s,
                "central": _LINGER_INTERVALS * CENTRAL_INTERVAL_S,
            }
            await self._readers.linger(patience_s, expect_own=bool(self.run_uuid))

    def _close(self) -> None:
        page, self._page = self._page, None
        try:
            self._unhook()
            if page is not None:
                page.close()
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("closing the page", problem)

    def _turn_off_in_child(self) -> None:
        """This process is a fork: what has been recorded is its parent's, so are page and locks."""
        self.enabled = False
        self._inherited = self._frozen = True
        self._lock = threading.RLock()
        self._registry.clear_in_child()
        self._book.clear_in_child()
        page, self._page = self._page, None
        if page is not None:
            page.leave_to_parent()
        self._unhook()

    # ---- the page ------------------------------------------------------------------------

    @property
    def page_port(self) -> int | None:
        """The port that the page is served at; None while there is no page."""
        return None if self._page is None else self._page.port

    def render(self, *, openmetrics: bool = False) -> str:
        """The page as text, for a host that serves its own."""
        return self._registry.render(openmetrics=openmetrics)

    @property
    def registry(self) -> CollectorRegistry:
        """The series as a registry of prometheus_client, for a host that serves its own page."""
        from rolltop_instrument._collector import prometheus_registry

        return prometheus_registry(self._registry)

    def _chunks(self, openmetrics: bool) -> Iterator[str]:
        return self._registry.chunks(openmetrics=openmetrics)

    def _refresh(self) -> None:
        """Bring the values that are read off: elapsed time, loop and collector.

        For one thread at a time. One that begins when the end has come is the last to write.
        """
        if self._began is None or self._frozen:
            return
        last = self._ending
        cell = self._registry.cell
        cell(names.SIMULATION_ELAPSED)[0] = perf_counter() - self._began
        times = self._loop_profile.read()
        if times is not None:
            for metric, seconds in zip(_LOOP, times, strict=True):
                cell(metric)[0] = seconds
        collected = self._gc_profile.read()
        cell(names.GC_TOTAL)[0] = collected.total_s
        cell(names.GC_MAX)[0] = collected.max_s
        cell(names.GC_COUNT)[0] = collected.collections
        self._frozen = last

    # ---- rollouts ------------------------------------------------------------------------

    def rollout(self, *, first_wave: bool = False) -> Rollout:
        """A rollout, as an async context: completed if it ends, failed if it raises.

        Args:
            first_wave: It began part-way and is discarded: it counts apart, not as completed.
        """
        return Rollout(self._rollout_began, self._rollout_ended, first_wave=first_wave)

    @_guest
    def _rollout_began(self) -> None:
        with self._lock:
            self._registry.cell(names.RENDERER_ACTIVE)[0] += 1

    @_guest
    def _rollout_ended(self, seconds: float, failed: bool, first_wave: bool) -> None:
        with self._lock:
            self._registry.cell(names.RENDERER_ACTIVE)[0] -= 1
        if failed:
            self._count(names.ROLLOUTS, "failed")
        elif first_wave:
            self._count(names.FIRST_WAVE_ROLLOUTS)
        else:
            self._observe(names.ROLLOUT_DURATION, seconds)
            self._count(names.ROLLOUTS, "completed")

    def step(self) -> Timed:
        """A step of a rollout, as a context: its duration, and one more step when it ends."""
        return Timed("step", partial(self._timed, names.STEP_DURATION))

    def observation_barrier(self) -> Timed:
        """The wait of a step until all of its observations are submitted, as a context."""
        return Timed("observation_barrier", partial(self._timed, names.OBSERVATION_BARRIER))

    @_guest
    def _timed(self, metric: names.Metric, seconds: float) -> None:
        self._observe(metric, seconds)

    @_guest
    def rollout_abandoned(self) -> None:
        """A rollout was given up after its last retry."""
        self._count(names.ROLLOUTS_ABANDONED)

    @_guest
    def first_wave_discarded(self) -> None:
        """A rollout of the first wave was discarded (``rollout(first_wave=True)`` says it too)."""
        self._count(names.FIRST_WAVE_ROLLOUTS)

    @_guest
    def renderer_started(self, *, kind: str = "fifo", waited_s: float = 0.0) -> None:
        """A rollout got its renderer, after waiting for it."""
        with self._lock:
            kind = kind if self._kinds.admits(kind) else OTHER
        self._count(names.RENDERER_STARTED, kind)
        self._observe(names.RENDERER_WAIT, waited_s, kind)

    @_guest
    def set_job_queue_depth(self, n: int) -> None:
        """Rollouts that wait; only the process that owns the queue says it."""
        depth = float(n)
        if 0 <= depth < inf:
            self._registry.cell(names.JOB_QUEUE_DEPTH)[0] = depth

    @_guest
    def scene_loaded(self, seconds: float = 0.0, *, hit: bool = False) -> None:
        """A scene was asked of the cache; if it was not there, it took ``seconds`` to load."""
        self._count(names.SCENE_CACHE_REQUESTS, "hit" if hit else "miss")
        if not hit:
            self._observe(names.SCENE_LOAD, seconds)

    @_guest
    def batch_size(self, service: str, n: int) -> None:
        """A service handled ``n`` requests in one batch."""
        self._observe(names.BATCH_SIZE, n, self._book.service_label(service))

    def _count(self, metric: names.Metric, *labels: str) -> None:
        with self._lock:
            self._registry.cell(metric, *labels)[0] += 1

    def _observe(self, metric: names.Metric, value: float, *labels: str) -> None:
        number = float(value)
        with self._lock:
            observe(self._registry.cell(metric, *labels), metric.buckets, number)

    # ---- calls ---------------------------------------------------------------------------

    def call(self, service: str, method: str, *, endpoint: str = "") -> Call:
        """A call that is not gRPC's, as an async context. Use it from the loop's thread.

        Args:
            service: Name of the service in the configuration.
            method: Name of the method.
            endpoint: Name of the instance, ``renderer-3``; the service's name by default.
        """
        if not self.enabled:
            return Call(None)
        try:
            return Call(self._book.site(service, method, endpoint or service))
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("call", problem)
            return Call(None)

    def grpc_interceptors(
        self, service: str, *, endpoint: str = "", rename_methods: Mapping[str, str] | None = None
    ) -> list[ClientInterceptor]:
        """Interceptors for a ``grpc.aio`` channel to one instance of a service.

        Args:
            service: Name of the service in the configuration.
            endpoint: Name of the instance, ``renderer-3``, never its address.
            rename_methods: Label of a method instead of its name, to count rare ones together:
                ``{"start_session": "session", "close_session": "session"}``. Each label of a
                service costs 29 series.

        Raises:
            ImportError: grpcio is not installed.
        """
        if not self.enabled:
            return []
        from rolltop_instrument._extras import require_grpc

        require_grpc()
        from rolltop_instrument.grpc_client import client_interceptors

        try:
            return client_interceptors(
                self._book, service, endpoint or service, rename_methods or {}
            )
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("grpc_interceptors", problem)
            return []

    def grpc_channel(
        self,
        channel: Channel,
        service: str,
        *,
        endpoint: str = "",
        rename_methods: Mapping[str, str] | None = None,
    ) -> Channel:
        """A ``grpc.aio`` channel to one instance, for stubs, whose calls are recorded.

        It does what ``grpc_interceptors`` do at less than half their cost, since gRPC drives every
        call that has an interceptor by a task of its own. Interceptors of the channel run inside.

        Args:
            channel: The channel; closing either closes it.
            service: Name of the service in the configuration.
            endpoint: Name of the instance, ``renderer-3``, never its address.
            rename_methods: As for ``grpc_interceptors``.
        """
        if not self.enabled:
            return channel
        try:
            from rolltop_instrument.grpc_channel import RecordingChannel

            wrapped: Any = RecordingChannel(
                channel, self._book, service, endpoint or service, rename_methods or {}
            )
        except Exception as problem:  # noqa: BLE001 - never into the host
            fault("grpc_channel", problem)
            return channel
        return cast("Channel", wrapped)

    async def retry(
        self,
        service: str,
        call: Callable[[], Awaitable[T]],
        *,
        attempts: int = 3,
        retry_on: RetryOn = None,
        backoff: Backoff | None = None,
    ) -> T:
        """Await ``call()`` up to ``attempts`` times; each retry counts for ``service``.

        Raises:
            ValueError: ``attempts`` is less than 1.
            Exception: The last attempt's error, or one that is not worth another attempt.
        """
        return await retry(
            call,
            attempts=attempts,
            retry_on=retry_on,
            backoff=backoff,
            on_retry=partial(self._retried, service),
        )

    @_guest
    def _retried(self, service: str) -> None:
        with self._lock:
            self._book.service(service).retries[0] += 1
