"""Ten launchers killed with -9, all at once on one machine: nothing is left, the data read back."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rolltop.lifecycle.view import viewing
from rolltop.model.run import RunPaths

from .conftest import processes_of, start

N = 10
LONG = ("sim=tiny", "topology=1gpu", "runtime.rollouts=2000", "runtime.nr_workers=1")
END_S = 10.0


@pytest.fixture(scope="module")
def killed(tmp_path_factory, prometheus_binary) -> list[tuple[Path, float]]:
    """Run directories, with the seconds until no process of the run was left after the kill."""
    folder = tmp_path_factory.mktemp("killed")
    with ThreadPoolExecutor(N) as pool:
        return list(pool.map(_kill_one, (folder / f"run-{i}" for i in range(N))))


def _kill_one(run_dir: Path) -> tuple[Path, float]:
    run = start(LONG, run_dir, run_dir.parent)
    try:
        run.wait_for(lambda: any(run_dir.glob("rollouts/*/*/*")), "finished rollout")
        time.sleep(random.Random(run_dir.name).uniform(0.0, 1.0))  # at any moment
        assert processes_of(run_dir)
    finally:
        run.process.kill()
        run.process.communicate()
    killed_at = time.monotonic()
    while processes_of(run_dir) and time.monotonic() < killed_at + 2 * END_S:
        time.sleep(0.1)
    return run_dir, time.monotonic() - killed_at


@pytest.mark.parametrize("index", range(N))
def test_no_process_is_left_after_ten_seconds(killed, index):
    _, seconds = killed[index]
    assert seconds < END_S


@pytest.mark.parametrize("index", range(N))
def test_the_data_read_back(killed, index):
    run_dir, _ = killed[index]
    assert not (run_dir / "summary.json").exists()
    with viewing(RunPaths(run_dir)) as prometheus:
        steps = prometheus.query("sum(max_over_time(alpasim_step_duration_seconds_count[1h]))")
        uuids = prometheus.label_values("run_uuid")
    assert steps[0].values[0] > 0
    assert len(uuids) == 1
