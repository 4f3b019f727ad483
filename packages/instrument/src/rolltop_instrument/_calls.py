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
from rolltop_instrument._cells import Cell, Registry
from rolltop_instrument._guest import warn

MAX_METHODS = 64
"""Pairs of service and method that get series of their own: label values must be bounded."""

_NOTES_KEPT = 256
"""Notes that wait for a reader; then they are added up without one."""
_LONGEST_US = 10**14
"""Three years: what says more is no time."""

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

    __slots__ = ("_failures", "_registry", "depth", "in_flight", "name", "retries", "server")

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

    def failed(self, code: str) -> None:
        """Count a call that ended with ``code``."""
        cell = self._failures.get(code)
        if cell is None:
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
        self._overflowed = False
        self._methods: set[tuple[str, str]] = set()
        self.notes: deque[_Note] = deque()
        """Of calls that have ended and are not in the series yet."""
        self._adding_up = threading.Lock()
        registry.before_render(self.add_up)

    def add_up(self, *, wait: bool = True) -> None:
        """Bring the series to what the notes say; from any thread.

        Args:
            wait: While another thread is at it, wait for it; else leave it to that one.
        """
        if not self._adding_up.acquire(blocking=wait):
            return
        try:
            notes = self.notes
            while notes:
                site, seconds, blocking_s, said, code = notes.popleft()
                site.add(seconds, blocking_s, said, code)
        finally:
            self._adding_up.release()

    def _bounded(self, service: str, method: str) -> str:
        """The method, or ``other`` for a host that makes up ever new ones."""
        if (service, method) in self._methods:
            return method
        if len(self._methods) < MAX_METHODS:
            self._methods.add((service, method))
            return method
        if not self._overflowed:
            self._overflowed = True
            warn("more than %d methods: further ones are recorded as 'other'", MAX_METHODS)
        return "other"

    def service(self, name: str) -> Service:
        """The service of that name; its counters exist at 0 from now."""
        found = self._services.get(name)
        if found is None:
            found = self._services[name] = Service(name, self._registry)
        return found

    def _endpoint(self, service: str, name: str) -> Endpoint:
        key = (service, name)
        found = self._endpoints.get(key)
        if found is None:
            found = self._endpoints[key] = Endpoint(service, name, self._registry)
        return found

    def site(self, service: str, method: str, endpoint: str) -> CallSite:
        """The call site of a method of an instance."""
        method = self._bounded(service, method)
        key = (service, method, endpoint)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = CallSite(
                self.service(service),
                method,
                lambda: self._endpoint(service, endpoint),
                self._registry,
                self,
            )
        return found


def status_of(error: BaseException) -> str:
    """The status code that an exception stands for: gRPC's own where it has one."""
    code = getattr(error, "code", None)
    if callable(code):
        try:
            name = getattr(code(), "name", None)
        except Exception:  # noqa: BLE001 - somebody else's exception class
            name = None
        if isinstance(name, str):
            return name
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    if isinstance(error, TimeoutError):
        return "DEADLINE_EXCEEDED"
    return "UNAVAILABLE" if isinstance(error, ConnectionError) else "UNKNOWN"
