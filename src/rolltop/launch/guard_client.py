"""The launcher's end of the guard: start it, send commands, receive events, outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolltop.errors import LaunchError
from rolltop.launch import guard, proctree
from rolltop.launch.diagnosis import ProcessExit
from rolltop.launch.ending import Killer, set_subreaper
from rolltop.launch.guard import clean_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GUARD = "guard"
"""The name under which the guard's own death is reported."""
_BOOT = "import sys; sys.path.append(sys.argv[2]); from rolltop.launch.guard import main; main()"
_LINE_LIMIT = 1 << 22
_READY_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 120.0
"""Long logs take their time: some twenty megabytes are searched for secrets in a second."""
_PING_EVERY_S = 2.0
_PINGS_TO_STOPPED_MAX = 5
"""Nothing else makes a guard that is stopped go on, and no process is looked after meanwhile."""
_PINGS_MAX = 60
"""A guard obeys within milliseconds. But a machine without memory, or a file system that hangs, may
hold one up for a minute, and a run is not to end for that."""
_STOPPED = frozenset("Tt")


def guard_command(fd: int, launcher: int, grace_s: float = guard.END_GRACE_S) -> list[str]:
    """Return the guard's command line: no site packages, so that it starts in milliseconds."""
    source = str(Path(guard.__file__).parents[2])
    python = [sys.executable, "-I", "-S", "-c", _BOOT]
    return [*python, "rolltop-guard", source, str(fd), str(launcher), str(grace_s)]


class GuardClient:
    """A running guard. ``on_event`` gets each event, ``on_lost`` one call if the guard dies.

    While it is open this process is a subreaper: what the guard leaves behind when it is
    killed falls to this process, and is ended here. Then the logs, too, are cleaned here. A guard
    that does not answer any more is killed: no exchange with it lasts for ever.
    """

    def __init__(
        self, on_event: Callable[[dict[str, Any]], None], on_lost: Callable[[ProcessExit], None]
    ) -> None:
        self._on_event = on_event
        self._on_lost = on_lost
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reader_task: asyncio.Task[None] | None = None
        self._sessions: dict[str, int] = {}
        self._logs: set[str] = set()
        self._log = Path(os.devnull)
        self._was_subreaper = False
        self._closing = False
        self._heart: asyncio.Task[None] | None = None
        self._unanswered = 0
        self._silent_s: float | None = None

    @property
    def pid(self) -> int | None:
        """The guard's pid, None while none runs."""
        return None if self._process is None else self._process.pid

    async def open(self, log: Path | None = None, grace_s: float = guard.END_GRACE_S) -> None:
        """Start the guard in a session of its own; what it has to say in distress goes to ``log``.

        ``grace_s`` lies between SIGTERM and SIGKILL once this process has gone.

        Raises:
            LaunchError: if it does not report for duty.
        """
        self._log = log or self._log
        ours, theirs = socket.socketpair()
        self._was_subreaper = set_subreaper(on=True)
        reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=_LINE_LIMIT)
        try:
            with theirs:
                self._process = _start_guard(theirs.fileno(), self._log, grace_s)
        except OSError as error:
            await self.close()
            raise LaunchError(f"the guard of the run's processes did not start: {error}") from error
        try:
            async with asyncio.timeout(_READY_TIMEOUT_S):
                ready = await reader.readline()
        except TimeoutError:
            ready = b""
        if not ready:
            self._process.kill()  # it has started nothing
            await self.close()
            raise LaunchError("the guard of the run's processes did not start")
        self._reader_task = asyncio.create_task(self._read(reader))
        self._heart = asyncio.create_task(self._keep_asking(self._process))

    async def send(self, command: dict[str, Any]) -> None:
        """Send one command.

        Raises:
            LaunchError: if the guard has gone.
        """
        if self._writer is None or self._writer.is_closing():
            raise LaunchError("the guard of the run's processes is not running")
        if command["op"] == "spawn":
            self._logs.add(command["log"])
        self._writer.write(json.dumps(command).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def close(self) -> None:
        """Let the guard end everything that is left, and wait for it."""
        self._closing = True
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.gather(self._heart, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
        if self._process is not None:
            await asyncio.to_thread(self._await_end, self._process)
        if self._reader_task is not None:
            self._reader_task.cancel()
            await asyncio.gather(self._reader_task, return_exceptions=True)
        set_subreaper(on=self._was_subreaper)

    def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until it has ended in order; one that is stopped, or takes too long, is killed."""
        until, stopped_s = time.monotonic() + _END_TIMEOUT_S, 0.0
        while time.monotonic() < until and stopped_s < _PING_EVERY_S * _PINGS_TO_STOPPED_MAX:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PING_EVERY_S)
                break
            stopped_s = stopped_s + _PING_EVERY_S if _is_stopped(process.pid) else 0.0
        else:
            process.kill()
            process.wait()
        if process.returncode != 0:
            self._do_its_last_work(process)

    def _do_its_last_work(self, process: subprocess.Popen[bytes]) -> None:
        """End what a guard that did not end in order left behind, and clean the logs for it."""
        end_adopted(process.pid, self._sessions.values())
        with contextlib.suppress(OSError), self._log.open("a") as complaints:
            clean_logs(self._logs, complaints)

    async def _keep_asking(self, process: subprocess.Popen[bytes]) -> None:
        """Ask again and again for a word, and kill a guard that gives none.

        Unanswered questions are counted, not time: a launcher that was stopped itself, and goes
        on, finds the answers waiting.
        """
        while self._unanswered < _pings_max(process.pid):
            self._unanswered += 1
            try:
                async with asyncio.timeout(_PING_EVERY_S):
                    await self.send({"op": "ping"})
            except TimeoutError:
                continue  # not even the socket takes anything more
            except LaunchError:
                return
            await asyncio.sleep(_PING_EVERY_S)
        self._silent_s = _PING_EVERY_S * self._unanswered
        process.kill()

    def _note(self, event: dict[str, Any]) -> None:
        self._unanswered = 0
        if event["event"] == "spawned":
            self._sessions[event["name"]] = event["pid"]
        elif event["event"] == "gone":
            self._sessions.pop(event["name"], None)
        self._on_event(event)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                self._note(json.loads(line))
        if self._closing or self._process is None:
            return
        if self._writer is not None:
            self._writer.close()
        status = await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(end_adopted, self._process.pid, self._sessions.values())
        ended = _exit_of_guard(self._process.pid, status)
        self._on_lost(replace(ended, silent_s=self._silent_s))


def _pings_max(pid: int) -> int:
    """Return how many questions a guard may leave unanswered."""
    return _PINGS_TO_STOPPED_MAX if _is_stopped(pid) else _PINGS_MAX


def _is_stopped(pid: int) -> bool:
    proc = proctree.read_proc(pid)
    return proc is not None and proc.state in _STOPPED


def _start_guard(fd: int, log: Path, grace_s: float) -> subprocess.Popen[bytes]:
    if not log.exists():
        log.touch(0o640)
    with log.open("ab") as errors:
        return subprocess.Popen(
            guard_command(fd, os.getpid(), grace_s),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            start_new_session=True,
            pass_fds=(fd,),
        )


def _exit_of_guard(pid: int, status: int) -> ProcessExit:
    if status < 0:
        return ProcessExit(GUARD, pid, signal=-status)
    return ProcessExit(GUARD, pid, status=status)


def end_adopted(guard_pid: int, started: Iterable[int], root: str = proctree.PROC) -> None:
    """SIGKILL what a dead guard left behind: its orphans are this process's children now.

    They are known by their session (a process that the guard started, ``started``, leads one)
    or by their environment; the launcher's own children are left alone. Those that the guard
    started itself die with it (``PR_SET_PDEATHSIG``) and are reaped here.
    """
    killer = Killer(root)
    sessions = set(started)
    until = time.monotonic() + guard.END_GRACE_S
    idle = 0
    while idle < 2 and time.monotonic() < until:  # noqa: PLR2004 - two scans: one may miss a birth
        children = proctree.children_of(proctree.scan(root))
        mine = [c for c in children.get(os.getpid(), ()) if _was_of(c, guard_pid, sessions, root)]
        sessions.update(c.sid for c in mine if c.sid != os.getsid(0))
        trees = [p for c in mine for p in (c, *proctree.below(children, c.pid))]
        killer.kill(killer.within_reach(trees))
        for proc in mine:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(proc.pid, os.WNOHANG)
        idle = 0 if trees else idle + 1
        time.sleep(0.005)


def _was_of(child: proctree.Proc, guard_pid: int, sessions: set[int], root: str) -> bool:
    if child.sid in sessions:
        return True
    mark = proctree.environment(child.pid, root).get(guard.MARK_GUARD, "")
    return mark.startswith(f"{guard_pid}-")
