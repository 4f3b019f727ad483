"""Start, watch and stop the processes of a run, through the guard."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rolltop.errors import LaunchError
from rolltop.launch.diagnosis import (
    OomWatch,
    ProcessExit,
    ProcessFailedError,
    diagnose,
    why_not_started,
)
from rolltop.launch.guard import END_GRACE_S
from rolltop.launch.guard_client import GuardClient
from rolltop.launch.health import until_healthy
from rolltop.logs import tail
from rolltop.model.run import Failure

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from pathlib import Path

    from rolltop.model.plan import ProcessPlan

_KILL_TIMEOUT_S = 5.0

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(eq=False)
class _Running:
    plan: ProcessPlan
    log: Path
    started: asyncio.Future[int]
    ended: asyncio.Future[ProcessExit]
    gone: asyncio.Event
    requested: bool = False


class Supervisor:
    """The processes of one run. Use it as an async context; leaving it ends whatever is left.

    ``exits`` gets a :class:`ProcessExit` for every process that ended, in order, also for those
    that were asked to (``requested``). If the guard itself dies, its exit comes first, under the
    name ``guard``, and every process of the run has been ended by then.

    Processes run in ``cwd`` with ``environment`` (this process's own if None) and their plan's
    ``env`` on top. Descendants of a process count as part of it everywhere: they are signalled
    with it, and what it leaves behind is ended after it. If this process dies, the guard ends
    everything, with ``orphan_grace_s`` between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        cwd: Path,
        *,
        environment: Mapping[str, str] | None = None,
        guard_log: Path | None = None,
        orphan_grace_s: float = END_GRACE_S,
    ) -> None:
        self.exits: asyncio.Queue[ProcessExit] = asyncio.Queue()
        self._cwd = cwd
        self._environment = dict(os.environ if environment is None else environment)
        self._guard_log = guard_log
        self._orphan_grace_s = orphan_grace_s
        self._guard = GuardClient(self._on_event, self._on_guard_lost)
        self._processes: dict[str, _Running] = {}
        self._oom = OomWatch()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def running(self) -> tuple[str, ...]:
        """The processes that have not ended, in the order of their start."""
        return tuple(n for n, p in self._processes.items() if not p.ended.done())

    @property
    def guard_pid(self) -> int | None:
        """The guard's pid, None before it was started."""
        return self._guard.pid

    async def start(self, plan: ProcessPlan, log: Path) -> int:
        """Start a process, its output appended to ``log`` (0640), and return its pid.

        Raises:
            ProcessFailedError: if the program cannot be run.
            LaunchError: if the guard has gone, or a process of that name runs.
        """
        if plan.name in self._processes and not self._processes[plan.name].gone.is_set():
            raise LaunchError(f"{plan.name} is running already")
        loop = asyncio.get_running_loop()
        process = _Running(plan, log, loop.create_future(), loop.create_future(), asyncio.Event())
        process.started.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._processes[plan.name] = process
        command = {
            "op": "spawn",
            "name": plan.name,
            "argv": list(plan.argv),
            "env": {**self._environment, **plan.env},
            "cwd": str(self._cwd),
            "log": str(log),
        }
        await self._guard.send(command)
        return await asyncio.shield(process.started)

    async def wait(self, name: str) -> ProcessExit:
        """Return how a process ended, once it has."""
        return await asyncio.shield(self._processes[name].ended)

    async def wait_healthy(self, name: str, timeout_s: float | None = None) -> None:
        """Return once a process is ready; ``timeout_s`` is its plan's ``health.timeout_s`` if None.

        Raises:
            ProcessFailedError: if it ends before, or is not ready in time.
        """
        process = self._processes[name]
        check = process.plan.health
        limit_s = check.timeout_s if timeout_s is None else timeout_s
        healthy = until_healthy(check, process.plan.port)
        in_time = await _first(healthy, process.ended, limit_s)
        if process.ended.done():
            raise self.failure(process.ended.result())
        if not in_time:
            reason = f"was not ready within {limit_s:g} s ({check.kind}, port {process.plan.port})"
            raise ProcessFailedError(Failure(name, None, reason, tail(process.log)))

    def failure(self, ended: ProcessExit) -> ProcessFailedError:
        """Return an exit as an error: its reason, its last log lines, whether memory ran out."""
        process = self._processes.get(ended.name)
        lines = () if process is None else tail(process.log)
        patterns = () if process is None else process.plan.oom_patterns
        outcome, failure = diagnose(ended, lines, oom_patterns=patterns, oom_seen=self._oom.rose())
        return ProcessFailedError(failure, outcome=outcome)

    async def stop(self, names: Iterable[str] | None = None, *, grace_s: float = 5.0) -> None:
        """End processes with all their descendants: SIGTERM, ``grace_s`` seconds, SIGKILL.

        All at once, all that run if ``names`` is None; returns when nothing of them is left.
        """
        chosen = self._processes if names is None else names
        stopping = [n for n in chosen if not self._is_gone(n)]
        try:
            await self._signal_and_wait(stopping, signal.SIGTERM, grace_s)
            left = [n for n in stopping if not self._is_gone(n)]
            await self._signal_and_wait(left, signal.SIGKILL, _KILL_TIMEOUT_S)
            for name in left:
                if not self._is_gone(name):
                    _log.warning("%s does not end, not even by SIGKILL", name)
        except LaunchError as error:
            _log.warning("while stopping: %s", error)

    async def signal(self, names: Iterable[str], signum: int) -> None:
        """Signal processes with all their descendants; their exits then count as requested.

        Raises:
            LaunchError: if the guard has gone.
        """
        known = [name for name in names if name in self._processes]
        for name in known:
            self._processes[name].requested = True
        await self._guard.send({"op": "signal", "names": known, "signal": int(signum)})

    async def open(self) -> None:
        """Start the guard, before anything else; what it says in distress goes to its log.

        Raises:
            LaunchError: if it does not start.
        """
        await self._guard.open(self._guard_log, self._orphan_grace_s)

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Stop what still runs, then the guard."""
        try:
            await self.stop(grace_s=grace_s)
        finally:
            await self._guard.close()

    def _is_gone(self, name: str) -> bool:
        return name not in self._processes or self._processes[name].gone.is_set()

    async def _signal_and_wait(self, names: list[str], signum: int, timeout_s: float) -> None:
        if not names:
            return
        await self.signal(names, signum)
        waits = [asyncio.create_task(self._processes[name].gone.wait()) for name in names]
        _, late = await asyncio.wait(waits, timeout=timeout_s)
        for task in late:
            task.cancel()

    # -- events of the guard ------------------------------------------------------------------

    def _on_event(self, event: dict[str, Any]) -> None:
        process = self._processes.get(event.get("name", ""))
        kind = event["event"]
        if process is None:
            if kind == "error":
                _log.warning("the guard refused a command: %s", event["reason"])
        elif kind == "spawned":
            _resolve(process.started, event["pid"])
        elif kind == "failed":
            self._on_not_started(process, event)
        elif kind == "exited":
            pid, status, signum = event["pid"], event["status"], event["signal"]
            ended = ProcessExit(process.plan.name, pid, status, signum, cpu_s=event["cpu_s"])
            self._on_exit(process, replace(ended, requested=process.requested))
        elif kind == "gone":
            process.gone.set()

    def _on_not_started(self, process: _Running, event: dict[str, Any]) -> None:
        plan = process.plan
        reason = why_not_started(
            event["stage"], event["errno"], plan.argv, str(self._cwd), str(process.log)
        )
        ended = ProcessExit(plan.name, not_started=reason)
        _resolve(process.ended, ended)
        process.gone.set()
        if not process.started.done():
            process.started.set_exception(self.failure(ended))

    def _on_exit(self, process: _Running, ended: ProcessExit) -> None:
        _resolve(process.ended, ended)
        self.exits.put_nowait(ended)

    def _on_guard_lost(self, ended: ProcessExit) -> None:
        self.exits.put_nowait(ended)
        for process in self._processes.values():
            if not process.started.done():
                process.started.set_exception(self.failure(ended))
            elif not process.ended.done():
                pid = process.started.result()
                killed = ProcessExit(process.plan.name, pid, signal=int(signal.SIGKILL))
                self._on_exit(process, replace(killed, requested=process.requested))
            process.gone.set()


def _resolve(future: asyncio.Future[_T], value: _T) -> None:
    if not future.done():
        future.set_result(value)


async def _first(
    work: Coroutine[Any, Any, None], other: asyncio.Future[ProcessExit], limit_s: float
) -> bool:
    """Run ``work`` until it or ``other`` is done; return whether one was, in time."""
    task = asyncio.create_task(work)
    try:
        either: set[asyncio.Future[Any]] = {task, other}
        await asyncio.wait(either, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        return task.done() or other.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
