"""When the rollouts of a run took place, read from what it left, be it a copy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rolltop.lifecycle.events import EventLog
from rolltop.lifecycle.judged import EVENT, Judged, read_judged
from rolltop.lifecycle.replot import rollout_times
from rolltop.lifecycle.rollouts import RolloutWatch
from rolltop.model.run import RunPaths
from rolltop.report.reader import Window

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
    assert rollout_times(_watch(paths, 1090.0), SPAN) == (1070.0, 1090.0)


@pytest.mark.parametrize("ended_s", [5000.0, 1010.0])
def test_results_of_another_time_do_not(paths: RunPaths, ended_s: float) -> None:
    assert rollout_times(_watch(paths, ended_s), SPAN) == (None, None)


JUDGED = Judged(Window(1001.0, 1090.5, 1001.5, None), interval_s=0.5, reached_end=False)


def test_what_a_run_judged_over_is_read_back(paths: RunPaths) -> None:
    EventLog(paths.events).append(EVENT, **JUDGED.fields())
    with paths.events.open("a") as file:
        file.write('nonsense\n[]\n{"event": "summary"}\n')
    assert read_judged(paths.events) == JUDGED


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_s": None},
        {"end_s": "soon"},
        {"end_s": float("nan")},
        {"end_s": 10**400},
        {"end_s": 1000.0},
        {"interval_s": 0.0},
        {"first_rollout_s": True},
    ],
)
def test_a_time_that_is_none_is_not_taken(paths: RunPaths, wrong: dict[str, object]) -> None:
    event = {"event": EVENT, **JUDGED.fields(), **wrong}
    paths.events.write_text(json.dumps(event) + "\n")
    assert read_judged(paths.events) is None


@pytest.mark.parametrize("text", [None, "", '{"event": "telemetry_reading"}\n'])
def test_events_that_do_not_say_it(paths: RunPaths, text: str | None) -> None:
    if text is not None:
        paths.events.write_text(text)
    assert read_judged(paths.events) is None
