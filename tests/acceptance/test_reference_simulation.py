"""What the reference simulation must show, by whole runs of minutes: ``make acceptance``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROLLTOP = Path(sys.executable).with_name("rolltop")
SERVICES = ("renderer", "driver", "physics", "controller", "trafficsim")


def _run(folder: Path, *overrides: str) -> tuple[int, dict[str, Any]]:
    """Drive the reference simulation; return the exit status and the summary."""
    done = subprocess.run(
        [ROLLTOP, "run", "sim=driving", *overrides, "run.dir=run", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("slow", SERVICES)
def test_a_slow_service_is_named(tmp_path, slow):
    delay = f"sim.faults.{slow}.delay_ms=60"
    status, summary = _run(tmp_path, "topology=1gpu", "runtime.rollouts=8", delay)
    assert status == 0, summary["failure"]
    print(slow, summary["seconds_per_rollout"]["full_run"], summary["bottleneck"])
    assert summary["bottleneck"]["service"] == slow


def test_without_a_fault_the_slowest_service_is_named(tmp_path):
    """The slowest by its own stamps: the one that is serving for the most seconds."""
    status, summary = _run(tmp_path, "topology=1gpu", "runtime.rollouts=8")
    assert status == 0, summary["failure"]
    print(summary["seconds_per_rollout"]["full_run"], summary["bottleneck"])
    assert summary["bottleneck"]["service"] == _most_seconds_of_service(tmp_path / "run")


def _most_seconds_of_service(run_dir: Path) -> str:
    from rolltop.lifecycle.view import viewing
    from rolltop.model.run import RunPaths

    query = "sum by (service) (max_over_time(rolltop_rpc_endpoint_service_seconds_total[1h]))"
    with viewing(RunPaths(run_dir)) as prometheus:
        found = {s.labels["service"]: float(s.values[-1]) for s in prometheus.query(query)}
    assert set(found) == set(SERVICES)
    return max(found, key=lambda service: found[service])


def test_failing_calls_are_no_progress(tmp_path):
    common = ("topology=1gpu", "runtime.rollouts=20", "runtime.steps_per_rollout=30", "run.seed=5")
    faults = ("sim.faults.driver.fail_ratio=0.03", "sim.faults.driver.fail_method=drive")
    for name in ("healthy", "failing"):
        (tmp_path / name).mkdir()
    status, healthy = _run(tmp_path / "healthy", *common)
    assert (status, healthy["rollouts"]["completed"]) == (0, 20)
    status, failing = _run(tmp_path / "failing", *common, *faults, "runtime.max_rollout_retries=2")
    print(healthy["rollouts"], healthy["seconds_per_rollout"]["full_run"])
    print(failing["rollouts"], failing["seconds_per_rollout"]["full_run"])
    assert status == 1
    assert 0 < failing["rollouts"]["completed"] < 20
    assert failing["rollouts"]["abandoned"] > 0
    speed = [s["seconds_per_rollout"]["full_run"] for s in (healthy, failing)]
    assert speed[1] >= 1.2 * speed[0]
