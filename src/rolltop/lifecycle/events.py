"""``events.jsonl``: every start, end, failure and decision of a run, with its time."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MODE = 0o640
_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """Return the present, timezone-aware, in UTC."""
    return datetime.now(UTC)


def utc_text(moment: datetime) -> str:
    """Return ``moment`` as ISO 8601 in UTC with milliseconds, ending in Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class EventLog:
    """Appends one JSON object a line; a full disk costs events, never the run.

    It is the one file of a run that grows in place, where all others are put there by a rename: it
    is read while the run goes on, and holds what a run that was killed came to. Each line is
    written by one ``write`` call, so that a reader sees whole lines only.
    """

    def __init__(self, path: Path, *, now: Callable[[], datetime] = utc_now) -> None:
        self._path = path
        self._now = now
        self._lost = 0

    @property
    def lost(self) -> int:
        """Events that could not be written."""
        return self._lost

    def append(self, event: str, **fields: object) -> None:
        """Write ``{"t": ..., "event": event, **fields}``."""
        line = json.dumps({"t": utc_text(self._now()), "event": event, **fields}, default=str)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with os.fdopen(os.open(self._path, flags, _MODE), "ab", buffering=0) as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            if not self._lost and self._path.parent.is_dir():  # else it is the directory's loss
                _log.warning("events are not written to %s: %s", self._path, error)
            self._lost += 1
