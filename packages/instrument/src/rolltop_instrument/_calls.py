"""Recording of calls: a call that ends leaves a note, and the notes are added up for the page.

Between two calls the processor's caches hold the simulator's work, so that each line of ours costs
several times what it costs in a loop. A note is one append; added up are many at once. Label
look-ups are done once for each method of an instance.
"""

from __future__ import annotations

import asyncio
import re
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable

from rolltop_instrument import names
from rolltop_instrument._bounds import OTHER, Bound
from rolltop_instrument._cells import LONGEST_S, Cell, Registry

MAX_SERVICES = 64
"""Services that get series of their own."""
MAX_METHODS = 64
"""Pairs of service and method that do."""
MAX_INSTANCES = 1024
"""Instances, of all services together, that do."""
MAX_CODES = 32
"""Statuses of a service that do: gRPC has 17, but an exception may bring a name of its own."""

_NOTES_KEPT = 256
"""Notes that wait for a reader; then they are added up without one."""
_LONGEST_US = int(LONGEST_S * 1e6)

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_DURATION_BOUNDS = names.RPC_DURATION.buckets
_BLOCKING_BOUNDS = names.RPC_BLOCKING.buckets
_QUEUE_BOUNDS = names.RPC_SERVER_QUEUE.buckets
_SERVICE_BOUNDS = names.RPC_SERVER_SERVICE.buckets


def method_label(path: str | bytes) -> str:
    """The ``method`` label of a gRPC path: its last part in snake_case.

    Example:
        >>> method_label("/sim.Renderer/BatchRenderRgb")
        'batch_render_rgb'
    """
    text = path.decode("utf-8", "replace") if isinstance(path, bytes) else path
    return _HUMPS.sub("_", text.rpartition("/")[2]).lower()


Said = tuple[float, float] | str | None
"""What a server says of its times: seconds of waiting and of serving, or as it sends them."""
_Note = tuple["CallSite", float, float | None, Said, str | None]


def server_times(said: Said) -> tuple[float, float] | None:
    """Seconds of waiting and serving; None where the server does not say.

    Example:
        >>> server_times("1500,20000")
        (0.0015, 0.02)
    """
    if not isinstance(said, str):
        return said
    try:
        queue_text, service_text = said.split(",")
        queue_us, service_us = int(queue_text), int(service_text)
    except ValueError:
        return None
    if 0 <= queue_us <= _LONGEST_US and 0 <= service_us <= _LONGEST_US:
        return queue_us / 1e6, service_us / 1e6
    return None


class Service:
    """One service as this worker calls it: its load and its failures."""

    __slots__ = (
        "_codes", "_failures", "_registry", "depth", "in_flight", "name", "retries", "server",
    )  # fmt: skip

    def __init__(self, name: str, registry: Registry) -> None:
        self.name = name
        self._registry = registry
        self.in_flight = 0
        self.depth = registry.cell(names.RPC_QUEUE_DEPTH, name)
        self.retries = registry.cell(names.RPC_RETRIES, name)
        self.server: tuple[Cell, Cell] | None = None
        self._failures: dict[str, Cell] = {
            code: registry.cell(names.RPC_FAILURES, name, code) for code in names.KNOWN_CODES
        }
        self._codes = Bound(MAX_CODES - len(self._failures), f"statuses of {name}")

    def failed(self, code: str) -> None:
        """Count a call that ended with ``code``."""
        cell = self._failures.get(code)
        if cell is None:
            code = code if self._codes.admits(code) else OTHER
            cell = self._failures[code] = self._registry.cell(names.RPC_FAILURES, self.name, code)
        cell[0] += 1

    def server_cells(self) -> tuple[Cell, Cell]:
        """The two server histograms, which exist from the first time that a server says."""
        if self.server is None:
            self.server = (
                self._registry.cell(names.RPC_SERVER_QUEUE, self.name),
                self._registry.cell(names.RPC_SERVER_SERVICE, self.name),
            )
        return self.server


class Endpoint:
    """One instance of a service, ``renderer-3``."""

    __slots__ = ("_name", "_registry", "_service", "calls", "seconds", "server")

    def __init__(self, service: str, name: str, registry: Registry) -> None:
        self._service = service
        self._name = name
        self._registry = registry
        self.calls = registry.cell(names.RPC_CALLS, service, name)
        self.seconds = registry.cell(names.RPC_ENDPOINT_SECONDS, service, name)
        self.server: tuple[Cell, Cell] | None = None

    def server_cells(self) -> tuple[Cell, Cell]:
        """Summed waiting and serving, which exist from the first time that the server says."""
        if self.server is None:
            key = (self._service, self._name)
            self.server = (
                self._registry.cell(names.RPC_ENDPOINT_QUEUE_SECONDS, *key),
                self._registry.cell(names.RPC_ENDPOINT_SERVICE_SECONDS, *key),
            )
        return self.server


class CallSite:
    """Calls of one method of one instance: ``begin``, then ``end`` exactly once."""

    __slots__ = (
        "_blocking", "_book", "_duration", "_endpoint", "_make_endpoint", "_notes", "service",
    )  # fmt: skip

    def __init__(
        self,
        service: Service,
        method: str,
        make_endpoint: Callable[[], Endpoint],
        registry: Registry,
        book: CallBook,
    ) -> None:
        self.service = service
        self._duration = registry.cell(names.RPC_DURATION, service.name, method)
        self._blocking = registry.cell(names.RPC_BLOCKING, service.name, method)
        self._make_endpoint = make_endpoint
        self._endpoint: Endpoint | None = None
        self._book = book
        self._notes = book.notes

    def begin(self) -> None:
        """A call starts: it is in flight from now."""
        service = self.service
        service.in_flight = service.depth[0] = service.in_flight + 1
        if self._endpoint is None:  # it is called for the first time
            self._endpoint = self._make_endpoint()

    def end(
        self,
        seconds: float,
        blocking_s: float | None = None,
        said: Said = None,
        code: str | None = None,
    ) -> None:
        """A call has ended.

        Args:
            seconds: Its duration as its caller saw it.
            blocking_s: From its completion to the caller's resumption; None if nobody waited.
            said: What the server says of its times; None if it does not say.
            code: The status, None for OK.
        """
        service = self.service
        service.in_flight -= 1
        if not service.in_flight:
            service.depth[0] = 0
        notes = self._notes
        notes.append((self, seconds, blocking_s, said, code))
        if len(notes) >= _NOTES_KEPT:
            self._book.add_up(wait=False)

    def add(self, seconds: float, blocking_s: float | None, said: Said, code: str | None) -> None:
        """Add a call that has ended to the series."""
        cell = self._duration
        cell[bisect_left(_DURATION_BOUNDS, seconds)] += 1
        cell[-1] += seconds
        if blocking_s is not None:
            cell = self._blocking
            cell[bisect_left(_BLOCKING_BOUNDS, blocking_s)] += 1
            cell[-1] += blocking_s
        endpoint = self._endpoint or self._make_endpoint()
        endpoint.calls[0] += 1
        endpoint.seconds[0] += seconds
        times = server_times(said)
        if times is not None:
            queue_s, service_s = times
            waiting, serving = self.service.server or self.service.server_cells()
            waiting[bisect_left(_QUEUE_BOUNDS, queue_s)] += 1
            waiting[-1] += queue_s
            serving[bisect_left(_SERVICE_BOUNDS, service_s)] += 1
            serving[-1] += service_s
            waited, served = endpoint.server or endpoint.server_cells()
            waited[0] += queue_s
            served[0] += service_s
        if code is not None:
            self.service.failed(code)


class CallBook:
    """All services, instances and call sites of one worker."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._services: dict[str, Service] = {}
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._sites: dict[tuple[str, str, str], CallSite] = {}
        self._bounds = {
            "service": Bound(MAX_SERVICES, "services"),
            "method": Bound(MAX_METHODS, "methods"),
            "instance": Bound(MAX_INSTANCES, "instances"),
        }
        self.notes: deque[_Note] = deque()
        """Of calls that have ended and are not in the series yet."""
        self._creating = threading.RLock()
        self._adding_up = threading.RLock()
        registry.before_render(self.add_up)

    def add_up(self, *, wait: bool = True) -> None:
        """Bring the series to what the notes say; from any thread.

        Args:
            wait: While another thread is at it, wait for it; else leave it to that one.
        """
        lock = self._adding_up
        if not lock.acquire(blocking=wait):
            return
        try:
            notes = self.notes
            while notes:
                try:
                    site, seconds, blocking_s, said, code = notes.popleft()
                except IndexError:  # a signal's handler came in between, and added up itself
                    return
                site.add(seconds, blocking_s, said, code)
        finally:
            lock.release()

    def clear_in_child(self) -> None:
        """In the child of a fork: leave what calls left to the parent, and its locks."""
        self._creating = threading.RLock()
        self._adding_up = threading.RLock()
        self.notes.clear()

    def _bounded(self, kind: str, name: str, *of: str) -> str:
        """The name, or ``other`` for a host that makes up ever new ones."""
        return name if self._bounds[kind].admits((*of, name)) else OTHER

    def service_label(self, name: str) -> str:
        """What the service of that name is recorded as."""
        with self._creating:
            return self._bounded("service", name)

    def service(self, name: str) -> Service:
        """The service of that name; its counters exist at 0 from now."""
        with self._creating:
            label = self._bounded("service", name)
            found = self._services.get(label)
            if found is None:
                found = self._services[label] = Service(label, self._registry)
            return found

    def _endpoint(self, service: str, name: str) -> Endpoint:
        key = (service, name)
        with self._creating:
            found = self._endpoints.get(key)
            if found is None:
                found = self._endpoints[key] = Endpoint(service, name, self._registry)
            return found

    def site(self, service: str, method: str, endpoint: str) -> CallSite:
        """The call site of a method of an instance."""
        found = self._sites.get((service, method, endpoint))
        return self._new_site(service, method, endpoint) if found is None else found

    def _new_site(self, service: str, method: str, endpoint: str) -> CallSite:
        """Make a call site, within the bounds; whoever comes second gets the first one's."""
        with self._creating:
            called = self.service(service)
            name = called.name
            method = self._bounded("method", method, name)
            endpoint = self._bounded("instance", endpoint, name)
            key = (name, method, endpoint)
            found = self._sites.get(key)
            if found is None:
                found = self._sites[key] = CallSite(
                    called, method, lambda: self._endpoint(name, endpoint), self._registry, self
                )
            return found


def status_of(error: BaseException) -> str:
    """The status code that an exception stands for: gRPC's own where it has one."""
    try:
        code = getattr(error, "code", None)
        name = getattr(code(), "name", None) if callable(code) else None
    except Exception:  # noqa: BLE001 - somebody else's exception class
        name = None
    if isinstance(name, str):
        return name
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    if isinstance(error, TimeoutError):
        return "DEADLINE_EXCEEDED"
    return "UNAVAILABLE" if isinstance(error, ConnectionError) else "UNKNOWN"
