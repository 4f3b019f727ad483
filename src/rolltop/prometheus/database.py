"""Copy a database of Prometheus without touching it, be it in use or left by a killed server.

The order makes the copy whole: first the head (what lies in no block yet: ``chunks_head`` and the
write-ahead log), then the blocks. A server that turns its head into a block in between leaves its
samples twice in the copy, which a start sorts out; the other order could lose them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from typing import TYPE_CHECKING

from rolltop.errors import PrometheusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""A block's folder is named by a ULID."""
_HEAD_FOLDERS = ("chunks_head", "wal", "wbl")
_TRIES = 5
_CHUNK_BYTES = 1 << 20
_META = "meta.json"


def copy_data(source: Path, target: Path) -> None:
    """Copy a database; nothing in ``source`` is written, locked or linked to be written.

    Blocks, which never change, are linked where the file system can do that; everything else is
    copied. Files of zeros (a running server reserves 128 MiB at once) take no room.

    Args:
        source: The database, ``RunPaths.data``; a server may run on it, or may have been killed.
        target: The copy, made here.

    Raises:
        PrometheusError: ``source`` is no database, cannot be read, or the copy cannot be written.
    """
    if not source.is_dir():
        raise PrometheusError(f"there are no data in {source}", hint=_NO_DATA)
    if not is_database(source):
        raise PrometheusError(f"{source} is not a database of Prometheus", hint=_NO_DATA)
    try:
        target.mkdir(parents=True)
        _copy_head(source, target)
        for block in blocks(source):
            _link_block(source / block, target / block)
    except OSError as error:
        place = error.filename or target
        raise PrometheusError(
            f"cannot copy {source}: {place}: {error.strerror}",
            hint="it must be readable, and TMPDIR must have room for a copy",
        ) from error


_NO_DATA = "a run has data once its Prometheus ran; it has none with telemetry.enabled=false"


def is_database(folder: Path) -> bool:
    """Whether a folder holds what Prometheus stores."""
    return any((folder / name).is_dir() for name in _HEAD_FOLDERS) or any(
        True for _ in _blocks(folder)
    )


def has_samples(folder: Path) -> bool:
    """Whether a folder holds a database with anything in it; whoever reads it finds out why not."""
    try:
        if any(True for _ in _blocks(folder)):
            return True
        return any((folder / name).stat().st_size for name in _head_files(folder))
    except OSError:  # it cannot be read, or is being rewritten
        return folder.is_dir()


def blocks(folder: Path) -> list[str]:
    """Return the names of the whole blocks of a database, oldest first."""
    return sorted(_blocks(folder))


def _blocks(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        if _BLOCK.fullmatch(entry.name) and (entry / _META).is_file():
            yield entry.name


def _copy_head(source: Path, target: Path) -> None:
    """Copy the head, again if a server threw parts of it away meanwhile."""
    for _ in range(_TRIES):
        before = _head_files(source)
        with contextlib.suppress(FileNotFoundError):
            for name in before:
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                copy_sparse(source / name, place)
            if set(before) <= set(_head_files(source)):
                return
        for folder in _HEAD_FOLDERS:
            shutil.rmtree(target / folder, ignore_errors=True)
    raise PrometheusError(
        f"{source} changed each of the {_TRIES} times that it was copied", hint="try again"
    )


def _head_files(source: Path) -> list[str]:
    """Return the head's files, relative to the database; those being made are left out."""
    found = []
    for folder in _HEAD_FOLDERS:
        for place, _, names in os.walk(source / folder):
            relative = os.path.relpath(place, source)
            if ".tmp" not in relative:
                found += [os.path.join(relative, name) for name in sorted(names)]  # noqa: PTH118
    return found


def _link_block(source: Path, target: Path) -> None:
    """Link the files of a block; one that its server deletes meanwhile is in a newer block."""
    try:
        for place, _, names in os.walk(source):
            folder = target / os.path.relpath(place, source)
            folder.mkdir()  # with our permissions, whatever the original's: it must be removable
            for name in names:
                _link_or_copy(os.path.join(place, name), folder / name)  # noqa: PTH118
    except FileNotFoundError:
        if (source / _META).is_file():
            raise
    if not (source / _META).is_file():
        shutil.rmtree(target, ignore_errors=True)


def _link_or_copy(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy what a file holds now; runs of zeros become holes."""
    zeros = bytes(_CHUNK_BYTES)
    with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
        size = 0
        while chunk := reader.read(_CHUNK_BYTES):
            if chunk == zeros[: len(chunk)]:
                writer.seek(len(chunk), os.SEEK_CUR)
            else:
                writer.write(chunk)
            size += len(chunk)
        writer.truncate(size)
