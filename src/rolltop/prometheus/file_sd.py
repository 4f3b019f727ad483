"""Write file-SD files so that Prometheus never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.prometheus.scrape import target_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop.model.target import TargetGroup

MODE = 0o644
"""Any Prometheus may read them, be it another user's."""


def write_targets(folder: Path, groups: Sequence[TargetGroup]) -> None:
    """Write the targets of a run into the folder that its ``prometheus.yml`` names.

    Args:
        folder: ``RunPaths.targets``, made if absent.
        groups: All targets of the run.

    Raises:
        ConfigError: A target or a label cannot be one; nothing is written then.
        OSError: A file cannot be written.
    """
    files = target_files(groups)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomic(folder / name, text)


def write_atomic(path: Path, text: str, *, staging: Path | None = None, mode: int = MODE) -> None:
    """Put a file in its place by a rename, whole or not at all.

    The temporary file lies in another folder: Prometheus reads every file of a folder again at
    each event in it, and would read one with a matching name.

    Args:
        path: The file, replaced if it exists.
        text: What it holds.
        staging: A folder on the same file system, by default the one above ``path``'s.
        mode: Its permissions, whatever the umask.

    Raises:
        OSError: It cannot be written; what was there before is untouched.
    """
    staging = path.parent.parent if staging is None else staging
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=staging)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
