"""Calls and metadata that are not gRPC's own: somebody else's interceptors and servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest
from rolltop_instrument import WorkerTelemetry
from rolltop_instrument._calls import server_times
from rolltop_instrument._grpc_calls import _outcome, _said

Read = Callable[..., float | None]


@pytest.fixture
def telemetry() -> WorkerTelemetry:
    return WorkerTelemetry()


@grpc.aio.UnaryUnaryCall.register
class Foreign:
    """A call of somebody's own interceptor, whose metadata come late or never."""

    def __init__(self, metadata: Callable[[], Awaitable[Any]]) -> None:
        self.trailing_metadata = metadata

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return b"theirs"

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def done(self) -> bool:
        return True

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        asyncio.get_running_loop().call_soon(callback, self)


async def _never() -> Any:
    await asyncio.sleep(3600)


async def _broken() -> Any:
    raise RuntimeError("theirs")


@pytest.mark.parametrize("metadata", [_never, _broken])
async def test_foreign_metadata_hold_up_nobody(
    metadata: Any, telemetry: WorkerTelemetry, faults_are_hidden: None, value: Read
) -> None:
    class Channel:
        def unary_unary(self, _path: str) -> Any:
            return lambda _request: Foreign(metadata)

    call: Any = telemetry.grpc_channel(Channel(), "renderer").unary_unary("/a.B/c")  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        assert await call(b"x") == b"theirs"
    assert telemetry._book.service("renderer").in_flight == 0
    key = {"service": "renderer", "method": "c"}
    assert value(telemetry, "alpasim_rpc_duration_seconds_count", **key) == 1


async def test_a_call_that_resumes_before_grpc_tells_of_its_end(
    telemetry: WorkerTelemetry, value: Read
) -> None:
    class Late(Foreign):
        def add_done_callback(self, callback: Callable[[Any], None]) -> None:
            asyncio.get_running_loop().call_later(0.02, callback, self)

    async def none() -> Any:
        return None

    class Channel:
        def unary_unary(self, _path: str) -> Any:
            return lambda _request: Late(none)

    call: Any = telemetry.grpc_channel(Channel(), "renderer").unary_unary("/a.B/c")  # type: ignore[arg-type]
    assert await call(b"x") == b"theirs"
    assert telemetry._book.service("renderer").in_flight == 1
    await asyncio.sleep(0.05)
    assert telemetry._book.service("renderer").in_flight == 0
    key = {"service": "renderer", "method": "c"}
    assert value(telemetry, "alpasim_rpc_blocking_seconds_count", **key) == 0


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (None, None),
        ((), None),
        ((("rolltop-times-us", "1500,2000000"),), (0.0015, 2.0)),
        ((("rolltop-times-us", "1500"),), None),
        ((("rolltop-times-us", "1,2,3"),), None),
        ((("rolltop-times-us", "soon,1"),), None),
        ((("rolltop-times-us", b"1,1"),), None),
        ((("rolltop-times-us", f"{10**400},1"),), None),
        ((("rolltop-times-us", f"1,{10**15}"),), None),
        ((("rolltop-times-us", "-5,1"),), None),
        (grpc.aio.Metadata(("rolltop-times-us", "1,2")), (1e-6, 2e-6)),
    ],
)
def test_what_a_server_says(metadata: Any, said: tuple[float, float] | None) -> None:
    assert server_times(_said(metadata)) == (said if said is None else pytest.approx(said))


SAID = (("rolltop-times-us", "1,2"),)


async def _ok() -> grpc.StatusCode:
    return grpc.StatusCode.OK


async def _metadata() -> Any:
    return SAID


def test_the_times_of_a_call_that_shows_its_core_are_read_there() -> None:
    def public() -> Any:
        raise AssertionError("wrapped metadata cost a third of all")

    async def status() -> Any:
        return SimpleNamespace(trailing_metadata=lambda: SAID)

    core = SimpleNamespace(status=status)
    call = SimpleNamespace(_cython_call=core, code=_ok, trailing_metadata=public)
    assert _outcome(call, None) == (None, "1,2")


async def _bare() -> Any:
    return object()


CORES = [None, *(SimpleNamespace(status=status) for status in (_bare, _never, _broken, 0))]


@pytest.mark.parametrize("core", [SimpleNamespace(), *CORES])
async def test_a_core_that_looks_otherwise_costs_neither_status_nor_times(core: Any) -> None:
    call = SimpleNamespace(_cython_call=core, code=_ok, trailing_metadata=_metadata)
    assert _outcome(call, None) == (None, "1,2")


@pytest.mark.parametrize("metadata", [_never, _broken])
def test_metadata_that_cannot_be_had_do_not_cost_the_status(metadata: Any) -> None:
    call = SimpleNamespace(code=_ok, trailing_metadata=metadata)
    assert _outcome(call, None) == (None, None)


async def test_grpcs_own_calls_show_their_core() -> None:
    """Else each is read at three times the cost, unseen."""
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        call = channel.unary_unary("/a.B/c")(b"x")
        await call.code()
        status = await call._cython_call.status()
        assert status.trailing_metadata() is not None
