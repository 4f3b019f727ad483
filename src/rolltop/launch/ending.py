"""How to end processes: whole trees of them, until nothing is left.

Standard library only: the guard imports this. System calls: ``prctl(2)``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import TYPE_CHECKING

from rolltop.launch import proctree

if TYPE_CHECKING:
    from rolltop.launch.proctree import Proc

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def set_subreaper(*, on: bool) -> bool:
    """Make this process the one that orphans below it fall to; return what it was before."""
    before = ctypes.c_int(0)
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    if _prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    return bool(before.value)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies; outlasts exec."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


class Killer:
    """SIGTERM once to each process, SIGKILL as often as it takes; knows whom it may not signal."""

    def __init__(self, root: str = proctree.PROC) -> None:
        self._root = root
        self._asked: set[tuple[int, int]] = set()
        self._beyond: set[tuple[int, int]] = set()

    def within_reach(self, procs: list[Proc]) -> list[Proc]:
        """Return those that live and that this user may signal."""
        return [p for p in procs if p.alive and p.key not in self._beyond]

    def signal(self, procs: list[Proc], signum: int) -> None:
        """Send one signal to each."""
        for proc in procs:
            try:
                proctree.send(proc, signum, self._root)
            except PermissionError:
                self._beyond.add(proc.key)

    def ask(self, procs: list[Proc]) -> None:
        """SIGTERM to those that have not had it: a second one often means "at once"."""
        new = [p for p in procs if p.key not in self._asked]
        self._asked.update(p.key for p in new)
        self.signal(new, signal.SIGTERM)

    def kill(self, procs: list[Proc]) -> None:
        """SIGKILL, by group first: a group dies as one, however fast it forks."""
        proctree.kill_groups(procs, os.getpgrp(), self._root)
        self.signal(procs, signal.SIGKILL)


def end_children(killer: Killer, grace_s: float, root: str = proctree.PROC) -> None:
    """End every descendant of this process and return when no child is left.

    Only what another user owns is left, after ten seconds.
    """
    started = time.monotonic()
    while _reap_all():
        children = proctree.children_of(proctree.scan(root))
        reachable = killer.within_reach(proctree.below(children, os.getpid()))
        waited = time.monotonic() - started
        if waited < grace_s:
            killer.ask(reachable)
            _doze(min(0.2, started + grace_s - time.monotonic()))
        else:
            killer.kill(reachable)
            time.sleep(0.001 if waited < grace_s + 2 else 0.25)
            if not reachable and waited > grace_s + 10:
                return


def _doze(seconds: float) -> None:
    """Wait, for as long as there are children."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and _reap_all():
        time.sleep(0.01)


def _reap_all() -> bool:
    """Reap every dead child; return whether there are children yet."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
