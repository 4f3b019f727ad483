"""The first lines of the command: signals and streams, before anything takes time to import."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

CANCELLED = 5
"""`ExitStatus.CANCELLED`, which is not imported yet."""
NOTHING_STARTED = "cancelled before anything was started"


class AskedToEnd(BaseException):
    """A signal asked for the end before there was anything to end in order."""


def main() -> None:
    """Run the command line and exit with its status."""
    _open_streams()
    status = CANCELLED
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup a hang-up is ignored
                signal.signal(number, _leave)
        from rolltop.cli.main import run_command_line

        status = run_command_line(sys.argv[1:])
    except AskedToEnd:
        _say(f"rolltop: {NOTHING_STARTED}")
    _flush()
    _leave_threads(status)
    sys.exit(status)


def _leave_threads(status: int) -> None:
    """End here if a thread is still at work, as one that draws a plot that was given up.

    The interpreter ends threads where they next want it: in the middle of C++, that aborts the
    whole process instead of ending it with ``status``.
    """
    if threading.active_count() > 1:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
        _flush()
        os._exit(status)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise AskedToEnd


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal went away
        print(line, file=sys.stderr)


def _open_streams() -> None:
    """Give a process that was started without its streams all three: no file gets their numbers."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")  # a path goes out as it came in


def _flush() -> None:
    """Write what is left; where nobody takes it, drop it without another word."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
