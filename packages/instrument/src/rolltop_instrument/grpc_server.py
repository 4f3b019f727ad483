"""The server side of gRPC: carries the stamps home. Needs the extra ``grpc``."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

from rolltop_instrument import names
from rolltop_instrument._extras import require_grpc
from rolltop_instrument._guest import fault
from rolltop_instrument.server import Stamps, begin_stamps

require_grpc()

import grpc  # noqa: E402 - if it is missing, the line above says how to get it
import grpc.aio  # noqa: E402

__all__ = ["ServerTimingInterceptor", "timed_server"]


_TIMES_KEY = names.TIMES_KEY


def _entries(stamps: Stamps) -> tuple[tuple[str, str], ...]:
    """What is added to the trailing metadata; nothing if no turn was asked for."""
    if not stamps.stamped:
        return ()
    queue_s, service_s = stamps.times()
    return ((_TIMES_KEY, f"{int(queue_s * 1e6 + 0.5)},{int(service_s * 1e6 + 0.5)}"),)


def _stamp(context: Any, stamps: Stamps) -> None:
    """Add the stamps to the trailing metadata that the handler has set."""
    try:
        entries = _entries(stamps)
        if entries:
            before = context.trailing_metadata()
            context.set_trailing_metadata((*before, *entries) if before else entries)
    except Exception as problem:  # noqa: BLE001 - the answer goes out, stamped or not
        fault("stamping a call", problem)


@grpc.aio.ServicerContext.register
class _Context:
    """The handler's context; adds the stamps when the handler aborts, delegates all else."""

    __slots__ = ("_context", "_stamps")

    def __init__(self, context: Any, stamps: Stamps) -> None:
        self._context = context
        self._stamps = stamps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def abort(self, code: Any, details: str = "", trailing_metadata: Any = ()) -> Any:
        metadata = tuple(trailing_metadata) or tuple(self._context.trailing_metadata() or ())
        await self._context.abort(code, details, metadata + _entries(self._stamps))


def _timed(behaviour: Callable[..., Any]) -> Callable[..., Any]:
    """The behaviour with stamps around it, of the same kind: gRPC looks at what it is."""
    if inspect.isasyncgenfunction(behaviour):

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            stamps = begin_stamps()
            try:
                async for response in behaviour(request, _Context(context, stamps)):
                    yield response
            finally:
                _stamp(context, stamps)

        return stream
    if inspect.iscoroutinefunction(behaviour):

        async def call(request: Any, context: Any) -> Any:
            stamps = begin_stamps()
            try:
                return await behaviour(request, _Context(context, stamps))
            finally:
                _stamp(context, stamps)

        return call
    return behaviour


_FACTORIES = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class _TimedHandlers:
    """Handlers of calls -> the same with stamps around them, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Any, Any]] = {}

    def timed(self, method: str, handler: Any) -> Any:
        """The timed handler of a method; the handler itself where it cannot be timed."""
        made = self._made.get(method)
        if made is None or made[0] is not handler:
            made = self._made[method] = handler, self._make(handler)
        return made[1]

    @staticmethod
    def _make(handler: Any) -> Any:
        try:
            name, factory = _FACTORIES[handler.request_streaming, handler.response_streaming]
            behaviour = _timed(getattr(handler, name))
            return factory(behaviour, handler.request_deserializer, handler.response_serializer)
        except Exception as problem:  # noqa: BLE001 - the call is served, timed or not
            fault("wrapping a handler", problem)
            return handler


class ServerTimingInterceptor(grpc.aio.ServerInterceptor):
    """Sends each call's waiting and serving home, as its executor and slot stamped them.

    Handlers that are coroutines or async generators are covered. What a handler sets as trailing
    metadata stays. A call whose work went through neither executor nor slot says nothing.
    """

    def __init__(self) -> None:
        self._handlers = _TimedHandlers()

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: Any,
    ) -> Any:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        return self._handlers.timed(handler_call_details.method, handler)


class _TimedGenericHandler(grpc.GenericRpcHandler):
    """Finds the handlers that another finds, timed."""

    def __init__(self, inner: grpc.GenericRpcHandler) -> None:
        self._inner = inner
        self._handlers = _TimedHandlers()

    def service(self, handler_call_details: Any) -> Any:
        """The timed handler of a call; None if there is none here."""
        handler = self._inner.service(handler_call_details)
        if handler is None:
            return None
        return self._handlers.timed(handler_call_details.method, handler)


class _TimedServer:
    """A server that times the handlers which it is given; all else is the server's own."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Add handlers, timed."""
        self._server.add_generic_rpc_handlers([_TimedGenericHandler(each) for each in handlers])

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Add the handlers of a service's methods, timed."""
        made = _TimedHandlers()
        timed = {method: made.timed(method, handler) for method, handler in handlers.items()}
        self._server.add_registered_method_handlers(service, timed)


def timed_server(server: grpc.aio.Server) -> grpc.aio.Server:
    """A server to register servicers with, whose calls say what they waited and were served.

    It does what ``ServerTimingInterceptor`` does, at a lower cost: a server with interceptors runs
    a coroutine of each for every call, only to find the call's handler.
    """
    wrapped: Any = _TimedServer(server)
    return cast("grpc.aio.Server", wrapped)
