"""A service that is slow is named, and calls that fail are no progress: whole runs, tiny ones.

``make acceptance`` asks the same of every service of the reference simulation, in runs of a minute
each.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from .conftest import Finished, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVICES = ("driver", "trafficsim")
"""One that is called often, one that is called last.

Without a fault it is the renderer: test_healthy.py looks at such a run.
"""
ROLLOUTS = 12
COMMON = (
    "sim=tiny",
    "topology=1gpu",
    f"runtime.rollouts={ROLLOUTS}",
    "runtime.nr_workers=2",
    "run.seed=5",
)
OFF = "telemetry.enabled=false"  # speed and counts come from the results, without a plot
OVERRIDES = {
    "healthy": (OFF,),
    "failing": (
        OFF,
        "sim.faults.driver.fail_ratio=0.05",
        "sim.faults.driver.fail_method=drive",
        "runtime.max_rollout_retries=1",
    ),
    **{service: (f"sim.faults.{service}.delay_ms=30",) for service in SERVICES},
}


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory, prometheus_binary: object
) -> Iterator[Callable[[str], Finished]]:
    """Return a run of that name once it has ended; all are driven, two at a time."""
    folder = tmp_path_factory.mktemp("slow")

    def drive(name: str) -> Finished:
        return start([*COMMON, *OVERRIDES[name]], folder / name, folder).finish()

    with ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(drive, name) for name in OVERRIDES}
        yield lambda name: runs[name].result()


@pytest.mark.parametrize("slow", SERVICES)
def test_a_slow_service_is_named(ended, slow):
    run = ended(slow)
    assert run.status == 0, run.err
    found = run.summary["bottleneck"]
    assert (found["service"], found["certainty"]) == (slow, "high"), found
    assert f"busiest   {slow}" in run.out


def test_failing_calls_are_no_progress(ended):
    healthy, failing = ended("healthy"), ended("failing")
    assert healthy.summary["rollouts"]["completed"] == ROLLOUTS
    assert failing.status == 1, failing.err
    rollouts = failing.summary["rollouts"]
    assert 0 < rollouts["completed"] < ROLLOUTS
    assert rollouts["abandoned"] == ROLLOUTS - rollouts["completed"]
    speed = [run.summary["seconds_per_rollout"]["full_run"] for run in (healthy, failing)]
    assert speed[1] >= 1.2 * speed[0]
