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
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from rolltop_instrument._guest import fault
from rolltop_instrument._readers import Reader, Readers

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_MAX_CONNECTIONS = 32
_CLIENT_TIMEOUT_S = 15.0
"""A silent connection is closed after this; more than the central interval, to keep it open."""
_WORDS = 3
"""Of a request's line: method, path, version."""
_MAX_LINE = 8192
_MAX_FIELDS = 64
_PAUSE_S = 5e-5
_CHUNK_CHARS = 16000


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    raw_requestline: bytes
    fields: dict[str, str]
    protocol_version = "HTTP/1.1"
    server_version = "rolltop-instrument"
    sys_version = ""
    timeout: ClassVar[float] = _CLIENT_TIMEOUT_S
    wbufsize = -1
    disable_nagle_algorithm = True

    def parse_request(self) -> bool:
        """Read a request's head; answer what is none.

        The library reads it as an e-mail's, which costs more than the whole page.
        """
        self.command, self.request_version, self.close_connection = "", "HTTP/1.1", True
        self.requestline = self.raw_requestline.decode("latin-1").rstrip("\r\n")
        words = self.requestline.split()
        if len(words) != _WORDS or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return False
        self.command, self.path, self.request_version = words
        fields = self._read_fields()
        if fields is None:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        self.fields = fields
        has_body = "content-length" in fields or "transfer-encoding" in fields  # is not read
        last = "close" in fields.get("connection", "").lower()
        self.close_connection = has_body or last or self.request_version == "HTTP/1.0"
        return True

    def _read_fields(self) -> dict[str, str] | None:
        """Lower-case name -> value of the head's fields; None if they are too long or too many."""
        fields: dict[str, str] = {}
        for _ in range(_MAX_FIELDS):
            line = self.rfile.readline(_MAX_LINE)
            if line in (b"\r\n", b"\n"):
                return fields
            if not line.endswith(b"\n"):  # too long, or the client has gone
                return None
            name, _, value = line.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        return None

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer a HEAD: a GET without its body."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        url = urlsplit(self.path)
        if url.path != "/metrics":
            self._send(HTTPStatus.NOT_FOUND, TEXT, b"only /metrics is here\n", body=body)
            return
        query = parse_qs(url.query)
        wanted = query.get("run", [""])[-1]
        if wanted and wanted != self.server.run_uuid:
            self._send(HTTPStatus.GONE, TEXT, b"this port now serves another run\n", body=body)
            return
        reader: Reader = "central" if query.get("from", [""])[-1] == "central" else "own"
        began = self.server.readers.comes(reader) if body else 0.0
        openmetrics = "application/openmetrics-text" in self.fields.get("accept", "")
        page = _join(self.server.chunks(openmetrics))
        self._send(HTTPStatus.OK, OPENMETRICS if openmetrics else TEXT, page, body=body)
        if body:
            self.server.readers.has_read(reader, began)

    def _send(self, status: HTTPStatus, kind: str, content: bytes, *, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: a scrape a second is no news."""


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


class _Server(ThreadingHTTPServer):
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
        self._places = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._connections: set[socket.socket] = set()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind, without the base's look-up of the host's name, which may wait for a name server."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread, if there is a place; else the connection is closed at once."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The thread of one connection."""
        self._connections.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.discard(request)
            self._places.release()

    def hang_up(self) -> None:
        """Wake the accepting thread and end all connections."""
        for connection in [self.socket, *self._connections]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

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
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="rolltop-page", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._closing:
            self._server.handle_request()

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._server.server_port)

    def close(self) -> None:
        """Stop listening and hang up."""
        self._closing = True
        self._server.hang_up()
        self._thread.join(timeout=_CLIENT_TIMEOUT_S)
        self._server.server_close()
