"""The seam between queries and HTTP: one request, one answer, two ways to fail."""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx2


class NoAnswerError(Exception):
    """No whole answer came; the text says why."""


class TooLateError(NoAnswerError):
    """No whole answer came in time."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer: its status, its content type and its body."""

    status: int
    content_type: str
    body: bytes


class Transport(Protocol):
    """What carries requests to a Prometheus; it may be used by several threads at once."""

    def get(self, path: str, timeout_s: float) -> Answer:
        """Return the answer to a GET of ``path``, which begins with a slash.

        Raises:
            NoAnswerError: No whole answer came.
        """
        ...

    def post(self, path: str, form: Mapping[str, str | Sequence[str]], timeout_s: float) -> Answer:
        """Return the answer to a POST of a form.

        Raises:
            NoAnswerError: No whole answer came.
        """
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class HttpTransport:
    """Requests over HTTP to the server at ``url``.

    A proxy of the environment is used for other hosts, never for this one: a proxy does not know
    this host's loopback.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._opened: httpx2.Client | None = None

    def get(self, path: str, timeout_s: float) -> Answer:
        """Return the answer to a GET."""
        return self._send("GET", path, None, timeout_s)

    def post(self, path: str, form: Mapping[str, str | Sequence[str]], timeout_s: float) -> Answer:
        """Return the answer to a POST of a form."""
        return self._send("POST", path, form, timeout_s)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _client(self) -> httpx2.Client:
        import httpx2

        with self._lock:
            if self._opened is None:
                secure = self._url.startswith("https:")
                self._opened = httpx2.Client(
                    base_url=self._url,
                    trust_env=not is_loopback(self._url),
                    verify=secure,  # reading the certificates takes time, and http has none
                )
            return self._opened

    def _send(
        self,
        method: str,
        path: str,
        form: Mapping[str, str | Sequence[str]] | None,
        timeout_s: float,
    ) -> Answer:
        import httpx2

        data = None if form is None else {key: _plain(value) for key, value in form.items()}
        try:
            answer = self._client().request(method, path, data=data, timeout=timeout_s)
        except httpx2.TimeoutException as error:
            raise TooLateError(f"no answer within {timeout_s:g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise NoAnswerError(_reason(error)) from error
        return Answer(answer.status_code, answer.headers.get("content-type", ""), answer.content)


def is_loopback(url: str) -> bool:
    """Whether a URL names this host by its loopback."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plain(value: str | Sequence[str]) -> str | list[str]:
    return value if isinstance(value, str) else list(value)


def _reason(error: BaseException) -> str:
    """Return the operating system's words for it where there are any, else the library's."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
