"""Counting rollouts from what the simulator writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rolltop.lifecycle.rollouts import RolloutWatch, parse_requested, parse_result


def _write(folder: Path, scene: str, uuid: str, **fields: object) -> None:
    path = folder / scene / uuid / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(fields))


FIVE = frozenset(
    {("road-1", "a"), ("road-1", "b"), ("road-2", "c"), ("road-3", "d"), ("road-3", "e")}
)


def test_counts_completed_abandoned_first_wave_and_attempts(tmp_path: Path) -> None:
    _write(tmp_path, "road-1", "a", status="completed", attempts=1)
    _write(tmp_path, "road-1", "b", status="completed", attempts=3)
    _write(tmp_path, "road-2", "c", status="abandoned", attempts=3)
    _write(tmp_path, "road-3", "d", status="completed", first_wave=True)
    counts = RolloutWatch(tmp_path, requested=FIVE).refresh()
    assert (counts.completed, counts.abandoned, counts.first_wave) == (2, 1, 1)
    assert counts.failed_attempts == 5
    assert counts.scenes_failed == {"road-2": 1}
    assert counts.finished == 3


def test_a_result_is_read_once_and_new_ones_are_added(tmp_path: Path) -> None:
    watch = RolloutWatch(tmp_path, requested=frozenset({("s", "a"), ("s", "b")}))
    _write(tmp_path, "s", "a", status="completed")
    assert watch.refresh().completed == 1
    (tmp_path / "s" / "a" / "result.json").write_text("no longer a result")
    _write(tmp_path, "s", "b", status="completed")
    assert watch.refresh().completed == 2


def test_strangers_are_not_results(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "scene").mkdir()
    (tmp_path / "scene" / "empty").mkdir()
    (tmp_path / "scene" / "directory" / "result.json").mkdir(parents=True)
    _write(tmp_path, "scene", "other", status="running")
    assert RolloutWatch(tmp_path, requested=frozenset()).refresh().finished == 0


def test_what_nobody_asked_for_is_no_result(tmp_path: Path) -> None:
    _write(tmp_path, "road-1", "a", status="completed")
    _write(tmp_path, "road-9", "a", status="completed")
    _write(tmp_path, "road-1", "z", status="completed")
    watch = RolloutWatch(tmp_path, requested=FIVE)
    assert watch.refresh().completed == 1
    assert watch.strangers == {("road-9", "a"), ("road-1", "z")}


def test_a_pipe_or_a_device_in_place_of_a_result_is_not_waited_for(tmp_path: Path) -> None:
    for uuid in ("a", "b"):
        (tmp_path / "road-1" / uuid).mkdir(parents=True)
    os.mkfifo(tmp_path / "road-1" / "a" / "result.json")
    (tmp_path / "road-1" / "b" / "result.json").symlink_to("/dev/zero")
    assert RolloutWatch(tmp_path, requested=FIVE).refresh().finished == 0


def test_a_rollouts_file_reads_back() -> None:
    lines = ['{"scene": "s", "uuid": "u", "seed": 1}', "", "[]", "{", '{"scene": "s"}']
    assert parse_requested(lines) == {("s", "u")}


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    result = parse_result(text, uuid="u", scene="s", ended_s=0.0)
    assert result is None or result.status in ("completed", "abandoned")


@given(st.sampled_from(["completed", "abandoned"]), st.integers(1, 9), st.booleans())
def test_a_result_reads_back(status: str, attempts: int, first_wave: bool) -> None:
    text = json.dumps({"status": status, "attempts": attempts, "first_wave": first_wave})
    result = parse_result(text, uuid="u", scene="s", ended_s=7.0)
    assert result is not None
    assert (result.status, result.attempts, result.first_wave) == (status, attempts, first_wave)
