"""The scheduler on the wire: one stream per worker, and what every end of an attempt sets going."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import grpc

from rolltop_refsim.results import RolloutResult, write_result
from rolltop_refsim.rpc import scheduler_pb2 as pb
from rolltop_refsim.rpc import scheduler_pb2_grpc
from rolltop_refsim.scheduler.ledger import Lease, Ledger, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)
_VERDICTS = {
    Verdict.RECORDED: pb.ReportReply.RECORDED,
    Verdict.RETRY: pb.ReportReply.RETRY,
    Verdict.ABANDONED: pb.ReportReply.ABANDONED,
}


class SchedulerService(scheduler_pb2_grpc.SchedulerServicer):
    """Serves one :class:`Ledger`; all of it runs on one event loop, so nothing needs a lock."""

    def __init__(
        self, ledger: Ledger, run_dir: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._run_dir = run_dir
        self._clock = clock
        self._events: dict[str, asyncio.Queue[pb.LeaseEvent]] = {}
        self._told: tuple[str | None, int] | None = None
        self._writes: set[asyncio.Task[None]] = set()

    async def lease(self, request: pb.LeaseRequest, context: Any) -> None:
        """Give a worker its rollouts until all have ended; see ``scheduler.proto``."""
        worker_id = request.worker_id
        try:
            self._ledger.join(worker_id, self._clock())
        except ValueError as error:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, str(error))
        events = self._events[worker_id] = asyncio.Queue()
        _log.info("worker %s joined", worker_id)
        try:
            self._move_on()
            while True:
                event = await events.get()
                await context.write(event)
                if event.HasField("finished"):
                    return
        finally:
            self._leave(worker_id)

    async def report(self, request: pb.ReportRequest, context: Any) -> pb.ReportReply:
        """Take the end of an attempt, and answer what follows from it."""
        try:
            verdict = self._ledger.report(
                request.worker_id,
                request.lease_id,
                completed=request.completed,
                now_s=self._clock(),
            )
        except KeyError as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error.args[0]))
            raise  # abort does not return
        if not request.completed:
            _log.warning("lease %d: %s: %s", request.lease_id, verdict.value, request.error)
        self._move_on()
        return pb.ReportReply(verdict=_VERDICTS[verdict])

    async def close(self) -> None:
        """Wait for what is still being written."""
        if self._writes:
            await asyncio.gather(*self._writes, return_exceptions=True)

    def _move_on(self) -> None:
        for lease in self._ledger.assign(self._clock()):
            self._send(lease.worker_id, pb.LeaseEvent(assignment=_assignment(lease)))
        if self._ledger.finished:
            for worker_id in self._events:
                self._send(worker_id, pb.LeaseEvent(finished=pb.Finished()))
            return
        reporter = self._ledger.reporter
        if self._told != (reporter, self._ledger.pending) and reporter is not None:
            self._told = (reporter, self._ledger.pending)
            self._send(reporter, pb.LeaseEvent(queue=pb.QueueStatus(pending=self._ledger.pending)))

    def _send(self, worker_id: str, event: pb.LeaseEvent) -> None:
        self._events[worker_id].put_nowait(event)

    def _leave(self, worker_id: str) -> None:
        del self._events[worker_id]
        for lost in self._ledger.leave(worker_id, self._clock()):
            rollout = lost.lease.rollout
            _log.error("worker %s was lost with %s: %s", worker_id, rollout.uuid, lost.verdict)
            if lost.verdict is Verdict.ABANDONED:
                self._record_abandoned(lost.lease)
        _log.info("worker %s left", worker_id)
        self._move_on()

    def _record_abandoned(self, lease: Lease) -> None:
        rollout = lease.rollout
        result = RolloutResult(
            status="abandoned",
            uuid=rollout.uuid,
            scene=rollout.scene,
            seed=rollout.seed,
            steps=0,
            attempts=lease.attempt,
            first_wave=rollout.first_wave,
            duration_s=0.0,
            worker_id=lease.worker_id,
            quality=None,
            error=f"worker {lease.worker_id} was lost",
        )
        task = asyncio.create_task(self._write(result))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _write(self, result: RolloutResult) -> None:
        try:
            await asyncio.to_thread(write_result, self._run_dir, result)
        except OSError:
            _log.exception("the result of %s could not be written", result.uuid)


def _assignment(lease: Lease) -> pb.Assignment:
    rollout = lease.rollout
    return pb.Assignment(
        lease_id=lease.lease_id,
        uuid=rollout.uuid,
        scene=rollout.scene,
        seed=rollout.seed,
        first_wave=rollout.first_wave,
        attempt=lease.attempt,
        instances={
            service: pb.Instance(name=i.name, address=i.address)
            for service, i in lease.instances.items()
        },
        waited_s=lease.waited_s,
    )
