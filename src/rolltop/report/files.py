"""Files of a report: whole, or not there."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

MODE = 0o640
"""Mode of a run's files: its user and group read them."""


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step: a reader sees the old file or the new one.

    Raises:
        OSError: the folder cannot be written; ``path`` is then as it was.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), MODE)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
