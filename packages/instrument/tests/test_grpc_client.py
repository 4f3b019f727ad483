"""Interceptors and recording channel against a real gRPC server, in all four kinds of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from rolltop_instrument import StampedSlot, WorkerTelemetry
from rolltop_instrument._calls import CallBook
from rolltop_instrument.grpc_server import ServerTimingInterceptor

Read = Callable[..., float | None]
LABELS = {"service": "renderer", "endpoint": "renderer-0"}


class Service:
    """Echoes; a request says how to misbehave."""

    def __init__(self) -> None:
        self.slot = StampedSlot(1)
        self.hanging = False
        self.cancelled = asyncio.Event()

    async def _obey(self, request: bytes, context: Any) -> None:
        if request == b"abort":
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as asked")
        if request == b"raise":
            raise ValueError("as asked")
        if request == b"hang":
            self.hanging = True
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

    async def unary(self, request: bytes, context: Any) -> bytes:
        async with self.slot:
            await asyncio.sleep(0.002)
        context.set_trailing_metadata((("theirs", "kept"),))
        await self._obey(request, context)
        return request

    async def stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        async with self.slot:
            yield request
        await self._obey(request, context)
        yield b"last"

    async def collect(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        async with self.slot:
            parts = [request async for request in requests]
        await self._obey(parts[-1], context)
        return b"".join(parts)

    async def chat(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            async with self.slot:
                await self._obey(request, context)
            yield request

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "sim.Renderer",
            {
                "DoUnary": grpc.unary_unary_rpc_method_handler(self.unary),
                "do_stream": grpc.unary_stream_rpc_method_handler(self.stream),
                "do_collect": grpc.stream_unary_rpc_method_handler(self.collect),
                "do_chat": grpc.stream_stream_rpc_method_handler(self.chat),
            },
        )


class Bench:
    """A worker's telemetry and a channel of its to a real server."""

    def __init__(
        self, telemetry: WorkerTelemetry, service: Service, address: str, way: str
    ) -> None:
        self.telemetry = telemetry
        self.way = way
        self.service = service
        self.address = address
        self.channel = self.new_channel()

    def new_channel(
        self, *, before: tuple[Any, ...] = (), after: tuple[Any, ...] = (), **kwargs: Any
    ) -> Any:
        name = {"endpoint": "renderer-0", **kwargs}
        if self.way == "channel":
            theirs = grpc.aio.insecure_channel(self.address, interceptors=[*before, *after])
            return self.telemetry.grpc_channel(theirs, "renderer", **name)
        ours = self.telemetry.grpc_interceptors("renderer", **name)
        return grpc.aio.insecure_channel(self.address, interceptors=[*before, *ours, *after])

    def unary(self) -> Any:
        return self.channel.unary_unary("/sim.Renderer/DoUnary")

    def stream(self) -> Any:
        return self.channel.unary_stream("/sim.Renderer/do_stream")

    def collect(self) -> Any:
        return self.channel.stream_unary("/sim.Renderer/do_collect")

    def chat(self) -> Any:
        return self.channel.stream_stream("/sim.Renderer/do_chat")


@pytest.fixture(params=["interceptors", "channel"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    service = Service()
    server = grpc.aio.server(interceptors=[ServerTimingInterceptor()])
    server.add_generic_rpc_handlers((service.handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    made = Bench(WorkerTelemetry(), service, f"127.0.0.1:{port}", request.param)
    yield made
    await made.channel.close()
    await server.stop(0)
    await server.wait_for_termination()


@pytest.fixture
def recorded(bench: Bench, value: Read, until: Any) -> Callable[..., Awaitable[None]]:
    """Checks what ``n`` calls of a method left behind, once nothing is in flight any more."""

    async def check(method: str, n: int = 1, *, code: str | None = None, said: bool = True) -> None:
        telemetry = bench.telemetry
        key = {"service": "renderer", "method": method}
        await until(lambda: not telemetry._book.service("renderer").in_flight)
        assert value(telemetry, "alpasim_rpc_duration_seconds_count", **key) == n
        assert value(telemetry, "rolltop_rpc_calls_total", **LABELS) == n
        assert telemetry._book.service("renderer").in_flight == 0
        depth = "alpasim_rpc_queue_depth_at_start_latest"
        assert value(telemetry, depth, service="renderer") == 0
        served = value(telemetry, "rolltop_rpc_server_service_seconds_count", service="renderer")
        assert served == (n if said else None)
        failures = {c: telemetry._book.service("renderer")._failures[c][0] for c in _codes(bench)}
        assert {c: n for c, n in failures.items() if n} == ({} if code is None else {code: 1})

    return check


def _codes(bench: Bench) -> list[str]:
    return list(bench.telemetry._book.service("renderer")._failures)


# ---- answers ---------------------------------------------------------------------------------


async def test_unary_unary(bench: Bench, recorded: Any, value: Read) -> None:
    call = bench.unary()(b"x")
    seen: list[Any] = []
    call.add_done_callback(seen.append)
    assert await call == b"x"
    assert await call.code() == grpc.StatusCode.OK
    assert ("theirs", "kept") in tuple(await call.trailing_metadata())
    assert await call.initial_metadata() is not None
    assert await call.details() == ""
    assert call.done()
    assert not call.cancelled()
    assert not call.cancel()
    assert seen == [call]
    await recorded("do_unary")
    key = {"service": "renderer", "method": "do_unary"}
    assert value(bench.telemetry, "alpasim_rpc_blocking_seconds_count", **key) == 1
    whole = value(bench.telemetry, "rolltop_rpc_endpoint_seconds_total", **LABELS)
    served = value(bench.telemetry, "rolltop_rpc_endpoint_service_seconds_total", **LABELS)
    queued = value(bench.telemetry, "rolltop_rpc_endpoint_queue_seconds_total", **LABELS)
    assert whole is not None
    assert served is not None
    assert queued is not None
    assert served >= 0.002
    assert whole >= served + queued


async def test_a_recorded_call_has_all_that_grpcs_has(bench: Bench) -> None:
    async with grpc.aio.insecure_channel(bench.address) as plain:
        for kind in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
            request: Any = iter([b"x"]) if kind.startswith("stream") else b"x"
            theirs = getattr(plain, kind)("/sim.Renderer/DoUnary")(request)
            ours = getattr(bench.channel, kind)("/sim.Renderer/DoUnary")(request)
            public = {name for name in dir(theirs) if not name.startswith("_")}
            assert {name for name in public if not hasattr(ours, name)} == set()
            theirs.cancel()
            ours.cancel()


async def test_what_is_asked_of_a_recorded_call_is_asked_of_grpcs(bench: Bench) -> None:
    plain = grpc.aio.insecure_channel(bench.address)
    async with bench.telemetry.grpc_channel(plain, "renderer") as channel:
        call = channel.unary_unary("/sim.Renderer/DoUnary")(b"x", timeout=30)
        assert 0 < call.time_remaining() <= 30
        assert await call == b"x"
        assert await call.details() == ""


async def test_rare_methods_may_be_counted_together(bench: Bench, value: Read) -> None:
    renamed = {"do_unary": "rare", "do_collect": "rare"}
    async with bench.new_channel(rename_methods=renamed) as channel:
        assert await channel.unary_unary("/sim.Renderer/DoUnary")(b"x") == b"x"
        assert await channel.stream_unary("/sim.Renderer/do_collect")(iter([b"y"])) == b"y"
    count = "alpasim_rpc_duration_seconds_count"
    assert value(bench.telemetry, count, service="renderer", method="rare") == 2
    assert value(bench.telemetry, count, service="renderer", method="do_unary") is None


async def test_awaiting_twice_records_once(bench: Bench, recorded: Any) -> None:
    call = bench.unary()(b"x")
    assert [await call, await call] == [b"x", b"x"]
    await recorded("do_unary")


async def test_a_waiter_that_is_closed_ends_no_call(bench: Bench, recorded: Any) -> None:
    plain = grpc.aio.insecure_channel(bench.address)
    async with bench.telemetry.grpc_channel(plain, "renderer", endpoint="renderer-0") as channel:
        call = channel.unary_unary("/sim.Renderer/DoUnary")(b"x")
        waiter = call.__await__()
        waiter.send(None)
        waiter.close()
        assert await call.code() == grpc.StatusCode.OK
        await recorded("do_unary")


async def test_two_waiters_record_once(bench: Bench, recorded: Any) -> None:
    call = bench.unary()(b"x")

    async def wait() -> bytes:
        return await call

    assert await asyncio.gather(wait(), wait()) == [b"x", b"x"]
    await recorded("do_unary")


async def test_calls_in_flight_are_the_depth(
    bench: Bench, recorded: Any, value: Read, until: Any
) -> None:
    async with bench.service.slot:
        calls = [asyncio.ensure_future(_answer(bench.unary()(b"x"))) for _ in range(5)]
        await until(lambda: bench.telemetry._book.service("renderer").in_flight == 5)
        depth = "alpasim_rpc_queue_depth_at_start_latest"
        assert value(bench.telemetry, depth, service="renderer") == 5
    await asyncio.gather(*calls)
    await recorded("do_unary", 5)
    queue = value(bench.telemetry, "rolltop_rpc_server_queue_seconds_sum", service="renderer")
    assert queue is not None
    assert queue >= 0.002


async def _answer(call: Awaitable[bytes]) -> bytes:
    return await call


async def test_a_call_that_nobody_awaits_is_recorded_when_it_completes(
    bench: Bench, recorded: Any, value: Read
) -> None:
    call = bench.unary()(b"x")
    assert await call.code() == grpc.StatusCode.OK
    await recorded("do_unary")
    key = {"service": "renderer", "method": "do_unary"}
    assert value(bench.telemetry, "alpasim_rpc_blocking_seconds_count", **key) == 0
    assert await call == b"x"
    await recorded("do_unary")


async def test_a_blocked_loop_is_blocking_time(bench: Bench, value: Read) -> None:
    """The loop is held between gRPC's completion and the caller's resumption."""
    import time

    call = bench.unary()(b"x")
    call.add_done_callback(lambda _call: asyncio.get_running_loop().call_soon(time.sleep, 0.05))
    assert await call == b"x"
    key = {"service": "renderer", "method": "do_unary"}
    blocked = value(bench.telemetry, "alpasim_rpc_blocking_seconds_sum", **key)
    assert blocked is not None
    assert blocked >= 0.05


async def test_a_loop_that_is_blocked_before_it_learns_of_the_answer_is_not(
    bench: Bench, value: Read
) -> None:
    """It shows in the call's duration beyond the server's times, as the loop's work."""
    import time

    call = bench.unary()(b"x")
    asyncio.get_running_loop().call_later(0, time.sleep, 0.2)
    assert await call == b"x"
    key = {"service": "renderer", "method": "do_unary"}
    blocked = value(bench.telemetry, "alpasim_rpc_blocking_seconds_sum", **key)
    duration = value(bench.telemetry, "alpasim_rpc_duration_seconds_sum", **key)
    assert duration is not None
    assert blocked is not None
    assert duration >= 0.2
    assert blocked < duration - 0.1


async def test_unary_stream(bench: Bench, recorded: Any, value: Read) -> None:
    call = bench.stream()(b"x")
    assert [message async for message in call] == [b"x", b"last"]
    assert await call.code() == grpc.StatusCode.OK
    await recorded("do_stream")


async def test_unary_stream_read_by_hand(bench: Bench, recorded: Any) -> None:
    call = bench.stream()(b"x")
    assert [await call.read(), await call.read()] == [b"x", b"last"]
    assert await call.read() is grpc.aio.EOF
    await recorded("do_stream")


async def test_stream_unary(bench: Bench, recorded: Any) -> None:
    async def requests() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    assert await bench.collect()(requests()) == b"ab"
    await recorded("do_collect")


async def test_stream_unary_of_a_list(bench: Bench, recorded: Any) -> None:
    assert await bench.collect()(iter([b"a", b"b"])) == b"ab"
    await recorded("do_collect")


async def test_stream_unary_written_by_hand(bench: Bench, recorded: Any) -> None:
    call = bench.collect()()
    await call.write(b"a")
    await call.write(b"b")
    await call.done_writing()
    assert await call == b"ab"
    await recorded("do_collect")


async def test_stream_stream(bench: Bench, recorded: Any) -> None:
    call = bench.chat()(iter([b"a", b"b"]))
    assert [message async for message in call] == [b"a", b"b"]
    await recorded("do_chat")


async def test_stream_stream_by_hand(bench: Bench, recorded: Any) -> None:
    call = bench.chat()()
    for message in (b"a", b"b"):
        await call.write(message)
        assert await call.read() == message
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    await recorded("do_chat")


# ---- errors ----------------------------------------------------------------------------------


async def _drain(call: Any) -> None:
    async for _ in call:
        pass


KINDS: dict[str, Callable[[Bench, bytes], Awaitable[Any]]] = {
    "do_unary": lambda bench, request: bench.unary()(request),
    "do_stream": lambda bench, request: _drain(bench.stream()(request)),
    "do_collect": lambda bench, request: bench.collect()(iter([request])),
    "do_chat": lambda bench, request: _drain(bench.chat()(iter([request]))),
}


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize(
    ("request_", "code"), [(b"abort", "FAILED_PRECONDITION"), (b"raise", "UNKNOWN")]
)
async def test_an_error_of_the_server(
    method: str, request_: bytes, code: str, bench: Bench, recorded: Any
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await KINDS[method](bench, request_)
    assert caught.value.code().name == code
    await recorded(method, code=code)


@pytest.mark.parametrize("method", KINDS)
async def test_a_caller_that_is_cancelled(
    method: str, bench: Bench, recorded: Any, until: Any
) -> None:
    async def caller() -> None:
        await KINDS[method](bench, b"hang")

    task = asyncio.create_task(caller())
    await until(lambda: bench.service.hanging)
    await asyncio.sleep(0.05)  # gRPC itself loses a cancellation in the turn of its sending
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await recorded(method, code="CANCELLED", said=False)
    await asyncio.wait_for(bench.service.cancelled.wait(), 5)


async def test_a_cancellation_that_grpc_loses_ends_the_call(
    bench: Bench, recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller cancelled while gRPC's own preparation ends: its call goes on, and nobody waits."""

    async def lost(call: Any) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr("grpc.aio._call.UnaryStreamCall._read", lost)
    task = asyncio.create_task(_drain(bench.stream()(b"hang")))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await recorded("do_stream", code="CANCELLED", said=False)


async def test_a_call_that_is_cancelled_before_it_is_sent(bench: Bench, recorded: Any) -> None:
    call = bench.unary()(b"hang")
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()
    assert bench.telemetry._book.service("renderer").in_flight == 0


async def test_a_call_that_is_cancelled_on_its_way(bench: Bench, recorded: Any, until: Any) -> None:
    call = bench.unary()(b"hang")
    await until(lambda: bench.service.hanging)
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await call.code() == grpc.StatusCode.CANCELLED
    await recorded("do_unary", code="CANCELLED", said=False)


@pytest.mark.parametrize("method", KINDS)
async def test_a_deadline(method: str, bench: Bench, recorded: Any) -> None:
    calls = {
        "do_unary": lambda: bench.unary()(b"hang", timeout=0.1),
        "do_stream": lambda: _drain(bench.stream()(b"hang", timeout=0.1)),
        "do_collect": lambda: bench.collect()(iter([b"hang"]), timeout=0.1),
        "do_chat": lambda: _drain(bench.chat()(iter([b"hang"]), timeout=0.1)),
    }
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await calls[method]()
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    await recorded(method, code="DEADLINE_EXCEEDED", said=False)


async def test_a_server_that_is_not_there(value: Read) -> None:
    telemetry = WorkerTelemetry()
    interceptors = telemetry.grpc_interceptors("renderer", endpoint="renderer-0")
    async with grpc.aio.insecure_channel("127.0.0.1:1", interceptors=interceptors) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await channel.unary_unary("/sim.Renderer/DoUnary")(b"x")
    failures = "rolltop_rpc_failures_total"
    assert value(telemetry, failures, service="renderer", code="UNAVAILABLE") == 1
    assert telemetry._book.service("renderer").in_flight == 0


async def test_a_method_that_is_not_there(bench: Bench, value: Read) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await bench.channel.unary_unary("/sim.Renderer/Nothing")(b"x")
    failures = "rolltop_rpc_failures_total"
    assert value(bench.telemetry, failures, service="renderer", code="UNIMPLEMENTED") == 1


@pytest.mark.parametrize("kind", ["collect", "chat"])
async def test_an_exception_in_the_callers_requests(kind: str, bench: Bench, recorded: Any) -> None:
    async def requests() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("the host's own")

    collecting = kind == "collect"
    with pytest.raises(asyncio.CancelledError):
        await (bench.collect()(requests()) if collecting else _drain(bench.chat()(requests())))
    await recorded(f"do_{kind}", code="CANCELLED", said=False)


@pytest.mark.parametrize("kind", ["stream", "chat"])
async def test_a_stream_that_is_left_early_and_cancelled(
    kind: str, bench: Bench, recorded: Any
) -> None:
    call = bench.stream()(b"hang") if kind == "stream" else bench.chat()(iter([b"a", b"hang"]))
    async for message in call:
        assert message in {b"a", b"hang"}
        break
    assert call.cancel()
    await recorded(f"do_{kind}", code="CANCELLED", said=False)


async def test_a_stream_that_is_left_early_is_in_flight_until_its_channel_closes(
    bench: Bench, recorded: Any, value: Read
) -> None:
    """As it is for gRPC, which waits for the rest of the messages to be read."""
    async for message in bench.stream()(b"x"):
        assert message == b"x"
        break
    assert bench.telemetry._book.service("renderer").in_flight == 1
    await bench.channel.close()
    await recorded("do_stream", code="CANCELLED", said=False)


# ---- with others ------------------------------------------------------------------------------


class Header(grpc.aio.UnaryUnaryClientInterceptor):
    """Somebody else's interceptor that awaits the call itself and returns the bare answer."""

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        call = await continuation(client_call_details, request)
        return await call


class Cache(grpc.aio.UnaryUnaryClientInterceptor):
    """Somebody else's interceptor that answers without a call."""

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return b"cached"


class Refuse(grpc.aio.UnaryUnaryClientInterceptor):
    """Somebody else's interceptor that raises."""

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        raise PermissionError("theirs")


@pytest.mark.parametrize(("place", "answer"), [("before", b"x"), ("after", b"x")])
async def test_around_and_inside_an_interceptor_that_awaits(
    place: str, answer: bytes, bench: Bench, recorded: Any
) -> None:
    async with bench.new_channel(**{place: (Header(),)}) as channel:
        assert await channel.unary_unary("/sim.Renderer/DoUnary")(b"x") == answer
    # Ours is outside of an interceptor's bare answer: then the server's times are out of reach.
    await recorded("do_unary", said=place == "before" and bench.way == "interceptors")


async def test_around_an_interceptor_that_answers_itself(bench: Bench, recorded: Any) -> None:
    async with bench.new_channel(after=(Cache(),)) as channel:
        assert await channel.unary_unary("/sim.Renderer/DoUnary")(b"x") == b"cached"
    await recorded("do_unary", said=False)


async def test_around_an_interceptor_that_raises(bench: Bench, recorded: Any) -> None:
    async with bench.new_channel(after=(Refuse(),)) as channel:
        with pytest.raises(PermissionError):
            await channel.unary_unary("/sim.Renderer/DoUnary")(b"x")
    await recorded("do_unary", code="UNKNOWN", said=False)


@pytest.mark.parametrize("broken", ["site", "begin", "end", "watch"])
async def test_a_fault_of_ours_costs_the_record_and_not_the_call(
    broken: str,
    bench: Bench,
    faults_are_hidden: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("ours")

    from rolltop_instrument import _calls, _grpc_calls

    owner = {"site": CallBook, "watch": _grpc_calls.RecordedCall}.get(broken, _calls.CallSite)
    monkeypatch.setattr(owner, broken, fail)
    for _ in range(2):
        assert await bench.unary()(b"x") == b"x"
        assert [m async for m in bench.stream()(b"x")] == [b"x", b"last"]
    assert len(caplog.records) == 1
