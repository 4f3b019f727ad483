"""What a run says when something goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rolltop.cli.main import run_command_line

from .conftest import ROLLTOP, TINY, processes_of

OFF = "telemetry.enabled=false"
LONG = ("sim=tiny", "topology=1gpu", "runtime.rollouts=400", "runtime.nr_workers=2")


def test_a_service_that_dies_ends_the_run_with_its_name(start_run):
    done = start_run(*TINY, OFF, "sim.faults.driver.crash_after=30").finish()
    assert done.status == 3
    failure = done.summary["failure"]
    assert (failure["process"], failure["exit_status"]) == ("driver-0", 3)
    assert failure["log_tail"][-1] == "sim.faults.driver.crash_after=30 ends this service"
    assert done.summary["outcome"] == "failed"
    lines = done.out.splitlines()
    assert "failure   driver-0: ended with exit status 3" in lines
    assert f"            {failure['log_tail'][-1]}" in lines
    assert "log       run/logs/driver-0.log" in lines
    assert done.out.count("exit status") == 1
    assert processes_of(done.run_dir) == []


def test_a_service_that_cannot_start_is_named(start_run):
    command = "sim.services.physics.command=[no-such-program]"
    done = start_run(*TINY, OFF, command).finish()
    assert done.status == 3
    assert done.summary["failure"]["process"] == "physics-0"
    assert "no-such-program" in done.summary["failure"]["reason"]


def test_a_service_that_is_never_ready_is_named(start_run):
    program = "import time; print(1234, flush=True); time.sleep(60)"
    command = f"sim.services.physics.command=[python,-c,'{program}']"
    done = start_run(*TINY, OFF, command, "sim.services.physics.start_timeout_s=1").finish()
    assert done.status == 3
    assert done.summary["failure"]["process"] == "physics-0"
    assert "not ready within 1 s" in done.summary["failure"]["reason"]
    lines = done.out.splitlines()
    assert "            1234" in lines
    assert "log       run/logs/physics-0.log" in lines
    assert processes_of(done.run_dir) == []


def test_failing_calls_abandon_rollouts_and_cost_speed(start_run):
    done = start_run(*TINY, OFF, "sim.faults.driver.fail_ratio=1.0").finish()
    assert done.status == 1
    counts = done.summary["rollouts"]
    assert (counts["completed"], counts["abandoned"], counts["failed_attempts"]) == (0, 4, 12)
    assert done.summary["outcome"] == "completed"
    assert done.summary["seconds_per_rollout"]["full_run"] is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_in_order(start_run, number):
    run = start_run(*LONG, OFF)
    run.wait_for_event("process_started", "worker")
    run.process.send_signal(number)
    time.sleep(0.1)
    run.process.send_signal(number)
    done = run.finish()
    assert done.status == 5
    assert done.summary["outcome"] == "cancelled"
    assert done.summary["rollouts"]["completed"] < 400
    assert processes_of(done.run_dir) == []


def test_under_nohup_a_run_outlives_its_terminal(start_run):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = start_run(*TINY, OFF)
    finally:
        signal.signal(signal.SIGHUP, before)
    run.wait_for_event("process_started", "worker")
    run.process.send_signal(signal.SIGHUP)
    assert run.finish().status == 0


def test_a_directory_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("mine")
    done = _rolltop(tmp_path, "run", *TINY, "run.dir=run")
    assert done.returncode == 2
    assert "exists and is not empty" in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("topologie=2gpu", "topology"),
        ("topology=3gpu", "2gpu"),
        ("services.rendrer.gpus=[0]", "renderer"),
        ("runtime.nr_workerz=1", "nr_workers"),
        ("runtime.endpoints.driver.n_concurrent_rollouts=0", "n_concurrent_rollouts"),
        ("runtime.nr_workers=many", "nr_workers"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_wrong_override_is_one_line_with_the_cure(tmp_path, override, words, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["run", "sim=tiny", override]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert words in said.err
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_prints_the_plan_and_leaves_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["run", *TINY, "--dry-run", "--json"]) == 0
    plan = json.loads(capfd.readouterr().out)
    assert {p["name"] for p in plan["processes"]} >= {"renderer-0", "worker-1"}
    assert plan["prometheus_port"]
    text = _rolltop(tmp_path, "run", *TINY, "--dry-run").stdout
    assert "renderer-0" in text
    assert "alpasim-runtime-worker" in text
    assert list(tmp_path.iterdir()) == []


def test_without_a_prometheus_the_run_goes_on(start_run, tmp_path):
    broken = tmp_path / "prometheus"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    done = start_run(*TINY, env={"ROLLTOP_PROMETHEUS": str(broken)}).finish()
    assert done.status == 0
    assert str(broken) in done.summary["telemetry"]["missing"]["prometheus"]
    assert done.err.count("without telemetry") == 1
    assert done.summary["rollouts"]["completed"] == 4
    assert done.summary["bottleneck"] is None


def test_strict_fails_without_a_prometheus(start_run, tmp_path):
    missing = str(tmp_path / "nowhere")
    done = start_run(*TINY, "--strict", env={"ROLLTOP_PROMETHEUS": missing}).finish()
    assert done.status == 7


def test_a_prometheus_that_dies_is_started_again(start_run):
    run = start_run(*LONG[:2], "runtime.rollouts=40", "runtime.nr_workers=2")
    run.wait_for_event("process_started", "worker")
    os.kill(_pid_of_prometheus(run), signal.SIGKILL)
    done = run.finish()
    assert done.status == 0, done.err
    assert "started again" in done.err
    assert done.summary["rollouts"]["completed"] == 40
    assert done.summary["panels"]["drawn"] >= 12


def _pid_of_prometheus(run) -> int:
    for pid in processes_of(run.run_dir):
        if b"--storage.tsdb.path" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("no Prometheus runs")


def _rolltop(cwd, *arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROLLTOP, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("moved", [True, False])
def test_a_run_directory_that_is_taken_away_is_no_success(start_run, tmp_path, moved):
    run = start_run("sim=tiny", "runtime.rollouts=24")
    run.wait_for(lambda: list(run.run_dir.glob("rollouts/*/*/result.json")), "a rollout")
    away = tmp_path / "away"
    run.run_dir.rename(away)
    if not moved:
        shutil.rmtree(away)
    done = run.finish()
    assert done.status == 2
    lost = f"the run directory {run.run_dir} was "
    assert done.err.count(f"warning: {lost}") == 1
    assert "of 24 completed" in done.out
    assert "\nopen " not in done.out
    assert done.summary["telemetry"]["missing"]["prometheus"].startswith(lost)


def test_only_a_run_that_has_measured_something_is_to_be_opened(start_run):
    """Stopped before or just after the first sample, whichever Prometheus is quick enough for."""
    run = start_run(*TINY)
    run.wait_for((run.run_dir / "prometheus/data/wal/00000000").exists, "a database")
    run.process.send_signal(signal.SIGTERM)
    done = run.finish()
    assert done.status == 5
    plotted = _rolltop(run.run_dir.parent, "plot", "run")
    assert plotted.returncode == (0 if "\nopen " in done.out else 6), plotted.stderr


def test_a_summary_that_cannot_be_written_is_no_success(start_run):
    run = start_run(*TINY, OFF)
    run.wait_for_event("process_started", "worker")
    (run.run_dir / "summary.json").mkdir()
    (run.run_dir / "summary.json" / "mine").write_text("mine")
    done = run.finish()
    assert done.status == 2
    assert "summary.json cannot be written" in done.err
    assert "4 of 4 completed" in done.out
