"""CPU-seconds of a tree of processes over time, read from outside it."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2
"""The kind of clock that Linux encodes beside a process's id (clock_getcpuclockid)."""
_YOUNG = 10
"""Readings during which a process may still become another program (fork, then exec)."""


@dataclass
class Process:
    """One process: its command and its CPU-seconds, user and system, at unix times."""

    pid: int
    argv: tuple[str, ...]
    t_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def at(self, t_s: float) -> float:
        """CPU-seconds at a time, between two readings on the straight line; 0 before the first."""
        after = bisect_left(self.t_s, t_s)
        if after == len(self.t_s):
            return self.cpu_s[-1]
        if after == 0:
            return 0.0 if t_s < self.t_s[0] else self.cpu_s[0]
        t0, t1 = self.t_s[after - 1 : after + 1]
        c0, c1 = self.cpu_s[after - 1 : after + 1]
        return c0 + (c1 - c0) * (t_s - t0) / (t1 - t0)

    def between(self, start_s: float, end_s: float) -> float:
        """CPU-seconds spent between two times."""
        return self.at(end_s) - self.at(start_s)


class TreeSampler:
    """Reads a process and all its descendants every ``interval_s``, in a thread, as a context.

    A process that lives shorter than the interval is missed.
    """

    def __init__(self, root: int, *, interval_s: float = 0.1) -> None:
        self.processes: dict[int, Process] = {}
        self._root = root
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> TreeSampler:
        """Begin to read."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.wait(self._interval_s):
            now = time.time()
            for pid, cpu_s in _tree(self._root).items():
                process = self.processes.get(pid)
                if process is None:
                    process = self.processes[pid] = Process(pid, ())
                if len(process.t_s) < _YOUNG:
                    process.argv = _argv(pid) or process.argv
                process.t_s.append(now)
                process.cpu_s.append(cpu_s)


def cpu_of(pid: int) -> float:
    """CPU-seconds, user and system, of a process that lives.

    Raises:
        ProcessLookupError: it does not live.
    """
    read = _stat(pid)
    if read is None:
        raise ProcessLookupError(pid)
    return read[1][1]


def exact_cpu_of(pid: int) -> float:
    """CPU-seconds of a process that lives, to the nanosecond, from the kernel's clock of it.

    Raises:
        OSError: it does not live.
    """
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def _tree(root: int) -> dict[int, float]:
    """Return pid -> CPU-seconds of a process and its descendants."""
    found = dict(filter(None, map(_stat, _pids())))
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in found.items():
        children.setdefault(parent, []).append(pid)
    tree, left = {}, [root]
    while left:
        pid = left.pop()
        if pid in found:
            tree[pid] = found[pid][1]
            left += children.get(pid, [])
    return tree


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(pid: int) -> tuple[int, tuple[int, float]] | None:
    """Return (pid, (parent, CPU-seconds)), None once it has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return pid, (int(fields[1]), (int(fields[11]) + int(fields[12])) * _TICK_S)


def _argv(pid: int) -> tuple[str, ...]:
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1])
    except OSError:
        return ()
