"""Whatever happens to a run's Prometheus: the run ends, has a summary, and says what is missing."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from .conftest import Running, processes_of

SHORT = ("sim=tiny", "topology=1gpu", "runtime.rollouts=20", "runtime.nr_workers=2", "--strict")
WORKING = ("process_started", "worker")


def test_one_that_hangs_costs_one_wait(start_run):
    run = start_run(*SHORT)
    run.wait_for_event(*WORKING)
    os.kill(_pid_of_prometheus(run), signal.SIGSTOP)
    done = run.finish()
    assert done.status == 7, done.err
    assert done.summary["telemetry"]["missing"]["prometheus"].endswith("did not answer in time")
    assert done.summary["rollouts"]["completed"] == 20
    assert done.summary["seconds_per_rollout"]["full_run"] > 0
    assert _reasons(done.events) == ["Prometheus did not answer in time"]
    assert processes_of(done.run_dir) == []


def test_a_signal_gives_up_what_hangs(start_run):
    run = start_run(*SHORT)
    run.wait_for_event(*WORKING)
    os.kill(_pid_of_prometheus(run), signal.SIGSTOP)
    run.wait_for_event("telemetry_reading")
    run.process.send_signal(signal.SIGINT)
    done = run.finish()
    assert done.status == 7, done.err
    assert done.summary["outcome"] == "completed"
    assert done.summary["telemetry"]["missing"]["report"] == "given up: a signal"
    assert not (done.run_dir / "metrics_plot.png").exists()
    assert processes_of(done.run_dir) == []


def test_one_that_dies_while_it_is_read_is_named(start_run):
    run = start_run(*SHORT)
    run.wait_for_event(*WORKING)
    pid = _pid_of_prometheus(run)
    os.kill(pid, signal.SIGSTOP)
    run.wait_for_event("telemetry_reading")
    os.kill(pid, signal.SIGKILL)
    done = run.finish()
    assert done.status == 7, done.err
    assert "was killed by SIGKILL" in done.summary["telemetry"]["missing"]["prometheus"]
    assert len(_reasons(done.events)) == 1
    assert done.err.count("was killed by SIGKILL") == 1


def test_one_that_dies_before_the_workers_start_is_started_again(start_run):
    run = start_run(*SHORT)
    run.wait_for_event("process_ready", "prometheus")
    os.kill(_pid_of_prometheus(run), signal.SIGKILL)
    done = run.finish()
    assert done.status == 0, done.err
    assert "started again" in done.err
    names = [e["event"] for e in done.events if e.get("process") == "prometheus"]
    assert names == ["process_ready", "process_ended", "process_ready"]
    assert done.summary["panels"]["drawn"] >= 12


def test_other_exits_are_seen_while_it_starts_again(start_run, tmp_path, prometheus_binary):
    once = tmp_path / "prometheus"
    once.write_text(
        "#!/bin/sh\n"
        f'case "$1" in --version|--help*) exec {prometheus_binary.path} "$@";; esac\n'
        f"if ! mkdir {tmp_path}/started; then exec sleep 60; fi\n"
        f'exec {prometheus_binary.path} "$@"\n'
    )
    once.chmod(0o755)
    long = ("sim=tiny", "topology=1gpu", "runtime.rollouts=400", "runtime.nr_workers=2")
    run = start_run(*long, env={"ROLLTOP_PROMETHEUS": str(once)})
    worker = run.wait_for_event(*WORKING)
    os.kill(_pid_of_prometheus(run), signal.SIGKILL)
    run.wait_for_event("process_ended", "prometheus")
    os.kill(worker["pid"], signal.SIGKILL)
    done = run.finish()
    assert done.status == 3, done.err
    assert done.summary["failure"]["process"] == worker["process"]
    events = [(e["event"], e.get("process")) for e in done.events]
    seen = events.index(("process_ended", worker["process"]))
    assert ("telemetry_missing", None) not in events[:seen]
    assert done.summary["telemetry"]["missing"]["prometheus"]
    assert processes_of(done.run_dir) == []


def _reasons(events: list[dict[str, object]]) -> list[object]:
    return [e["reason"] for e in events if e["event"] == "telemetry_missing"]


def _pid_of_prometheus(run: Running) -> int:
    for pid in processes_of(run.run_dir):
        with contextlib.suppress(OSError):  # one of the others may end meanwhile
            if b"--storage.tsdb.path" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    raise AssertionError("no Prometheus runs")
