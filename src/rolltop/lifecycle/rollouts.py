"""How many rollouts have ended, read from the results that the simulator writes."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rolltop.files import read_file_at
from rolltop.model.run import RolloutCounts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RESULT = "result.json"
_RESULT_BYTES_MAX = 1 << 20
_ATTEMPTS_MAX = 1_000_000


@dataclass(frozen=True)
class RolloutResult:
    """One ``result.json``; ``ended_s`` is its modification time, unix. None: it does not say."""

    uuid: str
    scene: str
    status: str
    attempts: int
    first_wave: bool
    ended_s: float
    duration_s: float | None = None
    steps: int | None = None


def parse_result(text: str, *, uuid: str, scene: str, ended_s: float) -> RolloutResult | None:
    """Return the result, or None where ``text`` is no result by the contract."""
    try:
        raw: Any = json.loads(text)
        status = raw["status"]
        attempts = int(raw.get("attempts") or 1)
        first_wave = bool(raw.get("first_wave", False))
        duration_s = _number(raw.get("duration_s"))
        steps = _number(raw.get("steps"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
    if status not in ("completed", "abandoned"):
        return None
    return RolloutResult(
        uuid=uuid,
        scene=scene,
        status=status,
        attempts=min(max(1, attempts), _ATTEMPTS_MAX),
        first_wave=first_wave,
        ended_s=ended_s,
        duration_s=duration_s,
        steps=None if steps is None else int(steps),
    )


def _number(value: object) -> float | None:
    """Return a number that is not negative, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < float("inf") else None


def parse_requested(lines: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Return scene and uuid of each rollout in a rollouts file; other lines are left out."""
    found = set()
    for line in lines:
        try:
            rollout: Any = json.loads(line)
            found.add((str(rollout["scene"]), str(rollout["uuid"])))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return frozenset(found)


class RolloutWatch:
    """Reads each new ``rollouts/<scene>/<uuid>/result.json`` once.

    Only results of ``requested`` rollouts (scene, uuid) count; all do where it is empty, as in a
    run that left no rollouts file. ``strangers`` are results that nobody asked for.
    """

    def __init__(self, folder: Path, *, requested: frozenset[tuple[str, str]]) -> None:
        self._folder = folder
        self._requested = requested
        self.strangers: set[tuple[str, str]] = set()
        self._results: dict[tuple[str, str], RolloutResult] = {}

    @property
    def results(self) -> tuple[RolloutResult, ...]:
        """All results read so far, in the order of their end."""
        return tuple(sorted(self._results.values(), key=lambda r: r.ended_s))

    def refresh(self) -> RolloutCounts:
        """Read what is new and return the counts."""
        for scene in _folders(self._folder):
            for rollout in _folders(scene.path):
                key = (scene.name, rollout.name)
                if self._requested and key not in self._requested:
                    self.strangers.add(key)
                elif key not in self._results:
                    result = _read(rollout.path, uuid=rollout.name, scene=scene.name)
                    if result is not None:
                        self._results[key] = result
        return self.counts()

    @property
    def first_started_s(self) -> float | None:
        """When the first rollout started, unix seconds, None where no result says."""
        starts = [r.ended_s - r.duration_s for r in self.results if r.duration_s is not None]
        return min(starts, default=None)

    @property
    def last_ended_s(self) -> float | None:
        """When the last rollout ended, unix seconds, None before any has."""
        return max((r.ended_s for r in self.results), default=None)

    @property
    def steps_per_rollout(self) -> float | None:
        """Mean steps of a completed rollout, None where no result says."""
        steps = [r.steps for r in self.results if r.status == "completed" and r.steps is not None]
        return sum(steps) / len(steps) if steps else None

    def counts(self) -> RolloutCounts:
        """Return the counts of what was read; a discarded first-wave rollout is not completed."""
        results = self._results.values()
        kept = [r for r in results if not r.first_wave]
        abandoned = [r for r in kept if r.status == "abandoned"]
        return RolloutCounts(
            requested=len(self._requested),
            completed=len(kept) - len(abandoned),
            abandoned=len(abandoned),
            failed_attempts=sum(r.attempts - (r.status == "completed") for r in results),
            first_wave=len(self._results) - len(kept),
            scenes_failed=dict(Counter(r.scene for r in abandoned)),
        )


def _folders(path: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [e for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(folder: str, *, uuid: str, scene: str) -> RolloutResult | None:
    path = os.path.join(folder, _RESULT)  # noqa: PTH118 (hot: once per rollout and refresh)
    try:
        data, ended_s = read_file_at(path, max_bytes=_RESULT_BYTES_MAX)
    except OSError:
        return None
    return parse_result(data.decode("utf-8", "replace"), uuid=uuid, scene=scene, ended_s=ended_s)
