"""Drive a run: start its processes in order, watch them, and say why it ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rolltop.launch.diagnosis import ProcessFailedError
from rolltop.lifecycle.monitoring import NAME as PROMETHEUS
from rolltop.lifecycle.monitoring import RunPrometheus
from rolltop.lifecycle.prepare import write_plan
from rolltop.lifecycle.progress import RunStatus
from rolltop.lifecycle.rollouts import RolloutWatch
from rolltop.model.plan import Role
from rolltop.model.run import Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from rolltop.launch.diagnosis import ProcessExit
    from rolltop.launch.supervisor import Supervisor
    from rolltop.lifecycle.events import EventLog
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.lifecycle.progress import ProgressView
    from rolltop.model.plan import ProcessPlan
    from rolltop.model.run import Failure, RolloutCounts

_TICK_S = 0.5
_PORTS_TRIED = 3
_T = TypeVar("_T")


@dataclass(frozen=True)
class Ending:
    """Why a run ended; ``detail`` is for a person."""

    outcome: Outcome
    failure: Failure | None = None
    detail: str = ""


class _EndedError(Exception):
    """The run ended while something was waited for."""


class RunDriver:
    """One run, from its first process to the moment when nothing more will come of it.

    ``started_s`` and ``ended_s`` are unix times of the first worker's start and of the end.
    """

    def __init__(
        self,
        run: PreparedRun,
        supervisor: Supervisor,
        *,
        events: EventLog,
        view: ProgressView,
    ) -> None:
        self.prometheus = RunPrometheus(run, supervisor, events=events, note=view.note)
        self.rollouts = RolloutWatch(run.paths.rollouts, requested=run.config.runtime.rollouts)
        self.started_s: float | None = None
        self.ended_s: float | None = None
        self._run = run
        self._supervisor = supervisor
        self._events = events
        self._view = view
        self._ending: Ending | None = None
        self._ended = asyncio.Event()
        self._cpu_s: dict[str, float] = {}
        self._working: set[str] = set()
        self._starting: set[str] = set()

    def stop(self, reason: str) -> None:
        """Ask the run to end, from a signal handler."""
        self._end(Ending(Outcome.CANCELLED, detail=reason))

    async def drive(self) -> Ending:
        """Start everything and return why it ended; processes may still run then."""
        watch = asyncio.create_task(self._watch_exits())
        try:
            await self._until_ended(self._start_all())
            await self._until_ended(self._follow())
        except _EndedError:
            pass
        except ProcessFailedError as error:
            self._end(Ending(error.outcome, error.failure))
        finally:
            self.ended_s = time.time()
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        if self._ending is None:
            return Ending(Outcome.UNKNOWN, detail="the run ended without a reason")
        return self._ending

    def cpu_seconds_ratio(self) -> float | None:
        """CPU seconds of Prometheus over those of all processes of the run that have ended.

        None while Prometheus runs, or where there was none.
        """
        while not self._supervisor.exits.empty():
            self._account(self._supervisor.exits.get_nowait())
        whole_s = sum(self._cpu_s.values())
        if PROMETHEUS not in self._cpu_s or PROMETHEUS in self._supervisor.running or not whole_s:
            return None
        return self._cpu_s[PROMETHEUS] / whole_s

    def _account(self, ended: ProcessExit) -> None:
        if ended.cpu_s is not None:
            self._cpu_s[ended.name] = self._cpu_s.get(ended.name, 0.0) + ended.cpu_s

    async def stop_prometheus(self) -> None:
        """Stop the run's Prometheus, so that its data are whole."""
        await self._supervisor.stop([PROMETHEUS])

    async def wind_down(self, *, grace_s: float) -> None:
        """Stop all but Prometheus: workers first, so that their last values are read."""
        await self._stop(p.name for p in self._run.plan.of_role(Role.WORKER))
        await self._supervisor.stop(
            [name for name in self._supervisor.running if name != PROMETHEUS], grace_s=grace_s
        )

    async def _stop(self, names: Iterable[str]) -> None:
        interval_s = self._run.config.telemetry.worker_interval_s
        await self._supervisor.stop(list(names), grace_s=2 * interval_s + 3.0)

    # -- start --------------------------------------------------------------------------------

    async def _start_all(self) -> None:
        self._view.phase("starting Prometheus")
        await self.prometheus.start()
        plan = self._run.plan
        services = plan.of_role(Role.SERVICE)
        self._view.phase(f"starting {_counted(len(services), 'service')}")
        await _all(self._start(process) for process in services)
        for process in self._run.plan.of_role(Role.SCHEDULER):
            self._view.phase("starting the scheduler")
            await self._start(process)
        await self.prometheus.discovered()
        workers = self._run.plan.of_role(Role.WORKER)
        self._view.phase(f"driving with {_counted(len(workers), 'worker')}")
        self._working = {process.name for process in workers}
        self.started_s = time.time()
        await _all(self._start(process) for process in workers)

    async def _start(self, process: ProcessPlan) -> None:
        """Start a process and wait until it is ready, on another port if it cannot bind its own."""
        self._starting.add(process.name)
        for tries_left in reversed(range(_PORTS_TRIED)):
            try:
                await self._start_once(process)
                break
            except ProcessFailedError as error:
                if not (error.port_taken and tries_left and process.port is not None):
                    raise
                self._events.append("port_taken", process=process.name, port=process.port)
                await self._supervisor.stop([process.name])  # until nothing of it is left
                process = self._run.replace_port(process)
                write_plan(self._run)
        self._starting.discard(process.name)

    async def _start_once(self, process: ProcessPlan) -> None:
        pid = await self._supervisor.start(process, self._run.paths.log_of(process.name))
        self._events.append("process_started", process=process.name, pid=pid)
        await self._supervisor.wait_healthy(process.name)
        self._events.append("process_ready", process=process.name, port=process.port)

    # -- watch --------------------------------------------------------------------------------

    async def _watch_exits(self) -> None:
        while True:
            ended = await self._supervisor.exits.get()
            self._account(ended)
            if ended.requested:
                continue
            if ended.name == PROMETHEUS:
                if PROMETHEUS not in self.prometheus.missing and self.started_s is not None:
                    await self.prometheus.on_exit(ended)
            else:
                self._on_exit(ended)

    def _on_exit(self, ended: ProcessExit) -> None:
        self._events.append("process_ended", process=ended.name, reason=ended.describe())
        if ended.name in self._working and ended.ok:
            self._working.discard(ended.name)
            if not self._working:
                self._end(Ending(Outcome.COMPLETED))
            return
        if ended.name in self._starting:
            return  # its start fails with it, or is tried on another port
        error = self._supervisor.failure(ended)
        self._end(Ending(error.outcome, error.failure))

    async def _follow(self) -> None:
        while True:
            counts = self.rollouts.refresh()
            self._view.update(await self._status(counts))
            await asyncio.sleep(_TICK_S)

    async def _status(self, counts: RolloutCounts) -> RunStatus:
        busiest = await self.prometheus.busiest()
        started_s = self.started_s or time.time()
        return RunStatus(
            counts=counts,
            elapsed_s=time.time() - started_s,
            at_once=min(counts.requested, self._run.config.topology().capacity),
            busiest=busiest[0] if busiest else None,
            busiest_queue=busiest[1] if busiest else None,
        )

    # -- end ----------------------------------------------------------------------------------

    def _end(self, ending: Ending) -> None:
        if self._ending is None:
            self._ending = ending
            self._ended.set()

    async def _until_ended(self, work: Coroutine[object, object, None]) -> None:
        """Do ``work``, unless the run ends first."""
        task = asyncio.create_task(work)
        end = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise _EndedError
            task.result()
        finally:
            for each in (task, end):
                each.cancel()
            await asyncio.gather(task, end, return_exceptions=True)


async def _all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Do all at once; the first that fails ends the others and is raised itself."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _counted(number: int, noun: str) -> str:
    """Return ``1 worker``, ``2 workers``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
