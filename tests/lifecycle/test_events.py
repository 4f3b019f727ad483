"""The log of a run's events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from rolltop.lifecycle.events import EventLog, utc_text

_NOON = datetime(2026, 1, 2, 12, 0, 0, 5000, tzinfo=UTC)


def test_each_event_is_a_line_with_its_time(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", now=lambda: _NOON)
    log.append("process_started", process="renderer-0", pid=7)
    log.append("run_ended", outcome="completed")
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "t": "2026-01-02T12:00:00.005Z",
        "event": "process_started",
        "process": "renderer-0",
        "pid": 7,
    }
    assert lines[1]["event"] == "run_ended"


def test_a_place_that_cannot_be_written_costs_events_only(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "gone" / "events.jsonl")
    log.append("one")
    log.append("two")
    assert log.lost == 2


def test_times_are_utc() -> None:
    assert utc_text(_NOON).endswith("Z")
