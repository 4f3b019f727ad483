"""Looking at a run: on a copy, while it goes on, after kill -9, twice at once, without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import numpy as np
import psutil
import pytest

from rolltop.catalogue.questions import ANYTHING, GRAPHS
from rolltop.cli.open import Opened
from rolltop.errors import AnalysisError, ConfigError, DependencyError, PrometheusError
from rolltop.launch.ports import PortLeases
from rolltop.lifecycle.pages import graph_path, graph_url, graphs_of
from rolltop.lifecycle.view import data_span, open_view, viewing
from rolltop.model.run import RunPaths
from rolltop.model.series import Series
from rolltop.prometheus.binary import Source, Version, inspect
from rolltop.prometheus.install import find_or_install
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.scrape import NOTHING
from rolltop.prometheus.server import wait_ready
from rolltop.testing.prometheus import FakePrometheus
from rolltop.testing.prometheus_contract import history, render_openmetrics

STARTED_S = 1_700_000_000.0
N = 61
OPEN = (
    "import sys, typer; from rolltop.cli import open; app = typer.Typer(); open.register(app); "
    "sys.exit(app(sys.argv[1:], standalone_mode=False))"
)


@pytest.fixture(scope="module")
def binary():
    return find_or_install()


@pytest.fixture(scope="module")
def finished(binary, tmp_path_factory):
    """The directory of a run that has one block: steps for ten minutes."""
    run = RunPaths(tmp_path_factory.mktemp("finished"))
    run.prometheus.mkdir()
    times = STARTED_S + 10.0 * np.arange(N)
    series = Series(
        {"__name__": "alpasim_step_duration_seconds_count", "run_uuid": "u"},
        times,
        np.arange(float(N)),
    )
    text = run.run_dir / "history.om"
    text.write_text(render_openmetrics([series]))
    command = [binary.promtool, "tsdb", "create-blocks-from", "openmetrics", "-q", text, run.data]
    subprocess.run(command, check=True, capture_output=True)
    run.metadata.write_text("run_uuid: u\n")
    return run


@pytest.fixture(scope="module")
def running(binary, tmp_path_factory):
    """A run that goes on: its server scrapes itself, every quarter of a second."""
    run = RunPaths(tmp_path_factory.mktemp("running"))
    run.prometheus.mkdir()
    with PortLeases() as leases:
        (port,) = leases.lease()
        job = {"job_name": "self", "scrape_interval": "250ms", "scrape_timeout": "250ms"}
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
        run.prometheus_config.write_text(json.dumps({"scrape_configs": [job]}))
        log = run.run_dir / "log"
        command = binary.command(config=run.prometheus_config, data=run.data, port=port)
        with log.open("wb") as output:
            server = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_ready(url, 60.0, is_alive=lambda: server.poll() is None, log=log)
            with Prometheus(url) as client:
                until = time.monotonic() + 60.0
                while not client.query("up[10s]"):
                    assert time.monotonic() < until
                    time.sleep(0.1)
            yield SimpleNamespace(run=run, server=server)
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """Where copies are made; it must be empty again at the end."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def state(folder):
    return {
        str(path): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def steps(client):
    end_s = STARTED_S + 10.0 * (N - 1)
    (one,) = client.query_range("alpasim_step_duration_seconds_count", STARTED_S, end_s, 10.0)
    return one.values.tolist()


def test_a_finished_run_is_read_and_not_touched(finished, copies):
    before = state(finished.run_dir)
    with viewing(finished) as prometheus:
        assert steps(prometheus) == list(range(N))
        assert prometheus.targets() == []
        assert prometheus.runtime_info()["storageRetention"] == "100y"
    assert state(finished.run_dir) == before


def test_the_time_of_its_samples_is_known(finished, copies):
    with open_view(finished) as view:
        assert view.span == (STARTED_S, pytest.approx(STARTED_S + 10.0 * (N - 1), abs=0.01))


def test_the_server_is_gone_afterwards(finished, copies):
    with open_view(finished) as view:
        assert psutil.pid_exists(view.pid)
    assert not psutil.pid_exists(view.pid)


def test_an_error_of_the_user_goes_through(finished, copies):
    with pytest.raises(ZeroDivisionError), viewing(finished):
        raise ZeroDivisionError


def test_several_at_once(finished, copies):
    def look(_):
        with viewing(finished) as prometheus:
            return prometheus.url, steps(prometheus)

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(look, range(3)))
    assert len({url for url, _ in found}) == 3
    assert all(values == list(range(N)) for _, values in found)


def test_one_that_only_its_owner_can_write_to(finished, copies, tmp_path):
    """Root may write anywhere, so that the folder is compared as well."""
    run = RunPaths(tmp_path / "read-only")
    shutil.copytree(finished.run_dir, run.run_dir)
    for place in (*run.run_dir.rglob("*"), run.run_dir):
        place.chmod(0o555 if place.is_dir() else 0o444)
    before = state(run.run_dir)
    try:
        with viewing(run) as prometheus:
            assert steps(prometheus) == list(range(N))
        assert state(run.run_dir) == before
    finally:
        for place in (run.run_dir, *run.run_dir.rglob("*")):
            place.chmod(0o755)


def test_another_file_system(finished, binary, monkeypatch):
    other = Path("/dev/shm") / f"rolltop-test-{os.getpid()}"
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(other))
    monkeypatch.setenv("ROLLTOP_CACHE_DIR", str(other))
    try:
        with open_view(finished, binary=binary) as view:
            assert other in view.log.parents
            assert steps(view.prometheus) == list(range(N))
        assert list(other.iterdir()) == []
    finally:
        other.rmdir()


def test_a_run_that_goes_on(running, copies):
    with open_view(running.run) as view:
        first, last = view.span
        assert len(view.prometheus.query("up[1m]", at=last)) == 1
        assert last >= first
    assert running.server.poll() is None


def test_a_run_that_was_killed(running, binary, copies, tmp_path):
    run = RunPaths(tmp_path / "killed")
    run.prometheus.mkdir(parents=True)
    config, log = tmp_path / "prometheus.yml", tmp_path / "log"
    config.write_text(NOTHING)
    with open_view(running.run) as view:
        shutil.copytree(view.log.parent / "data", run.data)
    with PortLeases() as leases:
        (port,) = leases.lease()
        with log.open("wb") as output:
            server = subprocess.Popen(
                binary.command(config=config, data=run.data, port=port),
                stdout=output,
                stderr=output,
            )
        url = f"http://127.0.0.1:{port}"
        wait_ready(url, 60.0, is_alive=lambda: server.poll() is None, log=log)
        server.send_signal(signal.SIGKILL)
        server.wait()
    before = state(run.run_dir)
    with open_view(run) as view:
        assert len(view.prometheus.query("up[1m]", at=view.span[1])) == 1
    assert state(run.run_dir) == before


@pytest.mark.parametrize("made", [(), ("prometheus/data",), ("prometheus/data/wal/00000000",)])
def test_no_samples(tmp_path, copies, made):
    """Nothing, no database, and that of a Prometheus that was stopped before its first scrape."""
    for name in made:
        place = tmp_path / name
        place.parent.mkdir(parents=True)
        place.touch() if name.endswith("0") else place.mkdir()
    with pytest.raises(AnalysisError) as caught, viewing(RunPaths(tmp_path)):
        pass
    assert caught.value.exit_status == 6
    assert str(tmp_path / "prometheus/data") in caught.value.message
    assert "telemetry.enabled=false" in caught.value.hint


def test_no_prometheus(finished, copies, monkeypatch):
    monkeypatch.setenv("ROLLTOP_PROMETHEUS", "/nowhere/prometheus")
    with pytest.raises(DependencyError, match="/nowhere/prometheus"), viewing(finished):
        pass


def test_a_port_that_was_asked_for(finished, copies):
    with PortLeases() as leases:
        (port,) = leases.lease()
    with open_view(finished, port=port) as view:
        assert view.url == f"http://127.0.0.1:{port}"
        with (
            pytest.raises(ConfigError, match=f"port {port} is taken"),
            open_view(finished, port=port),
        ):
            pass


def program(path, body):
    path.write_text(
        "#!/bin/sh\ncase \"$1\" in\n--version) echo 'prometheus, version 2.42.0' ;;\n"
        f"--help) echo ;;\n*) {body} ;;\nesac\n"
    )
    path.chmod(0o755)
    return inspect(path, Source.VARIABLE)


def test_a_server_that_does_not_start(finished, copies, tmp_path):
    bad = program(tmp_path / "prometheus", "echo 'the moon is full' >&2; exit 3")
    with pytest.raises(PrometheusError, match="the moon is full"), open_view(finished, binary=bad):
        pass


def test_a_port_that_somebody_was_quicker_to_bind(finished, binary, copies, tmp_path):
    """The first try finds its port taken, the second has another one."""
    tried = tmp_path / "tried"
    body = (
        f"if mkdir {tried}; then echo 'listen: address already in use' >&2; exit 1; fi; "
        f'exec {binary.path} "$@"'
    )
    wrapper = program(tmp_path / "prometheus", body)
    with open_view(finished, binary=wrapper) as view:
        assert steps(view.prometheus) == list(range(N))
    assert tried.exists()


def test_a_program_that_vanished(finished, copies, tmp_path):
    gone = program(tmp_path / "prometheus", "exit 0")
    gone.path.unlink()
    with (
        pytest.raises(PrometheusError, match="could not be started"),
        open_view(finished, binary=gone),
    ):
        pass


@contextlib.contextmanager
def opened(run, *, read=json.loads, arguments=("--json",)):
    """``rolltop open RUN --json`` in a process of its own, and the first line that it prints."""
    command = [sys.executable, "-c", OPEN, str(run.run_dir), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, read(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()


def assert_gone(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_open_ends_on_a_signal(finished, copies, number):
    with opened(finished) as (process, answer):
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""
        assert not psutil.pid_exists(answer["pid"])
        assert list(copies.iterdir()) == []


def test_open_prints_addresses_for_people(finished, copies):
    with opened(finished, read=str, arguments=()) as (process, first):
        assert str(finished.data) in first
        assert "2023-11-14 22:13:20 to 22:23:20 UTC" in first
        page, api = (process.stdout.readline() for _ in range(2))
        assert page.startswith("  page    http://127.0.0.1:")
        assert "/graph?g0.expr=up&" in page
        said = list(iter(process.stdout.readline, "Ctrl-C ends it.\n"))
        assert said[0] == "Queries worth asking:\n"
        titles, queries = said[1::2], said[2::2]
        assert all(title.startswith("  ") and title.endswith(":\n") for title in titles)
        assert {query.strip() for query in queries} <= {g.expr for g in (*GRAPHS, ANYTHING)}
        with urlopen(api.split()[1], timeout=30) as reply:  # noqa: S310 (our own address)
            assert json.load(reply)["status"] == "success"
        with Prometheus(api.split()[1].partition("/api")[0]) as client:
            for query in queries:
                client.query(query.strip())


def test_open_says_that_pages_are_missing(finished, copies):
    with open_view(finished) as view:
        text = Opened(view, None).as_text(finished)
    assert "no web pages: their files are missing" in text
    assert "rolltop deps" in text


def test_open_dies_and_leaves_nothing(finished, copies):
    with opened(finished) as (process, answer):
        (tether,) = psutil.Process(process.pid).children()
        process.kill()
        assert_gone(answer["pid"])
        assert_gone(tether.pid)


def test_the_tether_dies_and_takes_the_server_along(finished, copies):
    with opened(finished) as (process, answer):
        (tether,) = psutil.Process(process.pid).children()
        tether.kill()
        assert_gone(answer["pid"])
        assert process.wait(30) != 0
        assert "Prometheus ended" in process.stderr.read()


def test_open_says_when_the_server_dies(finished, copies):
    with opened(finished) as (process, answer):
        os.kill(answer["pid"], signal.SIGKILL)
        assert process.wait(30) != 0
        assert "Prometheus ended with exit status 137" in process.stderr.read()


def test_the_address_works_and_shows_the_run(finished, copies):
    with opened(finished) as (_, answer):
        page = urlsplit(answer["graph"])
        with urlopen(answer["graph"], timeout=30) as reply:  # noqa: S310 (our own address)
            assert reply.status == 200
            text = reply.read().decode()
        base = f"{page.scheme}://{page.netloc}"
        files = [part.split('"')[0] for part in text.replace('href="', 'src="').split('src="')[1:]]
        assets = [file.lstrip(".") for file in files if ".js" in file or ".css" in file]
        assert assets
        for asset in assets:
            with urlopen(f"{base}/{asset.lstrip('/')}", timeout=30) as reply:  # noqa: S310
                assert reply.status == 200
        asked = parse_qs(page.query)
        with Prometheus(answer["url"]) as client:
            assert client.query(asked["g0.expr"][0], at=answer["span"][1])


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("/classic/graph",), "/classic/graph"),
        (("/graph", "/classic/graph"), "/graph"),
        (("/query",), "/query"),
        ((), None),
    ],
)
def test_only_a_page_that_is_there_is_named(monkeypatch, paths, found):
    client = FakePrometheus().client()
    monkeypatch.setattr(client, "page", lambda path: path in paths)
    assert graph_path(client) == found


def test_graphs_are_those_that_have_series():
    assert graphs_of({"alpasim_step_duration_seconds_count"}) == GRAPHS[:1]
    assert graphs_of({"up", "go_info"}) == (ANYTHING,)


def test_a_page_shows_the_time_of_the_run():
    url = graph_url("http://h:1", "/graph", GRAPHS[:1], (1_700_000_000.0, 1_700_000_090.5))
    asked = parse_qs(urlsplit(url).query)
    assert asked["g0.end_input"] == ["2023-11-14 22:15:00"]  # the next whole minute
    assert asked["g0.range_input"] == ["100s"]
    assert "+" not in url


def test_the_span_of_blocks_and_head(finished):
    head = history()
    span = data_span(finished.data, FakePrometheus(stored=head).client())
    assert span == (STARTED_S, head[0].t_s[-1])
    assert data_span(finished.run_dir, FakePrometheus().client()) is None


def test_versions_are_shown_as_the_program_says_them():
    assert str(Version((2, 42, 0), "2.42.0+ds")) == "2.42.0+ds"
