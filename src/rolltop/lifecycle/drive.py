"""Drive a run: start its processes in order, watch them, and say why it ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from rolltop.errors import RolltopError, error_text
from rolltop.launch.diagnosis import ProcessFailedError
from rolltop.launch.guard_client import GUARD
from rolltop.lifecycle.directory import DirectoryWatch, is_full
from rolltop.lifecycle.monitoring import NAME as PROMETHEUS
from rolltop.lifecycle.monitoring import RunPrometheus
from rolltop.lifecycle.prepare import write_plan
from rolltop.lifecycle.progress import Pace, RunStatus, pace_of, time_left_s
from rolltop.lifecycle.rollouts import RolloutWatch, parse_requested
from rolltop.model.plan import Role
from rolltop.model.run import Failure, Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from rolltop.launch.diagnosis import ProcessExit
    from rolltop.launch.supervisor import Supervisor
    from rolltop.lifecycle.events import EventLog
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.lifecycle.progress import ProgressView
    from rolltop.model.plan import ProcessPlan
    from rolltop.model.run import RolloutCounts

_TICK_S = 0.5
_PORTS_TRIED = 3


@dataclass(frozen=True)
class Ending:
    """Why a run ended; ``detail`` is for a person.

    ``full``: there was no room left for what the run writes.
    """

    outcome: Outcome
    failure: Failure | None = None
    detail: str = ""
    full: bool = False


class _EndedError(Exception):
    """The run ended while something was waited for."""


class RunDriver:
    """One run, from its first process to the moment when nothing more will come of it.

    Use it as an async context: in it every exit of a process is seen, whatever else goes on;
    leaving it stops Prometheus. ``interrupted`` is set by every signal that asks for an end.
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
        self.rollouts = RolloutWatch(
            run.paths.rollouts,
            requested=parse_requested(run.plan.files[run.paths.rollouts_file.name].splitlines()),
        )
        self.interrupted = asyncio.Event()
        self.started_s: float | None = None
        self.ended_s: float | None = None
        self.directory_lost: str | None = None
        """What became of the run directory, None as long as it is where it was."""
        self._directory = DirectoryWatch(run.paths.run_dir)
        self._run = run
        self._supervisor = supervisor
        self._events = events
        self._view = view
        self._ending: Ending | None = None
        self._ended = asyncio.Event()
        self._cpu_s: dict[str, float] = {}
        self._working: set[str] = set()
        self._starting: set[str] = set()
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._watch_exits())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.prometheus.close()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        self._directory.close()

    def stop(self, reason: str) -> None:
        """Ask the run to end, from a signal handler."""
        self.interrupted.set()
        self._end(Ending(Outcome.CANCELLED, detail=reason))

    async def drive(self) -> Ending:
        """Start everything and return why it ended; processes may still run then."""
        try:
            await self._until_ended(self._start_all())
            await self._until_ended(_all((self._follow(), self.prometheus.keep_asking())))
        except _EndedError:
            pass
        except ProcessFailedError as error:
            self._end(Ending(error.outcome, error.failure))
        except (RolltopError, OSError) as error:
            self._end(Ending(Outcome.FAILED, Failure("rolltop", None, error_text(error))))
        finally:
            self.ended_s = time.time()
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
        """Start a process and wait until it is ready.

        Raises:
            ProcessFailedError: whatever it was that kept it from being ready.
        """
        self._starting.add(process.name)
        try:
            await self._start_somewhere(process)
        except ProcessFailedError:
            raise
        except (RolltopError, OSError) as error:
            reason = f"could not be started: {error_text(error)}"
            raise ProcessFailedError(Failure(process.name, None, reason)) from error
        self._starting.discard(process.name)

    async def _start_somewhere(self, process: ProcessPlan) -> None:
        """Start a process, on another port if it cannot bind its own, until it is ready."""
        for tries_left in reversed(range(_PORTS_TRIED)):
            try:
                await self._start_once(process)
            except ProcessFailedError as error:
                if not (error.port_taken and tries_left and process.port is not None):
                    raise
                self._events.append("port_taken", process=process.name, port=process.port)
                await self._supervisor.stop([process.name])  # until nothing of it is left
                process = self._run.replace_port(process)
                write_plan(self._run)
            else:
                return

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
                self.prometheus.on_exit(ended)
            else:
                self._on_exit(ended)

    def _on_exit(self, ended: ProcessExit) -> None:
        if ended.name == GUARD:  # what it started has ended with it, and nothing more can be
            self.prometheus.start_no_more()
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
            self.show()
            self.look_for_directory()
            await asyncio.sleep(_TICK_S)

    def look_for_directory(self) -> None:
        """Tell, once, if somebody took the run directory away; the run itself goes on."""
        lost = None if self.directory_lost else self._directory.lost()
        if lost is None:
            return
        self.directory_lost = lost
        self.prometheus.start_no_more()
        if self._run.config.telemetry.enabled:
            self.prometheus.name_missing(f"{lost}, and its database with it")
        self._view.note(f"warning: {lost}, with its results and all that it had measured")

    def show(self) -> RolloutCounts:
        """Show how far the run has come, and return it."""
        counts = self.rollouts.refresh()
        if self.started_s is not None:
            self._view.update(self._status(counts, self.started_s))
        return counts

    def _status(self, counts: RolloutCounts, started_s: float) -> RunStatus:
        """Return the state; its clock stops with the last rollout."""
        until_s = self.rollouts.last_ended_s if counts.left == 0 else self.ended_s
        busiest = self.prometheus.busiest
        left_s, pace = self._left_s(counts, started_s) if self.ended_s is None else (None, None)
        return RunStatus(
            counts=counts,
            elapsed_s=max(0.0, (until_s or time.time()) - started_s),
            left_s=left_s,
            pace=pace,
            busiest=busiest[0] if busiest else None,
            busiest_queue=busiest[1] if busiest else None,
        )

    def _left_s(self, counts: RolloutCounts, started_s: float) -> tuple[float | None, Pace | None]:
        """Return the seconds left at the pace of the rollouts that have ended, and that pace."""
        at_once = min(counts.requested, self._run.config.topology().capacity)
        first_s = self.rollouts.first_started_s or started_s
        results = self.rollouts.results
        ends_s = [max(0.0, r.ended_s - first_s) for r in results[-at_once:]]
        left_s = time_left_s(
            ends_s,
            n_ended=len(results),
            n_left=counts.left,
            at_once=at_once,
            elapsed_s=time.time() - first_s,
        )
        return left_s, pace_of(ends_s, n_ended=len(results), at_once=at_once)

    # -- end ----------------------------------------------------------------------------------

    def _end(self, ending: Ending) -> None:
        if self._ending is None:
            self._ending = self._blamed(ending)
            self._ended.set()

    def _blamed(self, ending: Ending) -> Ending:
        """Return an ending that names the disk, where a process failed that had no place there."""
        run_dir = self._run.paths.run_dir
        if ending.failure is None:
            return ending
        self.look_for_directory()
        if self.directory_lost is not None:
            reason = f"{ending.failure.reason}; {self.directory_lost}"
            return replace(ending, failure=replace(ending.failure, reason=reason))
        if not is_full(run_dir):
            return ending
        cause = (
            f"no space is left on the file system of {run_dir}: free some; until then "
            f"`rolltop plot {run_dir} -o FILE` draws elsewhere what was measured"
        )
        failure = replace(ending.failure, reason=f"{ending.failure.reason}; {cause}")
        return replace(ending, failure=failure, full=True)

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
