"""A call of a ``grpc.aio`` client while it is under way. Needs the extra ``grpc``.

What the host gets back is a call object that behaves as gRPC's own: it is one, wrapped only where
a coroutine waits in it, since the moment of its resumption is to be stamped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from time import perf_counter
from typing import Any

import grpc
import grpc.aio
from grpc.aio import Metadata

from rolltop_instrument import names
from rolltop_instrument._calls import CallBook, CallSite, method_label, status_of
from rolltop_instrument._guest import fault

__all__ = ["CALLS_BY_KIND", "CallWrapper", "PendingCall", "Sites", "server_times", "sites_of"]


_TIMES_KEY = names.TIMES_KEY


def _drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that needs no waiting (a finished call's status); else None."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        return result.value
    coroutine.close()
    return None


def _failure(call: Any) -> str | None:
    """The name of a finished call's status, None for OK."""
    status = _drive(call.code())
    return None if status is grpc.StatusCode.OK else getattr(status, "name", "UNKNOWN")


def _outcome(
    call: Any, error: BaseException | None
) -> tuple[str | None, tuple[float, float] | None]:
    """The name of a finished call's status, None for OK, and what the server says of its times."""
    try:
        code = _failure(call) if error is None else status_of(error)
        return code, server_times(_drive(call.trailing_metadata()))
    except Exception as theirs:  # noqa: BLE001 - somebody's interceptor broke the call off
        return status_of(theirs), None


def server_times(metadata: Any) -> tuple[float, float] | None:
    """Seconds of waiting and serving in trailing metadata; None where the server does not say.

    gRPC's own metadata is asked by key: going over it costs ten times as much.
    """
    if metadata is None:
        return None
    try:
        said: Any = (metadata if type(metadata) is Metadata else dict(metadata))[_TIMES_KEY]
        queue_text, service_text = said.split(",")
        queue_us, service_us = int(queue_text), int(service_text)
    except (KeyError, TypeError, ValueError):
        return None
    if queue_us < 0 or service_us < 0:
        return None
    return queue_us * 1e-6, service_us * 1e-6


class PendingCall:
    """One call under way; it is its own done callback."""

    __slots__ = ("began", "call", "done_at", "recorded", "site", "waiting")

    def __init__(self, site: CallSite) -> None:
        self.site = site
        self.recorded = False
        self.done_at = 0.0
        self.waiting = 0
        site.begin()
        self.began = perf_counter()

    def __call__(self, call: Any) -> None:
        """The call is complete. Whoever waits for it records it when it resumes."""
        self.done_at = perf_counter()
        if not self.waiting and not self.recorded:
            self._record(self.done_at, None, call, None)

    def resumed(self, now: float, entered: float, call: Any, error: BaseException | None) -> None:
        """The coroutine that waited since ``entered`` goes on, as of ``now``."""
        self.waiting -= 1
        done_at = self.done_at
        if self.recorded:
            return
        if done_at:
            self._record(now, now - (done_at if done_at > entered else entered), call, error)
        elif error is not None and not isinstance(error, grpc.RpcError):
            # gRPC tells nobody of a call that somebody's interceptor broke off, nor of one whose
            # caller is cancelled in the very turn in which its request is sent.
            self.done_at = now
            self.failed(error)

    def _record(
        self, now: float, blocking_s: float | None, call: Any, error: BaseException | None
    ) -> None:
        self.recorded = True
        try:
            code, said = _outcome(call, error)
            self.site.end(now - self.began, blocking_s, said, code)
        except Exception as problem:  # noqa: BLE001 - the host's call goes on
            fault("recording a call", problem)

    def failed(self, error: BaseException) -> None:
        """No call came of it: an interceptor further in raised."""
        self.recorded = True
        try:
            self.site.end(perf_counter() - self.began, None, None, status_of(error))
        except Exception as problem:  # noqa: BLE001 - the host gets its own error
            fault("recording a call", problem)

    def watch(self, call: Any) -> None:
        """Be told of the call's completion, at once if it is there already."""
        self.call = call
        try:
            call.add_done_callback(self)
        except NotImplementedError:  # a response that an interceptor gave without a call
            self(call)


class CallWrapper:
    """A call object that leaves everything to the call it wraps.

    Its kinds are registered as gRPC's own, so that gRPC takes them for calls whatever abstract
    methods its release has.
    """

    __slots__ = ("__weakref__", "_pending")

    def __init__(self, pending: PendingCall) -> None:
        self._pending = pending

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pending.call, name)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back with this call when it is complete."""
        self._pending.call.add_done_callback(lambda _call: callback(self))


class _UnaryResponse(CallWrapper):
    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        pending = self._pending
        call = pending.call
        pending.waiting += 1
        try:
            response = yield from call.__await__()
        except BaseException as error:
            pending.resumed(perf_counter(), 0.0, call, error)
            raise
        now = perf_counter()
        done_at = pending.done_at
        if not done_at:  # gRPC tells of its end later
            pending.waiting -= 1
        elif not pending.recorded:  # it has the only response: the status is OK
            pending.recorded = True
            try:
                metadata = yield from call.trailing_metadata().__await__()
                pending.site.end(now - pending.began, now - done_at, server_times(metadata))
            except Exception as problem:  # noqa: BLE001 - the host's call goes on
                fault("recording a call", problem)
        return response


class _StreamResponse(CallWrapper):
    __slots__ = ("_messages",)

    def __init__(self, pending: PendingCall) -> None:
        super().__init__(pending)
        self._messages: AsyncIterator[Any] | None = None

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._messages is None:
            self._messages = self._iterate()
        return self._messages

    async def _iterate(self) -> AsyncIterator[Any]:
        pending = self._pending
        call = pending.call
        messages = call.__aiter__()
        while True:
            pending.waiting += 1
            entered = perf_counter()
            try:
                message = await messages.__anext__()
            except StopAsyncIteration:
                pending.resumed(perf_counter(), entered, call, None)
                return
            except BaseException as error:
                pending.resumed(perf_counter(), entered, call, error)
                raise
            pending.waiting -= 1
            yield message

    async def read(self) -> Any:
        """The next message, or EOF."""
        pending = self._pending
        call = pending.call
        pending.waiting += 1
        entered = perf_counter()
        try:
            message = await call.read()
        except BaseException as error:
            pending.resumed(perf_counter(), entered, call, error)
            raise
        pending.resumed(perf_counter(), entered, call, None)
        return message


@grpc.aio.UnaryUnaryCall.register
class _UnaryUnaryCall(_UnaryResponse):
    """A wrapped unary-unary call."""

    __slots__ = ()


@grpc.aio.StreamUnaryCall.register
class _StreamUnaryCall(_UnaryResponse):
    """A wrapped stream-unary call."""

    __slots__ = ()


@grpc.aio.UnaryStreamCall.register
class _UnaryStreamCall(_StreamResponse):
    """A wrapped unary-stream call."""

    __slots__ = ()


@grpc.aio.StreamStreamCall.register
class _StreamStreamCall(_StreamResponse):
    """A wrapped stream-stream call."""

    __slots__ = ()


class Sites(dict[str | bytes, CallSite]):
    """Call sites of one instance, by gRPC path; a new one is made when a path is first seen."""

    def __init__(
        self, book: CallBook, service: str, endpoint: str, renamed: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._renamed = renamed
        self._book = book
        self._service = service
        self._endpoint = endpoint

    def __missing__(self, path: str | bytes) -> CallSite:
        method = method_label(path)
        label = self._renamed.get(method, method)
        site = self[path] = self._book.site(self._service, label, self._endpoint)
        return site


CALLS_BY_KIND: Mapping[str, type[CallWrapper]] = {
    "unary_unary": _UnaryUnaryCall,
    "unary_stream": _UnaryStreamCall,
    "stream_unary": _StreamUnaryCall,
    "stream_stream": _StreamStreamCall,
}
"""Kind, as a channel names it -> what the host gets for its call."""


def sites_of(book: CallBook, service: str, endpoint: str, renamed: Mapping[str, str]) -> Sites:
    """The call sites of one instance; the service is known from now on."""
    book.service(service)
    return Sites(book, service, endpoint, renamed)
