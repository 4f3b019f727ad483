"""A worker's page: ``/metrics`` over HTTP from a thread of its own.

The page is made in small pieces with pauses between them, since rendering holds the interpreter's
lock that the event loop needs. It notes who read what: the run's own Prometheus, or the central
one, which says ``from=central``, so that the worker can stay until each has its last values.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from time import monotonic, sleep
from typing import Any, ClassVar

from rolltop_instrument import _http
from rolltop_instrument._guest import fault
from rolltop_instrument._readers import Reader, Readers

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_MAX_CONNECTIONS = 32
_CLIENT_TIMEOUT_S = 15.0
"""A silent connection is closed after this; more than the central interval, to keep it open.

So is one that has not taken all of an answer by then.
"""
_HEAD_TIMEOUT_S = 5.0
"""For all of a request's head, from its first byte on."""
_RECEIVED = 65536
_PAUSE_S = 5e-5
_PAUSE_WITHOUT_DESCRIPTORS_S = 0.1
_CHUNK_CHARS = 16000


class _Incoming:
    """What a client sends, a line at a time, for as long as it does not dawdle.

    A limit for each byte would let a client that sends one now and then go on for ever: silence
    before a head is limited, and the head as a whole.
    """

    def __init__(self, connection: socket.socket, silence_s: float) -> None:
        self._connection = connection
        self._silence_s = silence_s
        self._unread = b""
        self._until_s: float | None = None

    def begin_head(self) -> None:
        """The next line is the first of a head."""
        self._until_s = monotonic() + _HEAD_TIMEOUT_S if self._unread else None

    def readline(self, size: int, /) -> bytes:
        """A line with its end; what there is, at the end or after ``size`` bytes.

        Raises:
            TimeoutError: The client has dawdled.
        """
        while (end := self._unread.find(b"\n", 0, size)) < 0 and len(self._unread) < size:
            if not self._receive():
                break
        length = size if end < 0 else end + 1
        line, self._unread = self._unread[:length], self._unread[length:]
        return line

    def _receive(self) -> bool:
        """Wait for more; False at the end of what is sent."""
        left_s = self._silence_s if self._until_s is None else self._until_s - monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        data = self._connection.recv(_RECEIVED)
        if self._until_s is None:
            self._until_s = monotonic() + _HEAD_TIMEOUT_S
        self._unread += data
        return bool(data)


class _Handler(StreamRequestHandler):
    server: _Server
    timeout: ClassVar[float] = _CLIENT_TIMEOUT_S
    wbufsize = 0  # written in one go, whose time is limited as a whole
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer one request after the other, until the client or the request ends it."""
        incoming = _Incoming(self.connection, self.timeout)
        last = False
        while not last:
            try:
                incoming.begin_head()
                request = _http.read_request(incoming)
            except _http.RefusedError as refusal:
                self._send(refusal.status, TEXT, f"{refusal.status}\n".encode(), last=True)
                return
            if request is None or not self.server.places.answer(self.connection):
                return
            self._answer(request)
            self.server.places.wait(self.connection)
            last = request.last

    def _answer(self, request: _http.Request) -> None:
        if request.method not in ("GET", "HEAD"):
            self._say(_http.NOT_IMPLEMENTED, "only GET and HEAD are here", request)
        elif request.path != "/metrics":
            self._say(_http.NOT_FOUND, "only /metrics is here", request)
        elif request.query.get("run", "") not in ("", self.server.run_uuid):
            self._say(_http.GONE, "this port now serves another run", request)
        else:
            self._page(request)

    def _page(self, request: _http.Request) -> None:
        body = request.method == "GET"
        reader: Reader = "central" if request.query.get("from") == "central" else "own"
        began = self.server.readers.comes(reader) if body else 0.0
        openmetrics = "application/openmetrics-text" in request.fields.get("accept", "")
        page = _join(self.server.chunks(openmetrics))
        kind = OPENMETRICS if openmetrics else TEXT
        self._send(_http.OK, kind, page, last=request.last, body=body)
        if body:
            self.server.readers.has_read(reader, began)

    def _say(self, status: str, text: str, request: _http.Request) -> None:
        content = f"{text}\n".encode()
        self._send(status, TEXT, content, last=request.last, body=request.method != "HEAD")

    def _send(
        self, status: str, kind: str, content: bytes, *, last: bool, body: bool = True
    ) -> None:
        head = _http.head(status, kind, len(content), last=last)
        self.connection.settimeout(self.timeout)
        self.wfile.write(head + content if body else head)


def _join(chunks: Iterator[str]) -> bytes:
    """The page as bytes, pausing whenever a few thousand characters have been made."""
    parts: list[bytes] = []
    made = 0
    for chunk in chunks:
        parts.append(chunk.encode())
        made += len(chunk)
        if made > _CHUNK_CHARS:
            made = 0
            sleep(_PAUSE_S)
    return b"".join(parts)


class _Places:
    """The connections that are served, so many at the most, and since when each is waited for.

    A newcomer to a full house takes the place of one that is waited for: of the one that has been
    waited for longest, and rather of one that never asked for anything than of a reader between
    two scrapes. So nobody shuts the readers out by sending nothing, or too little.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, tuple[bool, float]] = {}
        self._answered: set[socket.socket] = set()

    def take(self, connection: socket.socket) -> bool:
        """Give a new connection a place; False if all are being answered."""
        with self._lock:
            full = len(self._waiting) + len(self._answered) >= _MAX_CONNECTIONS
            if full and not self._waiting:
                return False
            if full:
                oldest = min(self._waiting, key=self._waiting.__getitem__)
                del self._waiting[oldest]
                _hang_up(oldest)
            self._waiting[connection] = (False, monotonic())
        return True

    def answer(self, connection: socket.socket) -> bool:
        """Its request is there; False if its place has been taken."""
        with self._lock:
            if self._waiting.pop(connection, None) is None:
                return False
            self._answered.add(connection)
        return True

    def wait(self, connection: socket.socket) -> None:
        """It has its answer, and may ask again."""
        with self._lock:
            self._answered.discard(connection)
            self._waiting[connection] = (True, monotonic())

    def leave(self, connection: socket.socket) -> None:
        """It is no longer served."""
        with self._lock:
            self._waiting.pop(connection, None)
            self._answered.discard(connection)

    def hang_up(self) -> None:
        """End all connections."""
        with self._lock:
            for connection in (*self._waiting, *self._answered):
                _hang_up(connection)


def _hang_up(connection: socket.socket) -> None:
    """End a connection whose thread finds that out by itself."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64
    block_on_close = False

    def __init__(
        self,
        address: tuple[str, int],
        run_uuid: str,
        chunks: Callable[[bool], Iterator[str]],
        readers: Readers,
    ) -> None:
        self.run_uuid = run_uuid
        self.chunks = chunks
        self.readers = readers
        self.places = _Places()
        self.hung_up = threading.Event()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[Any, Any]:
        """The next connection; a host without a free descriptor is not asked again at once."""
        try:
            return super().get_request()
        except OSError:
            self.hung_up.wait(_PAUSE_WITHOUT_DESCRIPTORS_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread, if there is a place; else the connection is closed at once."""
        if not self.places.take(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.places.leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The thread of one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.leave(request)

    def hang_up(self) -> None:
        """Wake the accepting thread and end all connections."""
        self.hung_up.set()
        _hang_up(self.socket)
        self.places.hang_up()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that hangs up is no news; a fault of ours is reported once."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            fault("answering a scrape", error)


class Page:
    """The page, served until ``close``.

    Args:
        host: Address to bind.
        port: Port to bind, 0 for any.
        run_uuid: The run that this worker belongs to; another one's reader gets 410.
        chunks: Makes the page; is told whether as OpenMetrics.
        readers: Notes who has read.

    Raises:
        OSError: The port is taken, or the address is not this machine's.
    """

    def __init__(
        self,
        host: str,
        port: int,
        run_uuid: str,
        chunks: Callable[[bool], Iterator[str]],
        readers: Readers,
    ) -> None:
        self._server = _Server((host, port), run_uuid, chunks, readers)
        self._thread = threading.Thread(target=self._serve, name="rolltop-page", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._server.hung_up.is_set():
            self._server.handle_request()

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening and hang up."""
        self._server.hang_up()
        self._thread.join(timeout=_CLIENT_TIMEOUT_S)
        self._server.server_close()

    def leave_to_parent(self) -> None:
        """In the child of a fork: close our copy of the socket; the parent goes on listening."""
        self._server.server_close()
