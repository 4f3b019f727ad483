"""What a run's report was made over: written down by the run, so that a later one can agree."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rolltop.files import read_file
from rolltop.report.reader import Window

if TYPE_CHECKING:
    from pathlib import Path

EVENT = "telemetry_reading"
"""The event that says it."""
_EVENTS_BYTES_MAX = 64 << 20


@dataclass(frozen=True)
class Judged:
    """What a run judged over.

    Attributes:
        window: From the first worker's start to the end of the drive, before anything was stopped.
        interval_s: Seconds between two scrapes of a worker.
        reached_end: Whether the run ended by itself.
    """

    window: Window
    interval_s: float
    reached_end: bool

    def fields(self) -> dict[str, object]:
        """Return it as the fields of the event, times in unix seconds."""
        return {
            "start_s": self.window.start_s,
            "end_s": self.window.end_s,
            "first_rollout_s": self.window.first_rollout_s,
            "last_rollout_s": self.window.last_rollout_s,
            "interval_s": self.interval_s,
            "reached_end": self.reached_end,
        }


def read_judged(path: Path) -> Judged | None:
    """Return what a run judged over by its ``events.jsonl``; None where that does not say."""
    try:
        lines = read_file(path, max_bytes=_EVENTS_BYTES_MAX).splitlines()
    except OSError:
        return None
    return next((found for line in reversed(lines) if (found := _parse(line))), None)


def _parse(line: bytes) -> Judged | None:
    """Return what a line says, None for another event, or one that says no time."""
    try:
        event: Any = json.loads(line)
        if event["event"] != EVENT:
            return None
        judged = Judged(
            Window(
                _number(event["start_s"]),
                _number(event["end_s"]),
                _number_or_none(event["first_rollout_s"]),
                _number_or_none(event["last_rollout_s"]),
            ),
            interval_s=_number(event["interval_s"]),
            reached_end=event["reached_end"] is True,
        )
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    good = judged.window.start_s <= judged.window.end_s and judged.interval_s > 0
    return judged if good else None


def _number(value: object) -> float:
    """Return a finite number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        msg = f"{value!r} is no number"
        raise ValueError(msg)
    return float(value)


def _number_or_none(value: object) -> float | None:
    return None if value is None else _number(value)
