"""The end of a process's log, fit to be shown and stored."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from rolltop.model.redact import redact

if TYPE_CHECKING:
    from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CUT = " [...]"


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


def _clean(raw: str, max_chars: int) -> str:
    shown = raw.rstrip("\r").rpartition("\r")[2]
    line = _CONTROLS.sub("", shown).rstrip()
    return line if len(line) <= max_chars else line[: max_chars - len(_CUT)] + _CUT
