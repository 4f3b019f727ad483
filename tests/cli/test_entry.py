"""How the command leaves."""

from __future__ import annotations

import subprocess
import sys

_LEAVES = """
import atexit, sys, threading
from rolltop.cli import entry, main

class Late:
    def __del__(self):
        print("the interpreter was taken down", flush=True)

def command(arguments):
    if "drawing" in arguments:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("said")
    return 3

late = Late()
atexit.register(print, "exit functions ran", flush=True)
main.run_command_line = command
entry.main()
"""


def _said(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LEAVES, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (3, "")
    return done.stdout.splitlines()


def test_a_thread_that_is_still_at_work_is_not_taken_down() -> None:
    """One that is inside of C++ would abort the process, whose status is another one then."""
    assert _said("drawing") == ["said", "exit functions ran"]


def test_without_one_the_interpreter_ends_in_order() -> None:
    assert _said() == ["said", "exit functions ran", "the interpreter was taken down"]
