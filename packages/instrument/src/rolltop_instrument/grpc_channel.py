"""A ``grpc.aio`` channel whose calls are recorded without an interceptor. Needs the extra ``grpc``.

gRPC drives a call with interceptors by a task of its own and a second call object: that costs as
much again as all that is recorded. A channel that hands out recording callables does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rolltop_instrument._calls import CallBook
from rolltop_instrument._grpc_calls import CALLS_BY_KIND, RecordedCall, Sites, sites_of
from rolltop_instrument._guest import fault

__all__ = ["RecordingChannel"]


def _recorded(
    make: Callable[..., Any], path: str, sites: Sites, kind: type[RecordedCall]
) -> Callable[..., Any]:
    """What makes the recorded calls of one method, with the arguments of gRPC's own callable."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            recorded = kind(sites[path])
        except Exception as problem:  # noqa: BLE001 - the call is made, recorded or not
            fault("beginning a call", problem)
            return make(*args, **kwargs)
        try:
            made = make(*args, **kwargs)
        except BaseException as error:
            recorded.failed(error)
            raise
        try:
            recorded.watch(made)
        except Exception as problem:  # noqa: BLE001 - the host gets its call, whatever befalls us
            fault("watching a call", problem)
            return made
        return recorded

    return call


class RecordingChannel:
    """Wraps a channel to one instance; stubs take it for the channel itself.

    Args:
        channel: The channel, with whatever interceptors its owner wants; they run inside.
        book: Where calls are recorded.
        service: Name of the service in the configuration.
        endpoint: Name of the instance.
        renamed: Method -> label that stands for it.
    """

    def __init__(
        self,
        channel: Any,
        book: CallBook,
        service: str,
        endpoint: str,
        renamed: Mapping[str, str],
    ) -> None:
        self._channel = channel
        self._sites = sites_of(book, service, endpoint, renamed)

    def __getattr__(self, name: str) -> Any:
        """All else is the channel's own."""
        return getattr(self._channel, name)

    async def __aenter__(self) -> Self:
        """Open the channel, which is closed at the end."""
        await self._channel.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the channel."""
        await self._channel.__aexit__(kind, error, trace)

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what makes calls of one request and one response."""
        return self._recording("unary_unary", method, args, kwargs)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what makes calls of one request and a stream of responses."""
        return self._recording("unary_stream", method, args, kwargs)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what makes calls of a stream of requests and one response."""
        return self._recording("stream_unary", method, args, kwargs)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what makes calls of a stream of requests and a stream of responses."""
        return self._recording("stream_stream", method, args, kwargs)

    def _recording(
        self, kind: str, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[..., Any]:
        make = getattr(self._channel, kind)(method, *args, **kwargs)
        return _recorded(make, method, self._sites, CALLS_BY_KIND[kind])
