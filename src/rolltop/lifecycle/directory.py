"""The run directory: made once, never over another run."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from rolltop.errors import ConfigError, describe_os_error
from rolltop.model.redact import redact_mapping
from rolltop.model.run import RunPaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rolltop.model.run import RunIdentity

LATEST = "latest"
_ANOTHER = "choose another run.dir, or leave it out for a new one under runs/"
MODE = 0o750
"""Of its folders: what a run was given and what it found are none of others' business."""
_PROBE_BYTES = 64 << 10


@contextlib.contextmanager
def new_run_directory(run_dir: Path) -> Iterator[RunPaths]:
    """Make an empty run directory and its folders, to be filled within the context.

    Others see nothing of it; one that is there already keeps the permissions that it has. Where
    that fails or is interrupted, all that was made is removed again.

    Raises:
        ConfigError: it exists and is not empty, or it cannot be made or written to.
    """
    paths = RunPaths(run_dir)
    try:
        if run_dir.is_symlink():
            what = "the link to the last run" if run_dir.name == LATEST else "a link"
            raise ConfigError(f"run.dir={run_dir}: this is {what}, not a directory", hint=_ANOTHER)
        if run_dir.exists() and not run_dir.is_dir():
            raise ConfigError(f"run.dir={run_dir}: this is not a directory", hint=_ANOTHER)
        existed = run_dir.exists()
        if existed and any(run_dir.iterdir()):
            raise ConfigError(
                f"run.dir={run_dir}: the directory exists and is not empty", hint=_ANOTHER
            )
        with _undone_on_failure(run_dir, existed=existed):
            run_dir.mkdir(mode=MODE, parents=True, exist_ok=True)
            below = (paths.targets, paths.rules, paths.data)
            for folder in (paths.logs, paths.rollouts, paths.prometheus, *below):
                folder.mkdir(mode=MODE)
            yield paths
    except OSError as error:
        raise ConfigError(
            f"run.dir={run_dir}: cannot be written: {error.strerror or describe_os_error(error)}",
            hint="choose a run.dir where there is room, in a folder that you may write to",
        ) from error


@contextlib.contextmanager
def _undone_on_failure(run_dir: Path, *, existed: bool) -> Iterator[None]:
    """Empty a directory again that was empty, or remove it where it did not exist."""
    try:
        yield
    except BaseException:
        if existed:
            for entry in run_dir.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
        else:
            shutil.rmtree(run_dir, ignore_errors=True)
        raise


class DirectoryWatch:
    """Whether a run directory is still the one that the run began with.

    It is held open (``open(2)``, ``O_PATH``), so that no later one can get its inode's number, and
    ``/proc/self/fd`` (``proc(5)``) tells where it is now.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        try:
            self._fd: int | None = os.open(run_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def lost(self) -> str | None:
        """Return what has become of it, None while all is well or nothing is known."""
        if self._fd is None:
            return None
        held = os.fstat(self._fd)
        try:
            found = self._run_dir.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError:
            return None
        if found is not None and os.path.samestat(held, found):
            return None
        what = f"the run directory {self._run_dir} was"
        if not held.st_nlink:
            return f"{what} deleted while the run went on"
        place = Path(f"/proc/self/fd/{self._fd}").readlink()
        return f"{what} moved to {place} while the run went on"

    def close(self) -> None:
        """Watch no more."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_full(run_dir: Path) -> bool:
    """Whether nothing more can be written to a directory for want of room, or by a quota."""
    try:
        with tempfile.TemporaryFile(dir=run_dir, buffering=0) as probe:
            return probe.write(b"\xff" * _PROBE_BYTES) < _PROBE_BYTES
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)


def render_metadata(identity: RunIdentity, run_dir: Path) -> str:
    """Return ``run_metadata.yaml`` under AlpaSim's names, with the UTC offset that it lacks."""
    return yaml.safe_dump(
        redact_mapping(
            {
                "run_uuid": identity.run_uuid,
                "run_name": identity.run_name,
                "run_time": identity.started.isoformat(timespec="seconds"),
                "run_user": identity.user,
                "user": identity.user,
                "run_dir": str(run_dir),
                "slurm_job_id": identity.slurm_job_id,
                "command": list(identity.command),
                "git_commit": identity.git_commit,
            }
        ),
        sort_keys=False,
    )


def point_latest(run_dir: Path, *, runs_root: Path) -> None:
    """Make ``<runs_root>/latest`` a link to a run that lies directly under it, else do nothing.

    Two runs that start at once leave a link to one of them, never half a link.
    """
    link = runs_root / LATEST
    if run_dir.parent.resolve() != runs_root.resolve() or (link.exists() and not link.is_symlink()):
        return
    temporary = runs_root / f".{LATEST}.{os.getpid()}"
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(run_dir.name)
        temporary.replace(link)
    except OSError:
        temporary.unlink(missing_ok=True)
