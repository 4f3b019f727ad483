"""The page over real HTTP, with well-behaved clients and others."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace

import pytest
from rolltop_instrument import WorkerTelemetry, _page

Answer = tuple[int, dict[str, str], str]


@pytest.fixture
async def worker() -> AsyncIterator[WorkerTelemetry]:
    async with WorkerTelemetry(
        worker_id="0", run_uuid="run-1", port=0, scrape_interval_s=0.01
    ) as telemetry:
        yield telemetry
        telemetry._readers.seen.clear()  # no test waits here for a central reader


def ask(port: int, path: str, method: str = "GET", accept: str | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers={} if accept is None else {"Accept": accept})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


async def get(telemetry: WorkerTelemetry, path: str, **how: str) -> Answer:
    assert telemetry.page_port is not None
    return await asyncio.to_thread(ask, telemetry.page_port, path, **how)


async def test_the_page_is_prometheus_text(
    worker: WorkerTelemetry, parsed: Callable[..., dict[object, float]]
) -> None:
    async with worker.rollout():
        pass
    status, headers, text = await get(worker, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert int(headers["Content-Length"]) == len(text.encode())
    key = ("alpasim_rollouts_total", frozenset({("worker_id", "0"), ("status", "completed")}))
    assert parsed(text)[key] == 1


async def test_it_is_openmetrics_on_request(
    worker: WorkerTelemetry, parsed: Callable[..., dict[object, float]]
) -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    _, headers, text = await get(worker, "/metrics", accept=accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert len(parsed(text, openmetrics=True)) > 50


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/metrics", 200),
        ("/metrics?run=run-1", 200),
        ("/metrics?run=run-1&from=central", 200),
        ("/metrics?run=", 200),
        ("/metrics?run=run-2", 410),
        ("/metrics?from=central&run=run-2", 410),
        ("/", 404),
        ("/metrics/x", 404),
        ("/favicon.ico", 404),
    ],
)
async def test_statuses(worker: WorkerTelemetry, path: str, status: int) -> None:
    got, headers, body = await get(worker, path)
    assert got == status
    head_status, head_headers, nothing = await get(worker, path, method="HEAD")
    assert head_status == status
    assert nothing == ""
    assert headers["Content-Type"] == head_headers["Content-Type"]
    assert body


async def test_another_method_is_refused(worker: WorkerTelemetry) -> None:
    assert (await get(worker, "/metrics", method="POST"))[0] == 501


async def test_who_reads_is_told_apart(worker: WorkerTelemetry) -> None:
    await get(worker, "/metrics?run=run-2")
    await get(worker, "/metrics", method="HEAD")
    assert worker._readers.seen == set()
    await get(worker, "/metrics?run=run-1")
    assert worker._readers.seen == {"own"}
    await get(worker, "/metrics?from=central&run=run-1")
    assert worker._readers.seen == {"own", "central"}


async def test_a_connection_is_kept_for_the_next_scrape(worker: WorkerTelemetry) -> None:
    def twice() -> list[int]:
        connection = http.client.HTTPConnection("127.0.0.1", worker.page_port, timeout=10)
        statuses = []
        for _ in range(2):
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
            assert connection.sock is not None
        connection.close()
        return statuses

    assert await asyncio.to_thread(twice) == [200, 200]


async def test_a_taken_port_is_one_warning_and_no_page(
    worker: WorkerTelemetry, caplog: pytest.LogCaptureFixture
) -> None:
    async with WorkerTelemetry(port=worker.page_port) as second:
        assert second.page_port is None
        async with second.rollout():
            pass
    assert len(caplog.records) == 1
    assert "goes on without it" in caplog.text


@pytest.mark.parametrize("port", [70000, -5])
async def test_a_port_that_is_none_is_a_line_in_the_log(
    port: int, faults_are_hidden: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with WorkerTelemetry(port=port) as telemetry:
        assert telemetry.page_port is None
    assert len(caplog.records) == 1


async def test_clients_that_hang_or_talk_nonsense_stop_nobody(worker: WorkerTelemetry) -> None:
    address = ("127.0.0.1", worker.page_port)
    silent = [socket.create_connection(address) for _ in range(3)]
    half = socket.create_connection(address)
    half.sendall(b"GET /metrics HTTP/1.1\r\nHos")
    gone = socket.create_connection(address)
    gone.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    gone.close()
    nonsense = socket.create_connection(address)
    nonsense.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
    try:
        assert (await get(worker, "/metrics"))[0] == 200
    finally:
        for connection in (*silent, half, nonsense):
            connection.close()


async def talk(telemetry: WorkerTelemetry, said: bytes) -> bytes:
    """All that is answered to these bytes, until the page hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", telemetry.page_port)
    try:
        writer.write(said)
        writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200"),
        (b"GET /metrics HTTP/1.0\n\n", b"HTTP/1.1 200"),
        (b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200"),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", b"HTTP/1.1 200"),
        (b"GET /metrics\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET /metrics HTTP/2\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET /metrics and more HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"),
        (b"PUT /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 501"),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 9000 + b"\r\n\r\n", b"HTTP/1.1 431"),
        (b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 70 + b"\r\n", b"HTTP/1.1 431"),
        (b"\xff\xfe\x00 \xff\r\n\r\n", b"HTTP/1.1 400"),
    ],
)
async def test_heads_of_all_kinds(worker: WorkerTelemetry, said: bytes, answer: bytes) -> None:
    assert (await talk(worker, said)).startswith(answer)


@pytest.mark.parametrize(
    "said", [b"", b"GET /metrics HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHos"]
)
async def test_half_a_head_is_no_scrape(worker: WorkerTelemetry, said: bytes) -> None:
    assert not (await talk(worker, said)).startswith(b"HTTP/1.1 200")
    assert worker._readers.seen == set()


async def test_a_body_is_no_second_request(worker: WorkerTelemetry) -> None:
    """What follows as a body is not read as a request: the page hangs up."""
    inner = b"GET /metrics?from=central HTTP/1.1\r\n\r\n"
    for field in (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"):
        answer = await talk(worker, b"GET / HTTP/1.1\r\n" + field + b"\r\n\r\n" + inner)
        assert answer.count(b"HTTP/1.1 ") == 1
    assert worker._readers.seen == set()


async def test_requests_in_one_go_are_answered_in_turn(worker: WorkerTelemetry) -> None:
    answer = await talk(worker, b"GET / HTTP/1.1\r\n\r\n" * 3)
    assert answer.count(b"HTTP/1.1 404") == 3


HALF = b"GET /metrics HTTP/1.1\r\nHos"


async def _is_over(connection: socket.socket) -> bool:
    connection.settimeout(10)
    with contextlib.suppress(ConnectionError):
        return await asyncio.to_thread(connection.recv, 1) == b""
    return True


@pytest.mark.parametrize("said", [b"", HALF])
async def test_who_holds_all_places_shuts_nobody_out(worker: WorkerTelemetry, said: bytes) -> None:
    address = ("127.0.0.1", worker.page_port)
    kept = http.client.HTTPConnection("127.0.0.1", worker.page_port, timeout=10)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(kept))

        def again() -> int:
            kept.request("GET", "/metrics")
            answer = kept.getresponse()
            answer.read()
            assert kept.sock is not None
            return answer.status

        assert await asyncio.to_thread(again) == 200
        socket_kept = kept.sock
        held = [
            stack.enter_context(socket.create_connection(address))
            for _ in range(_page._MAX_CONNECTIONS - 1)
        ]
        for connection in held:
            connection.sendall(said)
        assert (await get(worker, "/metrics"))[0] == 200
        assert await _is_over(held[0])
        held[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            held[-1].recv(1)
        assert await asyncio.to_thread(again) == 200
        assert kept.sock is socket_kept


async def test_connections_that_are_answered_are_bounded(
    worker: WorkerTelemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_page, "_MAX_CONNECTIONS", 2)
    entered, go_on = threading.Semaphore(0), threading.Event()

    def slowly(openmetrics: bool) -> Iterator[str]:
        entered.release()
        go_on.wait(10)
        yield "done\n"

    monkeypatch.setattr(worker._page._server, "chunks", slowly)
    scrapes = [asyncio.create_task(get(worker, "/metrics")) for _ in range(2)]
    try:
        for _ in scrapes:
            assert await asyncio.to_thread(entered.acquire, timeout=10)
        with socket.create_connection(("127.0.0.1", worker.page_port)) as one_more:
            assert await _is_over(one_more)
    finally:
        go_on.set()
    assert [status for status, _, _ in await asyncio.gather(*scrapes)] == [200, 200]


async def test_a_host_without_descriptors_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Semaphore(0)
    refusals = []

    def refuse(_server: object) -> None:
        refusals.append(1)
        asked.release()
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(socketserver.TCPServer, "get_request", refuse)
    monkeypatch.setattr(_page, "_PAUSE_WITHOUT_DESCRIPTORS_S", 3600.0)
    async with WorkerTelemetry(port=0) as telemetry:
        assert telemetry.page_port is not None
        with socket.create_connection(("127.0.0.1", telemetry.page_port)):
            assert await asyncio.to_thread(asked.acquire, timeout=10)
            await asyncio.sleep(0.05)
            assert len(refusals) == 1
    assert telemetry.page_port is None  # it did not wait for the pause to end


async def test_a_head_that_comes_in_drops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the silence between its bytes: the head has one limit in all."""
    now_s = 100.0

    def passing() -> float:
        nonlocal now_s
        now_s += 0.1
        return now_s

    monkeypatch.setattr(_page, "monotonic", passing)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        incoming = _page._Incoming(theirs, 10.0)
        incoming.begin_head()
        ours.sendall(HALF)
        real = theirs.recv
        drip = SimpleNamespace(settimeout=theirs.settimeout, recv=lambda _: real(1))
        incoming._connection = drip
        assert incoming.readline(8192) == b"GET /metrics HTTP/1.1\r\n"
        ours.sendall(b"t" * 1000)
        with pytest.raises(TimeoutError):
            incoming.readline(8192)
    assert now_s < 110.0


async def test_a_head_in_pieces_is_a_head(worker: WorkerTelemetry) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", worker.page_port)
    for byte in b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n":
        writer.write(bytes([byte]))
        await writer.drain()
    async with asyncio.timeout(10):
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_client_that_never_completes_its_head_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_page, "_HEAD_TIMEOUT_S", 0.05)
    async with WorkerTelemetry(port=0) as telemetry:
        with socket.create_connection(("127.0.0.1", telemetry.page_port)) as half:
            half.sendall(HALF)
            assert await _is_over(half)


async def test_a_silent_client_is_dropped_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_page._Handler, "timeout", 0.05)
    async with WorkerTelemetry(port=0) as telemetry:
        silent = socket.create_connection(("127.0.0.1", telemetry.page_port))
        silent.settimeout(10)
        assert await asyncio.to_thread(silent.recv, 1) == b""
        silent.close()


async def test_after_the_end_the_port_is_free_and_old_connections_are_closed() -> None:
    async with WorkerTelemetry(port=0) as telemetry:
        port = telemetry.page_port
        assert port is not None
        kept = socket.create_connection(("127.0.0.1", port))
        kept.settimeout(10)
        kept.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (await asyncio.to_thread(kept.recv, 15)).startswith(b"HTTP/1.1 200")
        telemetry._readers.seen.clear()
    assert telemetry.page_port is None

    def drain() -> bytes:
        rest = b""
        while more := kept.recv(65536):
            rest = more
        return rest

    await asyncio.to_thread(drain)
    kept.close()
    async with WorkerTelemetry(port=port) as again:
        assert again.page_port == port


async def test_a_fault_in_the_page_is_logged_and_the_next_scrape_is_served(
    worker: WorkerTelemetry,
    faults_are_hidden: None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(worker._page._server, "chunks", lambda openmetrics: 1 / 0)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            await get(worker, "/metrics")
    assert "answering a scrape" in caplog.text
    assert (await get(worker, "/metrics"))[0] == 200
