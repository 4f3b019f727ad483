"""What a server sends home, and that handlers notice nothing of it."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from rolltop_instrument import StampedExecutor, StampedSlot, current_stamps
from rolltop_instrument.grpc_server import ServerTimingInterceptor, timed_server

OURS = {"rolltop-times-us"}


def by_interceptor() -> grpc.aio.Server:
    return grpc.aio.server(interceptors=[ServerTimingInterceptor()])


def by_registration() -> grpc.aio.Server:
    return timed_server(grpc.aio.server())


make_server: Callable[[], grpc.aio.Server] = by_interceptor


@pytest.fixture(autouse=True, params=[by_interceptor, by_registration])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of timing do all that is tested here."""
    monkeypatch.setattr(f"{__name__}.make_server", request.param)


def said(metadata: dict[str, Any]) -> tuple[int, int]:
    """Microseconds of waiting and of serving."""
    queue_us, service_us = metadata["rolltop-times-us"].split(",")
    return int(queue_us), int(service_us)


@asynccontextmanager
async def serving(handler: grpc.RpcMethodHandler) -> AsyncIterator[grpc.aio.Channel]:
    server = make_server()
    generic = grpc.method_handlers_generic_handler("a.B", {"m": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(0)
        await server.wait_for_termination()


async def trailing(behaviour: Callable[..., Any], request: bytes = b"x") -> dict[str, Any]:
    async with serving(grpc.unary_unary_rpc_method_handler(behaviour)) as channel:
        call = channel.unary_unary("/a.B/m")(request)
        return dict(await call.trailing_metadata() or ())


async def test_a_handler_that_uses_neither_executor_nor_slot_says_nothing() -> None:
    async def handle(request: bytes, context: Any) -> bytes:
        return request

    assert not OURS & set(await trailing(handle))


async def test_the_executors_times_come_home_beside_the_handlers_own() -> None:
    with StampedExecutor(1) as executor:

        async def handle(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            assert isinstance(context, grpc.aio.ServicerContext)
            await executor.run(time.sleep, 0.01)
            context.set_trailing_metadata((("theirs", "kept"), ("bin-bin", b"\x00")))
            return request

        got = await trailing(handle)
    assert got["theirs"] == "kept"
    assert got["bin-bin"] == b"\x00"
    queue_us, service_us = said(got)
    assert service_us >= 10_000
    assert queue_us >= 0


@pytest.mark.parametrize("own", [(), (("why", "because"),)])
@pytest.mark.parametrize("early", [(), (("early", "yes"),)])
async def test_an_abort_carries_them_too(own: Any, early: Any) -> None:
    slot = StampedSlot(1)

    async def handle(request: bytes, context: Any) -> bytes:
        async with slot:
            await asyncio.sleep(0.005)
        if early:
            context.set_trailing_metadata(early)
        await context.abort(grpc.StatusCode.NOT_FOUND, "nothing", own)
        raise AssertionError

    async with serving(grpc.unary_unary_rpc_method_handler(handle)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/a.B/m")(b"x")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == "nothing"
    got = dict(caught.value.trailing_metadata())
    assert set(got) >= OURS
    assert set(got) >= ({key for key, _ in own} or {key for key, _ in early})


async def test_an_abort_with_status_is_the_handlers_own() -> None:
    class Status(grpc.Status):
        code = grpc.StatusCode.ABORTED
        details = "theirs"
        trailing_metadata = (("why", "because"),)

    slot = StampedSlot(1)

    async def handle(request: bytes, context: Any) -> bytes:
        async with slot:
            pass
        await context.abort_with_status(Status())
        raise AssertionError

    async with serving(grpc.unary_unary_rpc_method_handler(handle)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/a.B/m")(b"x")
    assert caught.value.code() in {grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN}


async def test_a_handler_that_raises_carries_them_too() -> None:
    slot = StampedSlot(1)

    async def handle(request: bytes, context: Any) -> bytes:
        async with slot:
            raise ValueError("theirs")

    assert set(await trailing(handle)) >= OURS


async def test_status_set_by_the_handler_is_kept() -> None:
    slot = StampedSlot(1)

    async def handle(request: bytes, context: Any) -> bytes:
        async with slot:
            context.set_code(grpc.StatusCode.OUT_OF_RANGE)
            context.set_details("far")
        assert context.code() == grpc.StatusCode.OUT_OF_RANGE
        return request

    async with serving(grpc.unary_unary_rpc_method_handler(handle)) as channel:
        call = channel.unary_unary("/a.B/m")(b"x")
        assert await call.code() == grpc.StatusCode.OUT_OF_RANGE
        assert await call.details() == "far"
        assert {key for key, _ in await call.trailing_metadata()} >= OURS


async def test_each_call_has_its_own_stamps() -> None:
    slot = StampedSlot(1)

    async def handle(request: bytes, context: Any) -> bytes:
        async with slot:
            await asyncio.sleep(0.02)
        return str(len(current_stamps()._turns)).encode()

    async with serving(grpc.unary_unary_rpc_method_handler(handle)) as channel:
        method = channel.unary_unary("/a.B/m")
        calls = [method(b"x") for _ in range(3)]
        assert [await call for call in calls] == [b"1"] * 3
        metadata = [dict(await call.trailing_metadata()) for call in calls]
    assert all(said(m)[1] >= 19_000 for m in metadata)


async def test_streams_add_up_their_turns() -> None:
    slot = StampedSlot(1)

    async def numbers(request: bytes, context: Any) -> AsyncIterator[bytes]:
        for n in range(3):
            async with slot:
                await asyncio.sleep(0.005)
            yield str(n).encode()

    async with serving(grpc.unary_stream_rpc_method_handler(numbers)) as channel:
        call = channel.unary_stream("/a.B/m")(b"x")
        assert [m async for m in call] == [b"0", b"1", b"2"]
        got = dict(await call.trailing_metadata())
    assert said(got)[1] >= 14_000


async def test_a_stream_written_by_hand() -> None:
    slot = StampedSlot(1)

    async def echo(requests: Any, context: Any) -> None:
        async with slot:
            while (message := await context.read()) is not grpc.aio.EOF:
                await context.write(message)

    async with serving(grpc.stream_stream_rpc_method_handler(echo)) as channel:
        call = channel.stream_stream("/a.B/m")(iter([b"a", b"b"]))
        assert [m async for m in call] == [b"a", b"b"]
        assert set(dict(await call.trailing_metadata())) >= OURS


async def test_handlers_of_other_shapes_are_left_alone() -> None:
    def plain(request: bytes, context: Any) -> bytes:
        return request + b"!"

    async def bound(suffix: bytes, request: bytes, context: Any) -> bytes:
        return request + suffix

    for behaviour, answer in ((plain, b"x!"), (functools.partial(bound, b"?"), b"x?")):
        async with serving(grpc.unary_unary_rpc_method_handler(behaviour)) as channel:
            assert await channel.unary_unary("/a.B/m")(b"x") == answer


async def test_a_method_that_is_not_there_is_still_unimplemented() -> None:
    async def handle(request: bytes, context: Any) -> bytes:
        return request

    async with serving(grpc.unary_unary_rpc_method_handler(handle)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/a.B/other")(b"x")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_fault_of_ours_costs_the_stamps_and_not_the_answer(
    faults_are_hidden: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from rolltop_instrument import grpc_server

    def fail(*args: object) -> None:
        raise RuntimeError("ours")

    async def handle(request: bytes, context: Any) -> bytes:
        return request

    monkeypatch.setattr(grpc_server, "_entries", fail)
    assert not OURS & set(await trailing(handle))
    monkeypatch.setattr(grpc_server, "_timed", fail)
    assert not OURS & set(await trailing(handle))
    assert len(caplog.records) == 2
