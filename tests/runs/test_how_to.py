"""The simulator of the how-to, run as the page says: what it says of it is true."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from rolltop.catalogue.panels import PANELS_BY_KEY
from tests.config.how_to import COMMANDS, FILES, SYNCHRONOUS, write

RESULT = {"uuid", "scene", "seed", "steps", "attempts", "first_wave", "duration_s", "worker_id"}
DRAWN = ("rollouts", "step_rate", "step_duration", "step_time", "calls", "rpc_mean")


def test_the_simulator_of_the_how_to_runs(start_run, tmp_path):
    assert {"mysim/service.py", "mysim/worker.py"} <= FILES.keys()
    write(tmp_path)
    command = next(words for words in COMMANDS if words[0].startswith("sim.file="))
    ended = start_run(*command).finish()
    assert ended.status == 0, ended.err
    assert "12 of 12 completed" in ended.out
    assert ended.summary["rollouts"]["completed"] == 12
    results = [
        json.loads(path.read_text()) for path in ended.run_dir.glob("rollouts/*/*/result.json")
    ]
    assert len(results) == 12
    assert all(result.keys() >= RESULT and result["steps"] == 200 for result in results)
    processes = {e["process"] for e in ended.events if e["event"] == "process_started"}
    assert {"renderer-0", "driver-0", "driver-1", "worker-0"} <= processes
    missing = ended.summary["telemetry"]["missing"]
    assert not [name for name in missing if name.startswith(("alpasim_step", "runtime worker"))]
    empty = ended.summary["panels"]["empty"]
    assert not {PANELS_BY_KEY[key].title for key in DRAWN} & empty.keys()
    assert "missing  " not in ended.out


def test_a_worker_with_a_page_elsewhere_is_named_with_what_helps(start_run, tmp_path):
    write(tmp_path)
    worker = tmp_path / "mysim" / "worker.py"
    text = worker.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        elsewhere = text.replace("from_environment()", f"from_environment(port={port})")
        assert elsewhere != text
        worker.write_text(elsewhere)
        command = next(words for words in COMMANDS if words[0].startswith("sim.file="))
        ended = start_run(*command, "runtime.rollouts=2", "runtime.nr_workers=2").finish()
    assert ended.status == 0, ended.err
    missing = ended.summary["telemetry"]["missing"]
    pages = [missing[name] for name in missing if name.startswith("runtime worker 127.0.0.1:")]
    assert len(pages) == 2
    for number, reason in enumerate(pages):
        assert reason.startswith(f"worker-{number}'s page was expected at 127.0.0.1:")
        assert f"no telemetry page at 127.0.0.1:{port}: " in reason
        assert reason.endswith("or pass {metrics_port} to the worker")
    assert f"missing   {pages[0]}\n          {pages[1]}\n" in ended.out
    assert ended.summary["panels"]["empty"][PANELS_BY_KEY["step_rate"].title].startswith(pages[0])
    assert "no worker recorded a step" not in ended.out


def test_a_synchronous_worker_has_a_page_by_hand(tmp_path, free_port):
    """It stays until a reader has read the last values, as the run's own does."""
    (tmp_path / "worker.py").write_text(SYNCHRONOUS)
    run = {"ROLLTOP_METRICS_PORT": str(free_port), "ROLLTOP_RUN_UUID": "u"}
    patience = {"ROLLTOP_SCRAPE_INTERVAL_S": "60"}
    command = [sys.executable, str(tmp_path / "worker.py")]
    worker = subprocess.Popen(command, env={**os.environ, **run, **patience})
    try:
        page = ""
        while 'alpasim_step_duration_seconds_count{worker_id="0"} 600' not in page:
            assert worker.poll() is None
            page = read(f"http://127.0.0.1:{free_port}/metrics?run=u")
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    assert 'alpasim_rollouts_total{worker_id="0",status="completed"} 3' in page


def read(url):
    """Return a page, nothing while it is not there."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            return answer.read().decode()
    except OSError:
        time.sleep(0.05)
        return ""


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
