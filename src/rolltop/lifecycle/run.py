"""One run from start to end: launch, wait, last scrape, query, estimate, plot, summary, stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rolltop.errors import RolltopError, error_text
from rolltop.launch.guard_client import GUARD
from rolltop.launch.supervisor import Supervisor
from rolltop.lifecycle.directory import point_latest
from rolltop.lifecycle.drive import Ending, RunDriver
from rolltop.lifecycle.events import EventLog
from rolltop.lifecycle.finish import finish, finish_without_telemetry
from rolltop.lifecycle.prepare import write_run_files
from rolltop.logs import tail
from rolltop.model.run import ExitStatus, Failure, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.lifecycle.progress import ProgressView
    from rolltop.model.run import RolloutCounts
    from rolltop.report.summary import RunSummary

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 5.0


@dataclass(frozen=True)
class RunResult:
    """What a run came to; ``samples``: whether it left any to be looked at."""

    summary: RunSummary
    exit_status: ExitStatus
    samples: bool


def execute(run: PreparedRun, view: ProgressView, *, runs_root: Path) -> RunResult:
    """Run it, from an empty directory to ``summary.json``; every process has ended on return.

    The signals that ask for an end are ignored from then on: what is left is to say how it went.

    Raises:
        ConfigError: the run directory cannot be used; nothing has been started.
    """
    try:
        write_run_files(run)
        events = EventLog(run.paths.events)
        supervisor = Supervisor(run.paths.run_dir, guard_log=run.paths.log_of(GUARD))
        driver = RunDriver(run, supervisor, events=events, view=view)
        try:
            point_latest(run.paths.run_dir, runs_root=runs_root)
            return asyncio.run(_execute(run, view, supervisor, driver, events))
        except BaseException as error:
            _break_off(run, driver, events, error)
            raise
    finally:
        run.leases.release()
        view.close()


def _break_off(run: PreparedRun, driver: RunDriver, events: EventLog, error: BaseException) -> None:
    """Let a run that an error broke off have its summary and its last event all the same.

    What is no ``Exception`` asks for the end.
    """
    if isinstance(error, RolltopError | OSError):
        said = error_text(error)
    else:
        said = f"{type(error).__name__}: {error}"
    if isinstance(error, Exception):
        ending = Ending(Outcome.FAILED, Failure("rolltop", None, said))
        status = getattr(error, "exit_status", ExitStatus.OUR_FAULT)
    else:
        ending, status = Ending(Outcome.CANCELLED, detail=said), ExitStatus.CANCELLED
    if not run.paths.summary.exists():
        with contextlib.suppress(Exception):  # the error itself is what is to be told
            finish_without_telemetry(run, driver, ending, f"the run was broken off: {said}")
    events.append("run_ended", outcome=ending.outcome, exit_status=int(status))


async def _execute(
    run: PreparedRun,
    view: ProgressView,
    supervisor: Supervisor,
    driver: RunDriver,
    events: EventLog,
) -> RunResult:
    events.append("run_started", run_uuid=run.identity.run_uuid, run_name=run.identity.run_name)
    for warning in run.plan.warnings:
        view.note(f"warning: {warning}")
        events.append("warning", text=warning)
    try:
        with _signals(driver, view):
            failed = await _start_guard(run, supervisor, events)
            async with driver:
                ending = failed or await driver.drive()
                driver.show()
                view.phase("stopping")
                await driver.wind_down(grace_s=_GRACE_S)
                counts = driver.rollouts.refresh()
                driver.look_for_directory()
                ending = checked(ending, counts, lost=driver.directory_lost)
                if driver.rollouts.strangers:
                    ignored = len(driver.rollouts.strangers)
                    view.note(f"warning: {ignored} results of rollouts that nobody asked for")
                view.phase("reading the telemetry")
                done = await finish(run, driver, ending, counts, events=events, note=view.note)
    finally:
        await supervisor.close()
    lost = done.lost if run.config.telemetry.strict else ()
    status = exit_status_of(ending, counts, lost=lost, written=done.written and not ending.full)
    if status is ExitStatus.TELEMETRY_MISSING:
        view.note(f"--strict: missing telemetry: {', '.join(lost)}")
    events.append("run_ended", outcome=ending.outcome, exit_status=int(status))
    return RunResult(done.summary, status, done.samples)


async def _start_guard(run: PreparedRun, supervisor: Supervisor, events: EventLog) -> Ending | None:
    """Start what starts everything else; return how the run ends if it cannot be started."""
    try:
        await supervisor.open()
    except (RolltopError, OSError) as error:
        reason = error_text(error)
        events.append("process_ended", process=GUARD, reason=reason)
        log_tail = tail(run.paths.log_of(GUARD))
        return Ending(Outcome.FAILED, Failure(GUARD, None, reason, log_tail))
    return None


def checked(ending: Ending, counts: RolloutCounts, *, lost: str | None = None) -> Ending:
    """Return the ending, as failed if the workers left before every rollout had one.

    ``lost``: what became of the run directory, and of the results in it.
    """
    if ending.outcome is not Outcome.COMPLETED or not counts.left:
        return ending
    left = f"{counts.left} of {counts.requested} rollouts"
    reason = f"ended with status 0, but {left} never reached an end"
    if lost is not None:
        reason = f"ended with status 0, but the results of {left} are not there: {lost}"
    return replace(ending, outcome=Outcome.FAILED, failure=Failure("workers", 0, reason))


def exit_status_of(
    ending: Ending, counts: RolloutCounts, *, lost: Sequence[str] = (), written: bool = True
) -> ExitStatus:
    """Return the exit status; where two hold, 2, 5, 4, 3, 1, and ``lost`` telemetry last.

    2 is also what a run gets that had no room, or whose summary could not be ``written``.
    """
    if not written:
        return ExitStatus.USAGE
    by_outcome = {
        Outcome.CANCELLED: ExitStatus.CANCELLED,
        Outcome.TIMEOUT: ExitStatus.CANCELLED,
        Outcome.OUT_OF_MEMORY: ExitStatus.OUT_OF_MEMORY,
    }
    if ending.outcome is not Outcome.COMPLETED:
        return by_outcome.get(ending.outcome, ExitStatus.PROCESS_FAILED)
    if counts.abandoned:
        return ExitStatus.SOME_ABANDONED
    if lost:
        return ExitStatus.TELEMETRY_MISSING
    return ExitStatus.OK


@contextlib.contextmanager
def _signals(driver: RunDriver, view: ProgressView) -> Iterator[None]:
    """Let the signals that ask for an end do so in order.

    A second one changes nothing, unless the telemetry is being read: that is given up then.
    One that is ignored already stays so: under ``nohup`` a run outlives its terminal.
    """
    loop = asyncio.get_running_loop()
    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def ask(number: signal.Signals) -> None:
        view.note(f"{number.name}: stopping, with the plot and the summary")
        driver.stop(number.name)

    for each in heeded:
        loop.add_signal_handler(each, ask, each)
    try:
        yield
    finally:
        for each in heeded:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_IGN)
