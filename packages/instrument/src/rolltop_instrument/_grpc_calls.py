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

__all__ = ["CALLS_BY_KIND", "RecordedCall", "Sites", "sites_of"]


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


def _outcome(call: Any, error: BaseException | None) -> tuple[str | None, str | None]:
    """The name of a finished call's status, None for OK, and what the server says of its times."""
    try:
        code = _failure(call) if error is None else status_of(error)
    except Exception as theirs:  # noqa: BLE001 - somebody's interceptor broke the call off
        return status_of(theirs), None
    try:
        return code, _said(_trailing_metadata(call))
    except Exception:  # noqa: BLE001 - the same, or metadata that cannot be had
        return code, None


def _trailing_metadata(call: Any) -> Any:
    """The trailing metadata of a finished call.

    As gRPC's core holds them, where a call lets us see it: wrapped for its user they cost a third
    of all that is recorded. That core is gRPC's own affair: what is not as we know it may be so
    in a release to come, and the public way is left.
    """
    core = getattr(call, "_cython_call", None)
    if core is not None:
        try:
            return _drive(core.status()).trailing_metadata()
        except Exception:  # noqa: BLE001, S110 - whatever it is, the public way works or says it
            pass
    return _drive(call.trailing_metadata())


def _said(metadata: Any) -> str | None:
    """What trailing metadata say of the server's times; None where they do not.

    gRPC's wrapped ones are asked by key: going over them, or for their length, costs far more.
    """
    try:
        said = metadata[_TIMES_KEY] if type(metadata) is Metadata else dict(metadata)[_TIMES_KEY]
    except (KeyError, TypeError, ValueError):
        return None
    return said if isinstance(said, str) else None


class RecordedCall:
    """A call that is recorded; it leaves everything else to gRPC's own call, which it wraps.

    It is begun before gRPC's call is made, so that the making counts, is told of that call by
    ``watch``, and is its own done callback.
    """

    __slots__ = ("__weakref__", "_began", "_call", "_done_at", "_recorded", "_site", "_waiting")

    def __init__(self, site: CallSite) -> None:
        self._site = site
        self._recorded = False
        self._done_at = 0.0
        self._waiting = 0
        site.begin()
        self._began = perf_counter()

    def watch(self, call: Any) -> None:
        """Be told of the call's completion, at once if it is there already."""
        self._call = call
        try:
            call.add_done_callback(self)
        except NotImplementedError:  # a response that an interceptor gave without a call
            self(call)

    def __call__(self, call: Any) -> None:
        """The call is complete. Whoever waits for it records it when it resumes."""
        self._done_at = perf_counter()
        if not self._waiting and not self._recorded:
            self._record(self._done_at, None, call, None)

    def failed(self, error: BaseException) -> None:
        """No call came of it: an interceptor further in raised."""
        self._recorded = True
        try:
            self._site.end(perf_counter() - self._began, None, None, status_of(error))
        except Exception as problem:  # noqa: BLE001 - the host gets its own error
            fault("recording a call", problem)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back with this call when it is complete."""
        self._call.add_done_callback(lambda _call: callback(self))

    def _resumed(self, now: float, entered: float, error: BaseException | None) -> None:
        """The coroutine that waited since ``entered`` goes on, as of ``now``."""
        self._waiting -= 1
        done_at = self._done_at
        if self._recorded:
            return
        if done_at:
            self._record(now, now - max(done_at, entered), self._call, error)
        elif error is not None and not isinstance(error, grpc.RpcError | GeneratorExit):
            # gRPC tells nobody of a call that somebody's interceptor broke off, nor of one whose
            # caller is cancelled in the very turn in which its request is sent. (A waiter that is
            # closed leaves a call that goes on.)
            self._done_at = now
            self.failed(error)

    def _record(
        self, now: float, blocking_s: float | None, call: Any, error: BaseException | None
    ) -> None:
        self._recorded = True
        try:
            code, said = _outcome(call, error)
            self._site.end(now - self._began, blocking_s, said, code)
        except Exception as problem:  # noqa: BLE001 - the host's call goes on
            fault("recording a call", problem)


class _UnaryResponse(RecordedCall):
    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        call = self._call
        self._waiting += 1
        try:
            response = yield from call.__await__()
        except BaseException as error:
            self._resumed(perf_counter(), 0.0, error)
            raise
        now = perf_counter()
        done_at = self._done_at
        if not done_at:  # gRPC tells of its end later
            self._waiting -= 1
        elif not self._recorded:  # it has the only response: the status is OK
            self._recorded = True
            try:
                said = _said(_trailing_metadata(call))
            except Exception as problem:  # noqa: BLE001 - the call is recorded without
                said = None
                fault("reading a server's times", problem)
            try:
                self._site.end(now - self._began, now - done_at, said)
            except Exception as problem:  # noqa: BLE001 - the host's call goes on
                fault("recording a call", problem)
        return response


class _StreamResponse(RecordedCall):
    __slots__ = ("_messages",)

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self._messages: AsyncIterator[Any] | None = None

    def __aiter__(self) -> AsyncIterator[Any]:
        if self._messages is None:
            self._messages = self._iterate()
        return self._messages

    async def _iterate(self) -> AsyncIterator[Any]:
        messages = self._call.__aiter__()
        while True:
            self._waiting += 1
            entered = perf_counter()
            try:
                message = await messages.__anext__()
            except StopAsyncIteration:
                self._resumed(perf_counter(), entered, None)
                return
            except BaseException as error:
                self._resumed(perf_counter(), entered, error)
                raise
            self._waiting -= 1
            yield message

    async def read(self) -> Any:
        """The next message, or EOF."""
        self._waiting += 1
        entered = perf_counter()
        try:
            message = await self._call.read()
        except BaseException as error:
            self._resumed(perf_counter(), entered, error)
            raise
        self._resumed(perf_counter(), entered, None)
        return message


class _Transparent(RecordedCall):
    """Has all that gRPC's call has: its interceptors look at private parts of calls that write."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


@grpc.aio.StreamUnaryCall.register
class _StreamUnaryCall(_Transparent, _UnaryResponse):
    __slots__ = ()


@grpc.aio.StreamStreamCall.register
class _StreamStreamCall(_Transparent, _StreamResponse):
    __slots__ = ()


_BEYOND_THE_ABSTRACT = ("debug_error_string",)
"""What gRPC's calls have although their abstract class does not name it."""


def _delegate(name: str) -> property:
    """An attribute that is the wrapped call's own."""
    return property(lambda recorded: getattr(recorded._call, name))


def _stands_for(abstract: Any, response: type[RecordedCall]) -> type[RecordedCall]:
    """The kind of recorded call that stands for gRPC's abstract one, attribute by attribute.

    A ``__getattr__`` for all of them would slow down each look at an attribute of the recorded
    call's own, and these are the calls of which there are many.
    """
    theirs = {name for name in dir(abstract) if not name.startswith("_")}
    left = sorted({*theirs, *_BEYOND_THE_ABSTRACT} - set(dir(response)))
    members = {"__slots__": (), **{name: _delegate(name) for name in left}}
    kind = type(f"_{abstract.__name__}", (response,), members)
    abstract.register(kind)
    return kind


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


CALLS_BY_KIND: Mapping[str, type[RecordedCall]] = {
    "unary_unary": _stands_for(grpc.aio.UnaryUnaryCall, _UnaryResponse),
    "unary_stream": _stands_for(grpc.aio.UnaryStreamCall, _StreamResponse),
    "stream_unary": _StreamUnaryCall,
    "stream_stream": _StreamStreamCall,
}
"""Kind, as a channel names it -> what the host gets for its call.

Each is registered as gRPC's own, so that gRPC takes it for a call whatever else its release wants.
"""


def sites_of(book: CallBook, service: str, endpoint: str, renamed: Mapping[str, str]) -> Sites:
    """The call sites of one instance; the service is known from now on."""
    book.service(service)
    return Sites(book, service, endpoint, renamed)
