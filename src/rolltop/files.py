"""The one way in which rolltop writes a file, and reads one that somebody else wrote."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE = 0o640
"""Mode of a run's files: its user and group read them."""


def read_file(path: str | Path, *, max_bytes: int) -> bytes:
    """Return what a regular file holds; a pipe is not waited for, a device not read.

    Raises:
        OSError: It cannot be read, is no regular file (EINVAL), or is larger (EFBIG).
    """
    return read_file_at(path, max_bytes=max_bytes)[0]


def read_file_at(path: str | Path, *, max_bytes: int) -> tuple[bytes, float]:
    """Return what `read_file` does, and when the file was last written, unix seconds."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(max_bytes + 1)
    if data is None:  # a kernel's log and the like: regular by name, and nothing there yet
        raise OSError(errno.EINVAL, "not a regular file with content", str(path))
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", str(path))
    return data, status.st_mtime


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
