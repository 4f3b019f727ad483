"""The processes below a process, read from ``/proc``, and how to signal those and no others.

Standard library only, and little of it: the guard imports this and must start in milliseconds.
Formats: ``proc_pid_stat(5)``; the safe way to signal is ``pidfd_open(2)``.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

PROC = "/proc"
_DEAD = frozenset("ZXx")


class Proc(NamedTuple):
    """One process as ``/proc/<pid>/stat`` shows it; ``start_ticks`` tells who a reused pid is."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    state: str
    threads: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Whether it still runs: a zombie does not, unless only its first thread has ended."""
        return self.state not in _DEAD or self.threads > 1

    @property
    def key(self) -> tuple[int, int]:
        """What no other process ever has: pid and start."""
        return (self.pid, self.start_ticks)


def parse_stat(text: bytes) -> Proc:
    """Return the process of one ``stat`` line; the command's name may hold anything, also ``)``.

    Raises:
        ValueError: if the line is cut short.
    """
    head, _, rest = text.rpartition(b")")
    fields = rest.split(maxsplit=20)
    try:
        return Proc(
            pid=int(head.split(b" ", 1)[0]),
            ppid=int(fields[1]),
            pgid=int(fields[2]),
            sid=int(fields[3]),
            state=fields[0].decode("ascii"),
            threads=int(fields[17]),
            start_ticks=int(fields[19]),
        )
    except IndexError as error:
        raise ValueError(f"a stat line that is cut short: {text!r}") from error


def read_file(path: str, limit: int = 4096) -> bytes | None:
    """Return the first ``limit`` bytes of a file of ``/proc``, None where the process has gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, limit)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_proc(pid: int, root: str = PROC) -> Proc | None:
    """Return one process, or None where it has gone."""
    text = read_file(f"{root}/{pid}/stat")
    if not text:
        return None
    try:
        return parse_stat(text)
    except ValueError:
        return None


def scan(root: str = PROC) -> dict[int, Proc]:
    """Return every process that can be seen, by pid. One that is born meanwhile may be missed."""
    with os.scandir(root) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    found = (read_proc(pid, root) for pid in pids)
    return {proc.pid: proc for proc in found if proc is not None}


def children_of(table: dict[int, Proc]) -> dict[int, list[Proc]]:
    """Return the children of every process that has any, by its pid."""
    children: dict[int, list[Proc]] = {}
    for proc in table.values():
        children.setdefault(proc.ppid, []).append(proc)
    return children


def below(children: dict[int, list[Proc]], ancestor: int) -> list[Proc]:
    """Return all processes below ``ancestor``, at any depth, parents before their children."""
    found: list[Proc] = []
    seen = {ancestor}
    frontier = [ancestor]
    while frontier:
        level = [c for pid in frontier for c in children.get(pid, ()) if c.pid not in seen]
        seen.update(c.pid for c in level)
        found.extend(level)
        frontier = [c.pid for c in level]
    return found


def environment(pid: int, root: str = PROC) -> dict[str, str]:
    """Return the environment that a process was started with; empty where it is hidden."""
    text = read_file(f"{root}/{pid}/environ", 1 << 20) or b""
    pairs = (os.fsdecode(line).partition("=") for line in text.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def is_same(proc: Proc, root: str = PROC) -> bool:
    """Whether the pid still belongs to that very process."""
    now = read_proc(proc.pid, root)
    return now is not None and now.key == proc.key


def open_pidfd(pid: int) -> int | None:
    """Return a handle on a process; None where kernel, sandbox or interpreter has no pidfds.

    Raises:
        ProcessLookupError: if there is no such process.
    """
    opener = getattr(os, "pidfd_open", None)
    try:
        return None if opener is None else int(opener(pid))
    except ProcessLookupError:
        raise
    except OSError:
        return None


def send(proc: Proc, signum: int, root: str = PROC) -> bool:
    """Signal that very process, never one that took over its pid; return whether it was reached.

    A pidfd is opened first and the start time compared after: the handle never changes its owner.
    Without pidfds the comparison comes just before the signal.

    Raises:
        PermissionError: if the process has become another user's.
    """
    fd = None
    try:
        fd = open_pidfd(proc.pid)
        if not is_same(proc, root):
            return False
        if fd is None:
            os.kill(proc.pid, signum)
        else:
            signal.pidfd_send_signal(fd, signum)
    except ProcessLookupError:
        return False
    finally:
        if fd is not None:
            os.close(fd)
    return True


def kill_groups(procs: Iterable[Proc], spared: int, root: str = PROC) -> None:
    """SIGKILL the process groups of ``procs``, each in one step, so that no fork can outrun it.

    A group's number stays taken while it has a member, and a member is looked up just before.
    The caller knows that the groups lie in sessions of its own making; ``spared`` is its own.
    """
    done = {spared}
    for proc in procs:
        if proc.pgid in done:
            continue
        now = read_proc(proc.pid, root)
        if now is None or now.key != proc.key or now.pgid != proc.pgid:
            continue
        done.add(proc.pgid)
        try:
            os.killpg(proc.pgid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
