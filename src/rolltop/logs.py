"""The logs of a run's processes, fit to be shown and to be kept: without their secrets."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, BinaryIO

from rolltop.files import replace_file
from rolltop.model.redact import may_hold_secret, redact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST = 64 << 20
"""Bytes of a log that is still rewritten without its secrets."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CUT = " [...]"
_LINE_BYTES = 1 << 20
_KEY_BYTES = 1 << 16


def tail(
    path: Path, lines: int = 20, *, max_bytes: int = 1 << 16, max_chars: int = 500
) -> tuple[str, ...]:
    """Return the last lines of a log that say something, secrets redacted; () where there is none.

    At most ``max_bytes`` are read, whatever the file's size, so that fewer lines may come back.
    Terminal escapes and control characters are dropped, a progress line that was drawn over
    shows its last state, what is not UTF-8 is replaced, a line is cut at ``max_chars``.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - max_bytes)
            file.seek(start)
            data = file.read(max_bytes)
    except OSError:
        return ()
    if start:
        data = data.partition(b"\n")[2] or data
    text = redact(_ESCAPES.sub("", data.decode("utf-8", "replace")))
    said = [line for raw in text.split("\n") if (line := _clean(raw, max_chars))]
    return tuple(said[-lines:])


def redact_log(path: Path, *, largest: int = LARGEST) -> bool:
    """Take the secrets out of a log that nobody writes to any more; return whether that is done.

    A log without secrets is not touched, and one that has some is replaced as a whole (0640). A
    line with a secret loses its terminal escapes too; whatever else is in the log stays as it was,
    be it text or not. False, and nothing done, for one of more than ``largest`` bytes.

    Raises:
        OSError: It cannot be read or replaced.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > largest:
            return False
        changed = False
        kept: list[bytes] = []
        for piece in _pieces(file):
            kept.append(_redacted(piece))
            changed = changed or kept[-1] != piece
    if changed:
        replace_file(path, b"".join(kept))
    return True


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; those of a private key are one piece, since they are one secret.

    No piece is longer than about 1 MiB.
    """
    key = b""
    while line := file.readline(_LINE_BYTES):
        key += line
        if b"-----BEGIN " in key and b"-----END " not in key and len(key) < _KEY_BYTES:
            continue
        yield key
        key = b""
    if key:
        yield key


def _redacted(piece: bytes) -> bytes:
    text = piece.decode("utf-8", "surrogateescape")
    plain = _ESCAPES.sub("", text)
    if not may_hold_secret(plain):
        return piece
    shown = redact(plain)
    return piece if shown == plain else shown.encode("utf-8", "surrogateescape")


def _clean(raw: str, max_chars: int) -> str:
    shown = raw.rstrip("\r").rpartition("\r")[2]
    line = _CONTROLS.sub("", shown).rstrip()
    return line if len(line) <= max_chars else line[: max_chars - len(_CUT)] + _CUT
