"""What a call costs its worker: the recording alone, and the whole client side."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Generator
from time import perf_counter, thread_time
from typing import Any

import grpc
import grpc.aio
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from rolltop_instrument import WorkerTelemetry, names
from rolltop_instrument._calls import CallBook
from rolltop_instrument._cells import Registry

from bench import undisturbed
from bench.rows import BenchRow

ROUNDS = 200
CALLS = 300
"""Short rounds, interleaved, so that a burst of a neighbour falls on both."""
PAUSE_S = 0.05


def run() -> list[BenchRow]:
    """Measure both."""
    return [rpc_recording(), rpc_interceptor()]


def rpc_recording() -> BenchRow:
    """Median microseconds of one call's metrics, beside the library's children's.

    Ours are a note, added up later: both count, in tens as a busy worker's between two scrapes.
    """
    book = CallBook(Registry(names.METRICS, "0"))
    ours, library = _our_recording(book), _library_recording()
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(_median_us(ours, book.add_up))
        theirs.append(_median_us(library))
    return BenchRow.at_most(
        "rpc_recording",
        statistics.median(mine),
        "us",
        bound=5.0,
        baseline=statistics.median(theirs),
    )


def _median_us(record: Callable[[], None], then: Callable[[], None] = lambda: None) -> float:
    """The median microseconds of one ``record()``, timed in tens with ``then()`` at their end."""
    group = range(10)
    times = []
    for _ in range(CALLS // 10):
        began = perf_counter()
        for _ in group:
            record()
        then()
        times.append((perf_counter() - began) * 1e5)
    return statistics.median(times)


def _our_recording(book: CallBook) -> Callable[[], None]:
    site = book.site("renderer", "batch_render_rgb", "renderer-3")

    def record() -> None:
        site.begin()
        site.end(0.0123, 0.0002, "4000,8000")

    return record


def _library_recording() -> Callable[[], None]:
    registry = CollectorRegistry()
    method, service, instance = (
        ("worker_id", "service", "method"),
        ("worker_id", "service"),
        ("worker_id", "service", "endpoint"),
    )

    def histogram(metric: names.Metric, labels: tuple[str, ...]) -> Histogram:
        return Histogram(
            metric.name, metric.help, labels, buckets=metric.buckets, registry=registry
        )

    duration, blocking = (
        histogram(names.RPC_DURATION, method),
        histogram(names.RPC_BLOCKING, method),
    )
    queue, serving = (
        histogram(names.RPC_SERVER_QUEUE, service),
        histogram(names.RPC_SERVER_SERVICE, service),
    )
    depth = Gauge("depth", "depth", service, registry=registry)
    calls = Counter("calls", "calls", instance, registry=registry)
    seconds = Counter("seconds", "seconds", instance, registry=registry)

    def record() -> None:
        depth.labels("0", "renderer").set(1)
        duration.labels("0", "renderer", "batch_render_rgb").observe(0.0123)
        blocking.labels("0", "renderer", "batch_render_rgb").observe(0.0002)
        queue.labels("0", "renderer").observe(0.004)
        serving.labels("0", "renderer").observe(0.008)
        calls.labels("0", "renderer", "renderer-3").inc()
        seconds.labels("0", "renderer", "renderer-3").inc(0.0123)

    return record


@grpc.aio.UnaryUnaryCall.register
class _InProcessCall:
    """A call that the loop completes in its next turn, with the stamps of a server."""

    _METADATA = grpc.aio.Metadata((names.TIMES_KEY, "4000,8000"))

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[bytes] = loop.create_future()
        self._callbacks: list[Callable[[Any], None]] = []
        loop.call_soon(self._complete)

    def _complete(self) -> None:
        self._future.set_result(b"")
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)

    def done(self) -> bool:
        return self._future.done()

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return self._METADATA

    def __await__(self) -> Generator[Any, None, bytes]:
        return (yield from self._future)


class _Empty(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await continuation(client_call_details, request)


def rpc_interceptor() -> BenchRow:
    """CPU microseconds that our interceptor adds to a call over one that does nothing.

    Adding up what the calls left is part of it.
    """
    return asyncio.run(_rpc_interceptor())


async def _rpc_interceptor() -> BenchRow:
    loop = asyncio.get_running_loop()
    details = grpc.aio.ClientCallDetails("/sim.Renderer/batch_render_rgb", None, None, None, None)

    async def continuation(_details: Any, _request: Any) -> Any:
        return _InProcessCall(loop)

    async def calls(interceptor: Any) -> float:
        began = thread_time()
        for _ in range(CALLS):
            await (await interceptor.intercept_unary_unary(continuation, details, b""))
        telemetry._book.add_up()
        return (thread_time() - began) / CALLS * 1e6

    telemetry = WorkerTelemetry(worker_id="0")
    interceptor = telemetry.grpc_interceptors("renderer", endpoint="renderer-3")[0]
    empty, full = [], []
    for _ in range(ROUNDS):
        empty.append(await calls(_Empty()))
        full.append(await calls(interceptor))
        await asyncio.sleep(PAUSE_S)
    added, base = undisturbed.difference(full, empty)
    return BenchRow.at_most("rpc_interceptor", added, "us", bound=10.0, baseline=base)
