"""As much of HTTP/1.1 as a page of metrics needs: a request's head, and an answer's.

The library's server reads heads as e-mails: importing it costs a worker more than all else here,
and each scrape more than the page. A request's body is never read: its connection ends with the
answer.
"""

from __future__ import annotations

from time import gmtime
from typing import Protocol

_MAX_LINE = 8192
_MAX_FIELDS = 64
_WORDS = 3
"""Of a request's line: method, target, version."""
_VERSIONS = ("HTTP/1.1", "HTTP/1.0")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

OK = "200 OK"
BAD_REQUEST = "400 Bad Request"
NOT_FOUND = "404 Not Found"
GONE = "410 Gone"
HEAD_TOO_LARGE = "431 Request Header Fields Too Large"
NOT_IMPLEMENTED = "501 Not Implemented"


class Readable(Protocol):
    """What a connection sends."""

    def readline(self, size: int, /) -> bytes:
        """A line with its end; what there is, at the end or after ``size`` bytes."""


class RefusedError(Exception):
    """What was sent is no request that is understood; ``status`` says why."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Request:
    """A request's head.

    Attributes:
        method: As sent, ``GET``.
        path: Before the question mark, as sent.
        query: Name -> value, decoded; the last one counts.
        fields: Lower-case name -> value; several of a name are joined by commas.
        last: Whether the connection ends with the answer.
    """

    __slots__ = ("fields", "last", "method", "path", "query")

    def __init__(self, method: str, target: str, version: str, fields: dict[str, str]) -> None:
        self.method = method
        self.fields = fields
        has_body = "content-length" in fields or "transfer-encoding" in fields
        close = "close" in fields.get("connection", "").lower()
        self.last = has_body or close or version == "HTTP/1.0"
        if target.startswith("http://"):  # as to a proxy
            target = "/" + target.removeprefix("http://").partition("/")[2]
        self.path, _, query = target.partition("?")
        self.query = dict(map(_pair, query.split("&")))


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if "%" in value or "+" in value:
        from urllib.parse import unquote_plus  # seldom: a run's id is rarely such

        value = unquote_plus(value)
    return name, value


def read_request(stream: Readable) -> Request | None:
    """The next request of a connection; None if the client has gone, or goes half-way.

    Raises:
        RefusedError: It is none, or too large.
        OSError: The connection is broken, or silent for too long.
    """
    line = _line(stream)
    if line is None:
        return None
    words = line.split()
    if len(words) != _WORDS or words[2] not in _VERSIONS:
        raise RefusedError(BAD_REQUEST)
    method, target, version = words
    fields: dict[str, str] = {}
    for _ in range(_MAX_FIELDS + 1):
        field = _line(stream)
        if field is None:
            return None
        if not field:
            return Request(method, target, version, fields)
        name, _, value = field.partition(":")
        name, value = name.strip().lower(), value.strip()
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    raise RefusedError(HEAD_TOO_LARGE)


def _line(stream: Readable) -> str | None:
    """A line without its end; None at the end of what is sent."""
    line = stream.readline(_MAX_LINE)
    if line.endswith(b"\n"):
        return line.decode("latin-1").rstrip("\r\n")
    if len(line) == _MAX_LINE:
        raise RefusedError(HEAD_TOO_LARGE)
    return None


def head(status: str, kind: str, length: int, *, last: bool) -> bytes:
    """An answer's head, to be followed by ``length`` bytes of content."""
    now = gmtime()
    day = f"{_DAYS[now.tm_wday]}, {now.tm_mday:02} {_MONTHS[now.tm_mon - 1]} {now.tm_year}"
    return (
        f"HTTP/1.1 {status}\r\n"
        f"Date: {day} {now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT\r\n"
        f"Content-Type: {kind}\r\n"
        f"Content-Length: {length}\r\n"
        f"{'Connection: close' + chr(13) + chr(10) if last else ''}\r\n"
    ).encode("latin-1")
