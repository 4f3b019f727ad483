"""Keep a server exactly as long as whoever started it: run as a program, standard library only.

``python tether.py FOLDER PROGRAM [ARGUMENT]...`` starts the program and writes its pid, one line,
to its standard output. It ends the program when its standard input ends, which happens however its
own parent ends, kill -9 included; it removes FOLDER then, since nobody else can. A parent that
writes a byte first wants to do that itself. If the program ends by itself, so does this one, with
its status.

A process of its own, since the signal that Linux sends on a parent's death follows the *thread*
that started the child: a thread of a pool would take the server with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_GRACE_S = 5.0
_STDIN = 0
KEEP = b"k"
"""What a parent writes that removes the folder itself."""
_SIGNALLED = 128


def main(arguments: list[str]) -> int:
    """Run the program until it or the parent ends; return its exit status."""
    folder, *command = arguments
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    for noted in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(noted, lambda *_: None)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_prepare,  # noqa: PLW1509 (there are no threads here)
    ) as server:
        sys.stdout.write(f"{server.pid}\n")
        sys.stdout.flush()
        keep = _wait(server, woken)
        _end(server)
        status = server.returncode
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else _SIGNALLED - status


def _prepare() -> None:
    """In the child: die with the tether, and hear the signals that it does not."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_DFL)


def _wait(server: subprocess.Popen[bytes], woken: int) -> bool:
    """Return when the server, the parent or a SIGTERM ends it: whether the folder is kept."""
    keep = False
    while server.poll() is None:
        ready, _, _ = select.select([_STDIN, woken], [], [])
        if _STDIN in ready:
            said = os.read(_STDIN, 1)
            keep = keep or said == KEEP
            if not said:
                return keep
        if woken in ready and signal.SIGTERM in os.read(woken, 64):
            return True
    return True


def _end(server: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        server.terminate()
    try:
        server.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
