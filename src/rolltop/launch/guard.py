"""The guard: a small process that starts every process of a run, and ends them when it must.

The launcher talks to it over a socket, JSON lines both ways. When that socket closes or the
launcher dies, of whatever cause, the guard ends all that was ever started: helpers of helpers,
those that left their session and those that lost their parent. It can, because it is their
subreaper (``prctl(2)``): an orphan becomes its child, so "no child left" means "nothing left".
Then nobody writes to the logs any more, and it takes what looks like a secret out of them.

Commands::

    {"op": "spawn", "name", "argv": [...], "env": {...}, "cwd", "log"}
    {"op": "signal", "names": [...], "signal": 15}    to whole trees; 9 until nothing is left
    {"op": "ping"}                              answered at once, by one that can obey

Events::

    {"event": "ready", "pid"}
    {"event": "spawned", "name", "pid"}
    {"event": "failed", "name", "stage": "fork|log|cwd|exec", "errno"}
    {"event": "exited", "name", "pid", "status": 0..255 or null, "signal": 1..64 or null, "cpu_s"}
    {"event": "gone", "name"}                   the process and all of its descendants have ended
    {"event": "pong"}
    {"event": "error", "reason"}                a command that was not understood

Standard library only; started by :mod:`rolltop.launch.guard_client`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rolltop.launch import proctree
from rolltop.launch.ending import Killer, die_with_parent, end_children, set_subreaper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rolltop.launch.proctree import Proc

MARK_GUARD = "ROLLTOP_GUARD"
"""In the environment of each process: which guard started it."""
MARK_PROCESS = "ROLLTOP_PROCESS"
"""In the environment of each process: its name in the run."""

HELPER_GRACE_S = 2.0
"""Between SIGTERM and SIGKILL of what a process leaves behind."""
END_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL of everything, once the launcher has gone, if it names no other."""

_UMASK = 0o027
"""Of every process of a run: what it leaves is none of others' business."""
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE)
_RESET = (*_IGNORED, signal.SIGXFSZ, signal.SIGCHLD)
_TICK_S = 0.05
_STAGES = {b"s": "fork", b"l": "log", b"c": "cwd", b"e": "exec"}


def _reaped() -> Iterator[tuple[int, int, float]]:
    """Yield pid, wait status and CPU seconds of every child that has ended, ``wait4(2)``."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.wait4(-1, os.WNOHANG))[0]:
            pid, status, used = ended
            yield pid, status, used.ru_utime + used.ru_stime


class _Tree:
    """A process that the guard started, with all that descends from it."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.exited = False
        self.kill_at: float | None = None
        self.empty_scans = 0


class Guard:
    """The loop: commands in, events out, a sweep whenever a process has ended."""

    def __init__(
        self,
        link: socket.socket,
        launcher: int,
        *,
        end_grace_s: float = END_GRACE_S,
        root: str = proctree.PROC,
    ) -> None:
        self._link = link
        self._end_grace_s = end_grace_s
        self._root = root
        self._token = f"{os.getpid()}-{time.time_ns()}"
        self._trees: dict[str, _Tree] = {}
        self._pending: dict[int, tuple[str, int]] = {}
        self._logs: set[str] = set()
        self._unread = b""
        self._unsent = b""
        self._sweep_at: float | None = None
        self._open = True
        self._killer = Killer(root)
        self._poll = select.poll()
        self._wakeup = self._watch_signals()
        self._launcher = launcher
        self._launcher_fd = self._watch_launcher()
        link.setblocking(False)
        self._poll.register(link, select.POLLIN)

    def run(self) -> None:
        """Serve until the launcher has gone, then end everything and clean the logs."""
        try:
            self._emit({"event": "ready", "pid": os.getpid()})
            while self._open:
                self._turn()
        finally:
            self._link.close()
            end_children(self._killer, self._end_grace_s, self._root)
            clean_logs(self._logs, sys.stderr)

    def _turn(self) -> None:
        if self._launcher_fd is None and os.getppid() != self._launcher:
            self._open = False
        for fd, _ in self._poll.poll(self._timeout_ms()):
            if fd == self._link.fileno():
                self._on_link()
            elif fd == self._wakeup:
                os.read(fd, 4096)
                self._reap()
            elif fd == self._launcher_fd:
                self._open = False
            elif fd in self._pending:
                self._on_started(fd)
        if self._sweep_at is not None and time.monotonic() >= self._sweep_at:
            self._sweep()

    def _watch_signals(self) -> int:
        for signum in _IGNORED:
            signal.signal(signum, signal.SIG_IGN)
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._poll.register(reader, select.POLLIN)
        return reader

    def _watch_launcher(self) -> int | None:
        """Watch the launcher itself too: a fork of it may hold the socket open."""
        try:
            fd = proctree.open_pidfd(self._launcher)
        except ProcessLookupError:
            fd = None
        self._open = os.getppid() == self._launcher
        if fd is not None:
            self._poll.register(fd, select.POLLIN)
        return fd

    def _timeout_ms(self) -> float | None:
        """Until the next sweep; without a pidfd, until the next look at the parent."""
        look = None if self._launcher_fd is not None else 1000.0
        if self._sweep_at is None:
            return look
        due = max(0.0, self._sweep_at - time.monotonic()) * 1000
        return due if look is None else min(due, look)

    # -- the link ---------------------------------------------------------------------------

    def _emit(self, event: dict[str, Any]) -> None:
        self._unsent += json.dumps(event).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        try:
            self._unsent = self._unsent[self._link.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._open = False
            return
        wanted = select.POLLIN | (select.POLLOUT if self._unsent else 0)
        self._poll.register(self._link, wanted)

    def _on_link(self) -> None:
        if self._unsent:
            self._flush()
        try:
            data = self._link.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._open = False
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                self._obey(json.loads(line))
            except (ValueError, KeyError, TypeError, OSError) as error:
                self._emit({"event": "error", "reason": f"{type(error).__name__}: {error}"})

    def _obey(self, command: dict[str, Any]) -> None:
        if command["op"] == "spawn":
            self._spawn(command)
        elif command["op"] == "signal":
            self._signal(command["names"], command["signal"])
        elif command["op"] == "ping":
            self._emit({"event": "pong"})
        else:
            raise ValueError(f"no such command: {command['op']}")

    # -- start ------------------------------------------------------------------------------

    def _spawn(self, command: dict[str, Any]) -> None:
        name = command["name"]
        if name in self._trees:
            raise ValueError(f"{name} is running already")
        env = {**command["env"], MARK_GUARD: self._token, MARK_PROCESS: name}
        try:
            told, pid = _fork(command, env)
        except OSError as error:
            self._emit({"event": "failed", "name": name, "stage": "fork", "errno": error.errno})
            return
        self._trees[name] = _Tree(name, pid)
        self._logs.add(command["log"])
        self._pending[told] = (name, pid)
        self._poll.register(told, select.POLLIN)

    def _on_started(self, fd: int) -> None:
        """Report a start: the pipe closes when the program runs, and says why it does not."""
        name, pid = self._pending.pop(fd)
        self._poll.unregister(fd)
        word = os.read(fd, 32)
        os.close(fd)
        if not word:
            self._emit({"event": "spawned", "name": name, "pid": pid})
            return
        del self._trees[name]
        reason = {"stage": _STAGES[word[:1]], "errno": int(word[1:])}
        self._emit({"event": "failed", "name": name, **reason})

    # -- end --------------------------------------------------------------------------------

    def _signal(self, names: list[str], signum: int) -> None:
        trees = [self._trees[name] for name in names if name in self._trees]
        if signum == signal.SIGKILL:
            for tree in trees:
                tree.kill_at = time.monotonic()
            self._sweep()
            return
        members = self._members()
        chosen = self._killer.within_reach([p for tree in trees for p in members[tree.name]])
        if signum == signal.SIGTERM:
            self._killer.ask(chosen)
        else:
            self._killer.signal(chosen, signum)

    def _reap(self) -> None:
        """Report the processes that ended; orphans that fell to the guard end without a word."""
        for pid, status, cpu_s in _reaped():
            for fd in [f for f, (_, starting) in self._pending.items() if starting == pid]:
                self._on_started(fd)
            for tree in self._trees.values():
                if tree.pid == pid and not tree.exited:
                    self._exited(tree, status, cpu_s)
        self._sweep_soon(0.0)

    def _exited(self, tree: _Tree, status: int, cpu_s: float) -> None:
        tree.exited = True
        if tree.kill_at is None:
            tree.kill_at = time.monotonic() + HELPER_GRACE_S
        code = os.waitstatus_to_exitcode(status)
        how = {"status": None, "signal": -code} if code < 0 else {"status": code, "signal": None}
        spent = {"cpu_s": round(cpu_s, 3)}
        self._emit({"event": "exited", "name": tree.name, "pid": tree.pid, **how, **spent})

    def _sweep_soon(self, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        self._sweep_at = due if self._sweep_at is None else min(due, self._sweep_at)

    def _members(self) -> dict[str, list[Proc]]:
        """Return the living processes of each tree, orphans that fell to the guard among them."""
        children = proctree.children_of(proctree.scan(self._root))
        members: dict[str, list[Proc]] = {name: [] for name in self._trees}
        by_session = {tree.pid: tree.name for tree in self._trees.values()}
        for root in children.get(os.getpid(), ()):
            name = by_session.get(root.pid) or by_session.get(root.sid) or self._marked(root)
            if name is not None:
                members[name] += [root, *proctree.below(children, root.pid)]
        return members

    def _marked(self, orphan: Proc) -> str | None:
        """Return the name of the process whose environment an orphan has."""
        env = proctree.environment(orphan.pid, self._root)
        name = env.get(MARK_PROCESS)
        return name if env.get(MARK_GUARD) == self._token and name in self._trees else None

    def _sweep(self) -> None:
        """End what processes have left behind, and report the trees that are gone."""
        self._sweep_at = None
        closing = [t for t in self._trees.values() if t.kill_at is not None]
        members = self._members() if closing else {}
        for tree in closing:
            left = self._killer.within_reach(members[tree.name])
            if left:
                tree.empty_scans = 0
                self._press(tree, left)
            elif tree.exited:
                tree.empty_scans += 1
            if tree.empty_scans > 1:
                del self._trees[tree.name]
                self._emit({"event": "gone", "name": tree.name})
            else:
                self._sweep_soon(0.0 if tree.exited and not left else _TICK_S)

    def _press(self, tree: _Tree, left: list[Proc]) -> None:
        if tree.kill_at is not None and time.monotonic() >= tree.kill_at:
            self._killer.kill(left)
        else:
            self._killer.ask(left)


def _fork(command: dict[str, Any], env: dict[str, str]) -> tuple[int, int]:
    """Return the pipe by which the child tells of its start, and its pid."""
    guard = os.getpid()
    told, tell = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
        if pid == 0:
            _become(command, env, guard, tell)
    except OSError:
        os.close(told)
        raise
    finally:
        os.close(tell)
    return told, pid


def _become(command: dict[str, Any], env: dict[str, str], guard: int, tell: int) -> None:
    """Turn the forked child into the program; never returns."""
    stage = b"s"
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != guard:
            os._exit(127)
        for signum in _RESET:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        stage = b"l"
        out = os.open(command["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        stage = b"c"
        os.chdir(command["cwd"])
        stage = b"e"
        os.execvpe(command["argv"][0], command["argv"], env)  # noqa: S606
    except (OSError, ValueError, TypeError, LookupError) as error:
        os.write(tell, stage + str(getattr(error, "errno", errno.EINVAL)).encode())
    finally:
        os._exit(127)


def clean_logs(logs: Iterable[str], complaints: TextIO) -> None:
    """Take what looks like a secret out of logs that nobody writes to any more.

    Where that cannot be, ``complaints`` gets a line.
    """
    from rolltop.logs import redact_log  # the guard itself is smaller, and up sooner

    for log in sorted(logs):
        try:
            if not redact_log(Path(log)):
                complaints.write(f"{log} is too long to be searched for secrets\n")
        except FileNotFoundError:
            pass
        except OSError as error:
            complaints.write(f"{log} may hold secrets: {error.strerror}\n")


def main() -> None:
    """Run the guard on an inherited socket: ``... <fd> <pid of the launcher> <grace in s>``."""
    fd, launcher, grace_s = sys.argv[-3:]
    link = socket.socket(fileno=int(fd))
    link.set_inheritable(False)
    set_subreaper(on=True)
    os.umask(os.umask(_UMASK) | _UMASK)
    Guard(link, int(launcher), end_grace_s=float(grace_s)).run()
