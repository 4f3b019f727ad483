"""gRPC aio client interceptors for the four kinds of calls. Needs the extra ``grpc``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
import grpc.aio
from grpc.aio import ClientInterceptor

from rolltop_instrument._calls import CallBook
from rolltop_instrument._grpc_calls import CALLS_BY_KIND, RecordedCall, Sites, sites_of
from rolltop_instrument._guest import fault

__all__ = ["client_interceptors"]


class _Interceptor:
    """What the four have in common: one instance, and the kind of call to hand back."""

    _kind: type[RecordedCall]

    def __init__(self, sites: Sites) -> None:
        self._sites = sites

    async def _intercept(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        try:
            recorded = self._kind(self._sites[client_call_details.method])
        except Exception as problem:  # noqa: BLE001 - the call is made, recorded or not
            fault("beginning a call", problem)
            return await continuation(client_call_details, request)
        try:
            call = await continuation(client_call_details, request)
        except BaseException as error:
            recorded.failed(error)
            raise
        try:
            recorded.watch(call)
        except Exception as problem:  # noqa: BLE001 - the host gets its call, whatever befalls us
            fault("watching a call", problem)
            return call
        return recorded


class _UnaryUnary(_Interceptor, grpc.aio.UnaryUnaryClientInterceptor):
    _kind = CALLS_BY_KIND["unary_unary"]
    intercept_unary_unary: Any = _Interceptor._intercept


class _UnaryStream(_Interceptor, grpc.aio.UnaryStreamClientInterceptor):
    _kind = CALLS_BY_KIND["unary_stream"]
    intercept_unary_stream: Any = _Interceptor._intercept


class _StreamUnary(_Interceptor, grpc.aio.StreamUnaryClientInterceptor):
    _kind = CALLS_BY_KIND["stream_unary"]
    intercept_stream_unary: Any = _Interceptor._intercept


class _StreamStream(_Interceptor, grpc.aio.StreamStreamClientInterceptor):
    _kind = CALLS_BY_KIND["stream_stream"]
    intercept_stream_stream: Any = _Interceptor._intercept


def client_interceptors(
    book: CallBook, service: str, endpoint: str, renamed: Mapping[str, str]
) -> list[ClientInterceptor]:
    """The interceptors of a channel to one instance; gRPC wants one per kind of call."""
    sites = sites_of(book, service, endpoint, renamed)
    return [_UnaryUnary(sites), _UnaryStream(sites), _StreamUnary(sites), _StreamStream(sites)]
