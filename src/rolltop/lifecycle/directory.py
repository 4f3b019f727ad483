"""The run directory: made once, never over another run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import yaml

from rolltop.errors import ConfigError
from rolltop.model.redact import redact_mapping
from rolltop.model.run import RunPaths

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.model.run import RunIdentity

LATEST = "latest"
MODE = 0o750
"""Of its folders: what a run was given and what it found are none of others' business."""


def create_run_directory(run_dir: Path) -> RunPaths:
    """Make an empty run directory and its folders, of which others see nothing.

    One that is there already keeps the permissions that it has.

    Raises:
        ConfigError: it exists and is not empty, or it cannot be made.
    """
    paths = RunPaths(run_dir)
    if run_dir.is_symlink() or (run_dir.exists() and not run_dir.is_dir()):
        raise ConfigError(
            f"run.dir={run_dir}: this is not a directory",
            hint="choose another run.dir, or leave it out for a new one under runs/",
        )
    try:
        run_dir.mkdir(mode=MODE, parents=True, exist_ok=True)
        if any(run_dir.iterdir()):
            raise ConfigError(
                f"run.dir={run_dir}: the directory exists and is not empty",
                hint="choose another run.dir, or leave it out for a new one under runs/",
            )
        below = (paths.targets, paths.rules, paths.data)
        for folder in (paths.logs, paths.rollouts, paths.prometheus, *below):
            folder.mkdir(mode=MODE)
    except OSError as error:
        raise ConfigError(
            f"run.dir={run_dir}: cannot be written: {error.strerror}",
            hint="choose a run.dir in a folder that you may write to",
        ) from error
    return paths


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
