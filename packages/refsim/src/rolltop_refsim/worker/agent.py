"""A worker and the scheduler: it takes rollouts, drives them, and says how they ended."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import grpc

from rolltop_refsim.results import RolloutResult, write_result
from rolltop_refsim.rpc import scheduler_pb2
from rolltop_refsim.worker.rollout import Rollout, RolloutSpec

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop_instrument import WorkerTelemetry

    from rolltop_refsim.worker.fleet import Fleet

_log = logging.getLogger(__name__)
_REPORT_TIMEOUT_S = 30.0


class SchedulerLostError(RuntimeError):
    """The scheduler went away before it said that all rollouts have ended."""


@dataclass(frozen=True)
class Settings:
    """What a worker is started with."""

    worker_id: str
    run_dir: Path
    steps: int
    call_timeout_s: float = 120.0


class Agent:
    """Drives what the scheduler hands out, until it says that all rollouts have ended."""

    def __init__(
        self, settings: Settings, scheduler: Any, fleet: Fleet, telemetry: WorkerTelemetry
    ) -> None:
        self._settings = settings
        self._scheduler = scheduler
        self._fleet = fleet
        self._telemetry = telemetry
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="results")

    async def run(self) -> None:
        """Work until there is nothing left; raises :class:`SchedulerLostError`."""
        request = scheduler_pb2.LeaseRequest(worker_id=self._settings.worker_id)
        events = self._scheduler.lease(request, wait_for_ready=True)
        try:
            async with asyncio.TaskGroup() as attempts:
                await self._take(events, attempts)
        except BaseExceptionGroup as group:
            raise _first(group) from group
        finally:
            events.cancel()
            self._writer.shutdown(wait=True)

    async def _take(self, events: Any, attempts: asyncio.TaskGroup) -> None:
        try:
            async for event in events:
                if event.HasField("assignment"):
                    attempts.create_task(self._attempt(event.assignment))
                elif event.HasField("queue"):
                    self._telemetry.set_job_queue_depth(event.queue.pending)
                elif event.HasField("finished"):
                    return
        except grpc.RpcError as error:
            raise SchedulerLostError(f"the scheduler was lost: {_words(error)}") from error
        raise SchedulerLostError("the scheduler ended before all rollouts had")

    async def _attempt(self, assignment: scheduler_pb2.Assignment) -> None:
        self._telemetry.renderer_started(kind="fifo", waited_s=assignment.waited_s)
        began = time.monotonic()
        rollout = self._rollout(assignment)
        record = partial(self._record, assignment, rollout, began)
        try:
            async with self._telemetry.rollout(first_wave=assignment.first_wave):
                await rollout.run()
                await record("completed", None)
        except Exception as error:  # noqa: BLE001 (whatever fails an attempt, the others go on)
            words = _words(error)
            expected = isinstance(_first(error), grpc.RpcError)
            _log.warning(
                "%s attempt %d failed: %s",
                assignment.uuid,
                assignment.attempt,
                words,
                exc_info=not expected,
            )
            if await self._report(assignment, words) == scheduler_pb2.ReportReply.ABANDONED:
                self._telemetry.rollout_abandoned()
                await record("abandoned", words)
        else:
            await self._report(assignment, None)

    def _rollout(self, assignment: scheduler_pb2.Assignment) -> Rollout:
        spec = RolloutSpec(
            uuid=assignment.uuid,
            scene=assignment.scene,
            seed=assignment.seed,
            attempt=assignment.attempt,
            steps=self._settings.steps,
        )
        stubs = self._fleet.stubs(assignment.instances)
        return Rollout(spec, stubs, self._telemetry, call_timeout_s=self._settings.call_timeout_s)

    async def _record(
        self,
        assignment: scheduler_pb2.Assignment,
        rollout: Rollout,
        began: float,
        status: Literal["completed", "abandoned"],
        error: str | None,
    ) -> None:
        """Write ``result.json`` in the worker's own thread: the loop never waits for a disk."""
        result = RolloutResult(
            status=status,
            uuid=assignment.uuid,
            scene=assignment.scene,
            seed=assignment.seed,
            steps=rollout.steps,
            attempts=assignment.attempt,
            first_wave=assignment.first_wave,
            duration_s=time.monotonic() - began,
            worker_id=self._settings.worker_id,
            quality=rollout.quality.summary() if status == "completed" else None,
            error=error,
        )
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, write_result, self._settings.run_dir, result)

    async def _report(self, assignment: scheduler_pb2.Assignment, error: str | None) -> int:
        request = scheduler_pb2.ReportRequest(
            worker_id=self._settings.worker_id,
            lease_id=assignment.lease_id,
            completed=error is None,
            error=error or "",
        )
        try:
            reply = await self._scheduler.report(request, timeout=_REPORT_TIMEOUT_S)
        except grpc.RpcError as lost:
            raise SchedulerLostError(f"the scheduler was lost: {_words(lost)}") from lost
        return int(reply.verdict)


def _first(error: BaseException) -> BaseException:
    """Return the error itself, or of several that came together the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    """Say in one line what failed."""
    error = _first(error)
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"
