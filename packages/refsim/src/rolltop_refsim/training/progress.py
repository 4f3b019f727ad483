"""A progress bar for terminals, and a line now and then for logs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

_WIDTH = 30
_REDRAW_S = 0.2
_LOG_S = 10.0


class Progress:
    """Shows how much of a phase is done; a context manager that ends the line."""

    def __init__(self, stream: TextIO) -> None:
        """Starts silent.

        Args:
            stream: Where to write; a terminal gets a bar, anything else a line each ten seconds.
        """
        self._stream = stream
        self._live = stream.isatty()
        self._next = 0.0

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the line of a bar."""
        if self._live:
            self._stream.write("\n")

    def advance(self, phase: str, done: int, total: int) -> None:
        """Shows progress.

        Args:
            phase: What is being done.
            done: Parts done.
            total: Parts in all.
        """
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + (_REDRAW_S if self._live else _LOG_S)
        filled = _WIDTH * done // max(total, 1)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        end = "" if self._live else "\n"
        start = "\r" if self._live else ""
        self._stream.write(f"{start}{phase:>8} [{bar}] {done}/{total}{end}")
        self._stream.flush()
