"""Find the run that RUN on a command line names."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from rolltop.errors import RunNotFoundError
from rolltop.files import read_file
from rolltop.lifecycle.directory import LATEST
from rolltop.model.run import RunPaths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_UUID_LINE = re.compile(r"""^run_uuid:\s*['"]?([0-9A-Za-z-]+)""", re.MULTILINE)
_LIKE_UUID = re.compile(r"[0-9a-fA-F-]+")
_METADATA_BYTES = 64 << 10
_SHOWN = 3


def resolve_run(text: str, runs_root: Path) -> RunPaths:
    """Return the run that ``text`` names.

    Args:
        text: ``latest``, a directory, a directory under ``runs_root``, or the start of a uuid.
        runs_root: Where runs lie, ``runs`` of the working directory by default.

    Raises:
        RunNotFoundError: It names none, or several; the message names the nearest.
    """
    from pathlib import Path

    if text == LATEST:
        return _latest(runs_root)
    try:
        given = Path(text).expanduser()
    except (RuntimeError, ValueError):  # nobody's home
        given = Path(text)
    if text and given.is_dir():
        return _require_run(given)
    if text and "/" not in text and (runs_root / text).is_dir():
        return _require_run(runs_root / text)
    return _by_uuid(text, runs_root)


def list_runs(runs_root: Path) -> list[Path]:
    """Return the run directories under a root, the newest first."""
    if not runs_root.is_dir():
        return []
    found = [
        entry
        for entry in runs_root.iterdir()
        if not entry.is_symlink() and entry.is_dir() and is_run(entry)
    ]
    return sorted(found, key=lambda entry: (entry.stat().st_mtime, entry.name), reverse=True)


def is_run(directory: Path) -> bool:
    """Whether a directory is a run's, be it one of AlpaSim."""
    paths = RunPaths(directory)
    return any(place.exists() for place in (paths.metadata, paths.prometheus, paths.summary))


def uuid_of(directory: Path) -> str | None:
    """Return the uuid in a run's metadata, None where they are missing or cannot be read."""
    try:
        text = read_file(RunPaths(directory).metadata, max_bytes=_METADATA_BYTES)
    except OSError:
        return None
    found = _UUID_LINE.search(text.decode("utf-8", "replace"))
    return found[1] if found else None


def _latest(runs_root: Path) -> RunPaths:
    link = runs_root / LATEST
    if link.is_dir():
        return _require_run(link.resolve())
    reason = "is a link to a run that is gone" if link.is_symlink() else "does not exist"
    raise RunNotFoundError(f"{link} {reason}", hint=_suggest([], list_runs(runs_root), runs_root))


def _require_run(directory: Path) -> RunPaths:
    if not is_run(directory):
        raise RunNotFoundError(
            f"{directory} is not the directory of a run",
            hint="one has run_metadata.yaml, prometheus/ or summary.json in it",
        )
    return RunPaths(directory)


def _by_uuid(text: str, runs_root: Path) -> RunPaths:
    runs = list_runs(runs_root)
    wanted = text.lower()
    found = [run for run in runs if _has_uuid(run, wanted)] if _LIKE_UUID.fullmatch(text) else []
    if len(found) == 1:
        return RunPaths(found[0])
    if found:
        names = ", ".join(run.name for run in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise RunNotFoundError(
            f"{text!r} begins the uuid of {len(found)} runs: {names}{more}",
            hint="give more of the uuid, or the directory",
        )
    near = difflib.get_close_matches(text, [run.name for run in runs], _SHOWN, 0.4)
    raise RunNotFoundError(
        f"{text!r} is neither a directory nor the start of a uuid under {runs_root}",
        hint=_suggest(near, runs, runs_root),
    )


def _has_uuid(run: Path, start: str) -> bool:
    """Whether a run's uuid begins so; without metadata, by the digits that end its name."""
    uuid = uuid_of(run)
    known = run.name.rpartition("-")[2] if uuid is None else uuid
    return known.lower().startswith(start)


def _suggest(near: Sequence[str], runs: Sequence[Path], runs_root: Path) -> str:
    names = list(near) or [run.name for run in runs[:_SHOWN]]
    if not names:
        return f"there are no runs under {runs_root}: name the directory of one"
    return f"RUN is a directory, `latest` or the start of a uuid: {', '.join(names)}"
