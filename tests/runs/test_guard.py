"""The guard killed with -9 in mid-run: the launcher lives, and ends the run in order."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from .conftest import processes_of

SECRET = "hunter2hunter2"
LONG = ("sim=tiny", "topology=1gpu", "runtime.rollouts=2000", "runtime.nr_workers=2")


def _guard_of(launcher: int) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == launcher and b"rolltop-guard" in words:
            return int(entry.name)
    raise AssertionError("no guard runs")


def test_a_guard_that_is_killed_costs_neither_plot_nor_summary(start_run):
    run = start_run(*LONG)
    run.wait_for(
        lambda: len(list(run.run_dir.glob("rollouts/*/*/result.json"))) >= 20, "20 rollouts"
    )
    secret = run.run_dir / "logs" / "driver-0.log"
    with secret.open("a") as log:
        log.write(f"DB_PASSWORD={SECRET}\n")
    os.kill(_guard_of(run.process.pid), signal.SIGKILL)
    done = run.finish()
    assert done.status == 3, done.err
    assert processes_of(done.run_dir) == []
    summary = done.summary
    assert (summary["outcome"], summary["failure"]["process"]) == ("failed", "guard")
    assert "SIGKILL" in summary["failure"]["reason"]
    assert summary["panels"]["drawn"] >= 12
    assert summary["seconds_per_rollout"]["full_run"] > 0
    assert (done.run_dir / "metrics_plot.png").stat().st_size > 10_000
    missing = summary["telemetry"]["missing"]["prometheus"]
    assert "SIGKILL" in missing
    assert missing.endswith("read from the disk")
    assert "started again" not in done.err
    assert (done.events[-1]["event"], done.events[-1]["exit_status"]) == ("run_ended", 3)
    assert "DB_PASSWORD=[redacted]" in secret.read_text()
    assert not any(SECRET in log.read_text() for log in secret.parent.iterdir())
