"""The server side of gRPC: carries the stamps home. Needs the extra ``grpc``."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from rolltop_instrument import names
from rolltop_instrument._guest import fault
from rolltop_instrument.server import Stamps, begin_stamps

__all__ = ["ServerTimingInterceptor"]


def _entries(stamps: Stamps) -> tuple[tuple[str, str], ...]:
    if not stamps.stamped:
        return ()
    return (
        (names.QUEUE_KEY, str(round(stamps.queue_s * 1e6))),
        (names.SERVICE_KEY, str(round(stamps.service_s * 1e6))),
    )


@grpc.aio.ServicerContext.register
class _Context:
    """The handler's context; adds the stamps when the handler aborts, delegates all else."""

    def __init__(self, context: Any, stamps: Stamps) -> None:
        self._context = context
        self._stamps = stamps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def abort(self, code: Any, details: str = "", trailing_metadata: Any = ()) -> Any:
        metadata = tuple(trailing_metadata) or tuple(self._context.trailing_metadata() or ())
        await self._context.abort(code, details, metadata + _entries(self._stamps))

    def stamp(self) -> None:
        """Add the stamps to the trailing metadata that the handler has set."""
        try:
            entries = _entries(self._stamps)
            if entries:
                before = tuple(self._context.trailing_metadata() or ())
                self._context.set_trailing_metadata(before + entries)
        except Exception as problem:  # noqa: BLE001 - the answer goes out, stamped or not
            fault("stamping a call", problem)


def _timed(behaviour: Callable[..., Any]) -> Callable[..., Any]:
    """The behaviour with stamps around it, of the same kind: gRPC looks at what it is."""
    if inspect.isasyncgenfunction(behaviour):

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            timed = _Context(context, begin_stamps())
            try:
                async for response in behaviour(request, timed):
                    yield response
            finally:
                timed.stamp()

        return stream
    if inspect.iscoroutinefunction(behaviour):

        async def call(request: Any, context: Any) -> Any:
            timed = _Context(context, begin_stamps())
            try:
                return await behaviour(request, timed)
            finally:
                timed.stamp()

        return call
    return behaviour


_FACTORIES = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class ServerTimingInterceptor(grpc.aio.ServerInterceptor):
    """Sends each call's waiting and serving home, as its executor and slot stamped them.

    Handlers that are coroutines or async generators are covered. What a handler sets as trailing
    metadata stays. A call whose work went through neither executor nor slot says nothing.
    """

    def __init__(self) -> None:
        self._timed: dict[str, tuple[Any, Any]] = {}
        """Method -> its handler and the timed one, so that a call need not make it anew."""

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: Any,
    ) -> Any:
        """Wrap the handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        try:
            known, timed = self._timed.get(handler_call_details.method, (None, None))
            if known is handler:
                return timed
            name, factory = _FACTORIES[handler.request_streaming, handler.response_streaming]
            behaviour = _timed(getattr(handler, name))
            timed = factory(behaviour, handler.request_deserializer, handler.response_serializer)
        except Exception as problem:  # noqa: BLE001 - the call is served, timed or not
            fault("wrapping a handler", problem)
            return handler
        self._timed[handler_call_details.method] = handler, timed
        return timed
