"""Files that a reader sees whole or not at all: the one way in which rolltop writes a file."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o640
"""Mode of a run's files: its user and group read them."""


def replace_file(
    path: Path, content: str | bytes, *, mode: int = PRIVATE, staging: Path | None = None
) -> None:
    """Put a file in its place by a rename.

    Args:
        path: The file, replaced if it exists.
        content: What it holds; text is written as UTF-8.
        mode: Its permissions, whatever the umask.
        staging: A folder of the same file system for the temporary file, by default ``path``'s own.
            A folder that somebody watches wants another one: each event there is read.

    Raises:
        OSError: It cannot be written; what was there before is untouched.
    """
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=staging or path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
