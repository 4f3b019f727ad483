"""A run's Prometheus at work: what it scrapes, who shares its data, what it says when it fails."""

from __future__ import annotations

import http.server
import signal
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

from rolltop.errors import PrometheusError
from rolltop.launch.ports import PortLeases
from rolltop.logs import tail
from rolltop.model.target import TargetGroup
from rolltop.prometheus.database import copy_data
from rolltop.prometheus.file_sd import write_targets
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.scrape import NOTHING, render_config
from rolltop.prometheus.server import wait_ready

PAGE = b"""# TYPE steps counter
steps_total{run_uuid="forged",worker_id="0"} 7
"""


def start(binary, folder, port, *, config, data=None):
    """Start a server; its log is ``folder/log``."""
    folder.mkdir(exist_ok=True)
    (folder / "prometheus.yml").write_text(config)
    command = binary.command(
        config=folder / "prometheus.yml", data=data or folder / "data", port=port
    )
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def page():
    """A worker's page, and the paths that were asked of it."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield SimpleNamespace(port=server.server_port, asked=asked)
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def live(binary, page, tmp_path_factory):
    """A server that has scraped the page."""
    folder = tmp_path_factory.mktemp("live") / "prometheus"
    labels = {"job": "alpasim-runtime-worker", "run_uuid": "true", "__param_run": "true"}
    write_targets(
        folder / "targets",
        [
            TargetGroup((f"127.0.0.1:{page.port}",), labels),
            TargetGroup((f"127.0.0.1:{page.port}",), {"job": "alpasim-node", "run_uuid": "true"}),
        ],
    )
    with PortLeases() as leases:
        (port,) = leases.lease()
        url = f"http://127.0.0.1:{port}"
        server = start(binary, folder, port, config=render_config(worker_interval_s=0.2))
        try:
            wait_ready(url, 60.0, is_alive=lambda: server.poll() is None, log=folder / "log")
            with Prometheus(url) as client:
                until = time.monotonic() + 60.0
                while len(client.query("steps_total")) < 2:
                    assert time.monotonic() < until
                    time.sleep(0.1)
                yield SimpleNamespace(server=server, client=client, folder=folder, port=port)
        finally:
            server.terminate()
            server.wait()


def test_labels_come_from_the_target_and_never_from_the_page(live):
    found = {one.labels["job"]: one.labels for one in live.client.query("steps_total")}
    assert set(found) == {"alpasim-runtime-worker", "alpasim-node"}
    for labels in found.values():
        assert labels["run_uuid"] == "true"
        assert labels["exported_run_uuid"] == "forged"
        assert labels["worker_id"] == "0"
    assert live.client.query('up{run_uuid="forged"}') == []


def test_the_run_is_named_in_the_request(live, page):
    assert {"/metrics?run=true", "/metrics"} == set(page.asked)


def test_says_when_each_target_was_last_scraped(live):
    targets = {one.pool: one for one in live.client.targets()}
    assert {one.health for one in targets.values()} == {"up"}
    assert (targets["workers"].interval_s, targets["exporters"].interval_s) == (0.2, 5.0)
    first = targets["workers"].last_scrape_s
    assert abs(time.time() - first) < 60.0
    until = time.monotonic() + 30.0
    while first == next(t for t in live.client.targets() if t.pool == "workers").last_scrape_s:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_never_deletes(live):
    assert live.client.runtime_info()["storageRetention"] == "100y"


def test_a_second_server_may_not_have_its_data(live, binary, tmp_path):
    with PortLeases() as leases:
        (port,) = leases.lease()
        data = live.folder / "data"
        second = start(binary, tmp_path / "second", port, config=NOTHING, data=data)
        with pytest.raises(PrometheusError, match="lock") as caught:
            wait_ready(
                f"http://127.0.0.1:{port}",
                60.0,
                is_alive=lambda: second.poll() is None,
                log=tmp_path / "second/log",
            )
        assert second.wait() != 0
    assert "ended before it was ready" in caught.value.message
    assert str(tmp_path / "second/log") in caught.value.hint


def test_a_taken_port_is_said(live, binary, tmp_path):
    second = start(binary, tmp_path / "second", live.port, config=NOTHING)
    assert second.wait(60) != 0
    assert any("address already in use" in line for line in tail(tmp_path / "second/log"))


def test_a_bad_configuration_is_said(binary, tmp_path):
    with PortLeases() as leases:
        (port,) = leases.lease()
        server = start(binary, tmp_path / "bad", port, config="globl: {}\n")
        with pytest.raises(PrometheusError, match="globl"):
            wait_ready(
                f"http://127.0.0.1:{port}",
                60.0,
                is_alive=lambda: server.poll() is None,
                log=tmp_path / "bad/log",
            )


def test_one_that_is_not_ready_in_time(tmp_path):
    with PortLeases() as leases:
        (port,) = leases.lease()
        with pytest.raises(PrometheusError, match=r"is not ready after 0\.1 s"):
            wait_ready(f"http://127.0.0.1:{port}", 0.1)


@pytest.mark.parametrize("how", ["while it runs", "after kill -9"])
def test_its_data_read_back(live, binary, tmp_path, how):
    """Last in this module: the second case ends the server."""
    if how == "after kill -9":
        live.server.send_signal(signal.SIGKILL)
        live.server.wait()
    copy_data(live.folder / "data", tmp_path / "copy")
    with PortLeases() as leases:
        (port,) = leases.lease()
        url = f"http://127.0.0.1:{port}"
        server = start(binary, tmp_path / "p", port, config=NOTHING, data=tmp_path / "copy")
        try:
            wait_ready(url, 60.0, is_alive=lambda: server.poll() is None, log=tmp_path / "p/log")
            with Prometheus(url) as client:
                first, last = client.head_range()
                found = client.query("steps_total[1h]", at=last)
                assert len(found) == 2
                assert {value for one in found for value in one.values} == {7.0}
                assert first <= min(one.t_s[0] for one in found)
        finally:
            server.terminate()
            server.wait()
