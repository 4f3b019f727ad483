"""Ten launchers killed with -9, all at once on one machine: nothing is left, the data read back."""

from __future__ import annotations

import random
import signal
import time
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
    rng = random.Random(7)
    runs = [start(LONG, folder / f"run-{i}", folder) for i in range(N)]
    result = []
    for run in runs:
        run.wait_for(lambda run=run: any(run.run_dir.glob("rollouts/*/*/*")), "finished rollout")
        time.sleep(rng.uniform(0.0, 1.0))
        assert processes_of(run.run_dir)
        run.process.send_signal(signal.SIGKILL)
        run.process.communicate()
        killed_at = time.monotonic()
        while processes_of(run.run_dir) and time.monotonic() < killed_at + 2 * END_S:
            time.sleep(0.1)
        result.append((run.run_dir, time.monotonic() - killed_at))
    return result


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
