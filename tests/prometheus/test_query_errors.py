"""Every way in which a server can fail to answer, over real HTTP where the way is HTTP's."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rolltop.errors import QueryError
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.transport import is_loopback
from rolltop.testing.prometheus import FakePrometheus
from rolltop.testing.prometheus_contract import START_S, history

GOOD = {"status": "success", "data": {"resultType": "vector", "result": []}}


@contextlib.contextmanager
def serving(status, content_type, body, *, length=None):
    """Serve one answer to everything; ``length`` lies about the body's."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def failure(url, promql="up", timeout_s=5.0):
    with Prometheus(url, timeout_s=timeout_s) as client, pytest.raises(QueryError) as caught:
        client.query(promql)
    assert url in caught.value.message
    assert promql in caught.value.message
    assert caught.value.hint
    return caught.value


def test_nobody_listens():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        error = failure(f"http://127.0.0.1:{bound.getsockname()[1]}")
    assert "connection refused" in error.message
    assert "is it running" in error.hint


def test_nobody_answers():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = failure(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.1)
    assert "no answer within 0.1 s" in error.message
    assert "ask for less" in error.hint


@pytest.mark.parametrize("url", ["http://nobody.invalid:9090", "ftp://127.0.0.1:1", "nonsense"])
def test_no_address(url):
    failure(url)


def error_body(text):
    return json.dumps({"status": "error", "errorType": "execution", "error": text}).encode()


@pytest.mark.parametrize(
    ("status", "content_type", "body", "says"),
    [
        (400, "application/json", error_body("parse error: x"), "refused: parse error: x"),
        (422, "application/json", error_body("too many samples"), "refused: too many samples"),
        (503, "application/json", error_body("query timed out"), "refused: query timed out"),
        (200, "text/html; charset=utf-8", b"<html>Login</html>", "HTTP 200 with text/html"),
        (502, "text/html", b"<html>Bad gateway</html>", "HTTP 502 with text/html"),
        (404, "text/plain", b"404 page not found", "HTTP 404 with text/plain"),
        (401, "text/plain", b"Unauthorized", "HTTP 401 with text/plain"),
        (200, "application/json", json.dumps(GOOD).encode()[:-5], "not whole JSON"),
        (200, "application/json", b"", "not whole JSON"),
        (200, "application/json", b"\xff\xfe", "not whole JSON"),
        (200, "application/json", b"[]", "no status and data"),
        (200, "application/json", b'{"status": "success", "data": []}', "cannot be read"),
        (200, "application/json", b"[" * 100_000, "cannot be read"),
    ],
)
def test_an_answer_that_is_none(status, content_type, body, says):
    with serving(status, content_type, body) as url:
        assert says in failure(url).message


def test_an_answer_that_breaks_off():
    body = json.dumps(GOOD).encode()
    with serving(200, "application/json", body, length=len(body) + 10) as url:
        failure(url, timeout_s=5.0)


def test_a_string_is_not_numbers():
    data = {"resultType": "string", "result": [1, "x"]}
    body = json.dumps({"status": "success", "data": data}).encode()
    with serving(200, "application/json", body) as url:
        assert "not numbers over time" in failure(url).message


def test_a_page_of_another_server_is_not_ready():
    with serving(500, "text/html", b"") as url, Prometheus(url) as client:
        assert not client.ready()


def test_a_proxy_of_the_environment_is_not_asked_for_this_host(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.invalid:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(200, "application/json", json.dumps(GOOD).encode()) as url:
        assert Prometheus(url).query("up") == []


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:9", True),
        ("http://127.1.2.3", True),
        ("http://[::1]:9", True),
        ("http://localhost:9", True),
        ("http://10.0.0.1:9", False),
        ("https://prometheus.cluster", False),
        ("", False),
    ],
)
def test_loopback(url, loopback):
    assert is_loopback(url) is loopback


def test_a_long_expression_is_shortened_in_the_message():
    fake = FakePrometheus()
    fake.refuse()
    with pytest.raises(QueryError) as caught:
        fake.client().query("x" * 10_000)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("start_s", "end_s", "step_s"),
    [
        (2.0, 1.0, 1.0),
        (float("nan"), 1.0, 1.0),
        (0.0, float("inf"), 1.0),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, -1.0),
        (0.0, 1.0, float("nan")),
    ],
)
def test_a_range_that_is_none(start_s, end_s, step_s):
    fake = FakePrometheus(stored=history())
    with pytest.raises(QueryError):
        fake.client().query_range("steps", start_s, end_s, step_s)
    assert fake.asked == []


def test_a_time_that_is_none():
    with pytest.raises(QueryError, match="no time"):
        FakePrometheus().client().query("steps", at=float("nan"))


def test_the_fake_fails_and_recovers():
    fake = FakePrometheus(stored=history())
    client = fake.client()
    for break_it, says in ((fake.refuse, "refused"), (fake.be_late, "within")):
        break_it()
        assert not client.ready()
        with pytest.raises(QueryError, match=says):
            client.query("steps")
    fake.reply(200, "text/html", b"<html>")
    with pytest.raises(QueryError, match="text/html"):
        client.query("steps")
    fake.recover()
    assert len(client.query("steps")) == 2


def test_the_fake_gives_what_it_was_told():
    told = history()[:1]
    fake = FakePrometheus(answers={"rate(steps[1m])": told})
    (one,) = fake.client().query_range("rate(steps[1m])", START_S, START_S + 20, 10.0)
    assert one.values.tolist() == told[0].values.tolist()
    (last,) = fake.client().query("rate(steps[1m])", at=START_S)
    assert last.values.tolist() == [told[0].values[-1]]


def test_several_threads_ask_at_once(real):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: real.query(f"vector({n})", at=START_S), range(64)))
    assert [one[0].values[0] for one in found] == list(range(64))


def test_it_can_be_asked_after_it_was_closed(real):
    real.close()
    assert real.ready()
