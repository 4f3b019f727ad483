"""When the rollouts of a run took place, read from what it left, be it a copy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rolltop.lifecycle.replot import rollout_times
from rolltop.lifecycle.rollouts import RolloutWatch
from rolltop.model.run import RunPaths

SPAN = (1000.0, 1100.0)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path)


def _watch(paths: RunPaths, ended_s: float) -> RolloutWatch:
    result = paths.rollouts / "scene" / "u" / "result.json"
    result.parent.mkdir(parents=True)
    result.write_text(json.dumps({"status": "completed", "duration_s": 20.0}))
    os.utime(result, (ended_s, ended_s))
    watch = RolloutWatch(paths.rollouts, requested=frozenset({("scene", "u")}))
    watch.refresh()
    return watch


def test_results_of_the_time_of_the_samples_say_it(paths: RunPaths) -> None:
    assert rollout_times(paths, _watch(paths, 1090.0), SPAN) == (1070.0, 1090.0)


@pytest.mark.parametrize("ended_s", [5000.0, 1010.0])
def test_results_of_another_time_do_not(paths: RunPaths, ended_s: float) -> None:
    assert rollout_times(paths, _watch(paths, ended_s), SPAN) == (None, None)


def test_what_the_run_said_itself_counts_most(paths: RunPaths) -> None:
    event = {"event": "summary", "first_rollout_s": 1001.5, "last_rollout_s": 1099.5}
    paths.events.write_text(f"{json.dumps(event)}\nnonsense\n[]\n")
    assert rollout_times(paths, _watch(paths, 1090.0), SPAN) == (1001.5, 1099.5)


@pytest.mark.parametrize("said", [{}, {"first_rollout_s": None, "last_rollout_s": None}])
def test_events_that_do_not_say_it_are_passed_over(paths: RunPaths, said: dict[str, None]) -> None:
    paths.events.write_text(json.dumps({"event": "summary", **said}) + "\n")
    assert rollout_times(paths, _watch(paths, 1090.0), SPAN) == (1070.0, 1090.0)
