"""Which rollout is where: the scheduler's state machine, apart from every transport.

A rollout is *pending* (no slots yet), *leased* (one attempt runs on one worker), or it has *ended*,
completed or abandoned, exactly once. The caller brings the clock, in seconds of any origin.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop_refsim.scheduler.slots import Instance, SlotTable


class Verdict(Enum):
    """What became of an attempt that was reported."""

    RECORDED = "recorded"
    RETRY = "retry"
    ABANDONED = "abandoned"


@dataclass(frozen=True)
class Rollout:
    """One line of the rollouts file."""

    uuid: str
    scene: str
    seed: int
    first_wave: bool = False


@dataclass(frozen=True)
class Lease:
    """One attempt of a rollout, given to one worker with a slot of every service."""

    lease_id: int
    worker_id: str
    rollout: Rollout
    attempt: int
    instances: dict[str, Instance]
    waited_s: float


@dataclass(frozen=True)
class Lost:
    """An attempt whose worker went away, and what follows."""

    lease: Lease
    verdict: Verdict


@dataclass(frozen=True)
class _Pending:
    rollout: Rollout
    attempt: int
    since_s: float | None
    """None: since the first worker came."""


@dataclass
class Ledger:
    """All rollouts of a run, and the workers that run them.

    Rollouts go out first come, first served; one that failed goes to the end of the queue.
    A worker holds at most its share of what can run at once, so that all have work.
    """

    rollouts: Sequence[Rollout]
    slots: SlotTable
    nr_workers: int
    max_retries: int
    _pending: deque[_Pending] = field(init=False)
    _leases: dict[int, Lease] = field(init=False, default_factory=dict)
    _workers: dict[str, int] = field(init=False, default_factory=dict)
    _began_s: float | None = field(init=False, default=None)
    _next_lease_id: int = field(init=False, default=1)
    completed: int = field(init=False, default=0)
    abandoned: int = field(init=False, default=0)
    failed_attempts: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.nr_workers < 1 or self.max_retries < 0:
            raise ValueError("nr_workers must be at least 1 and max_retries at least 0")
        if len({r.uuid for r in self.rollouts}) != len(self.rollouts):
            raise ValueError("two rollouts have the same uuid")
        self._pending = deque(_Pending(r, 1, None) for r in self.rollouts)

    @property
    def pending(self) -> int:
        """How many rollouts wait for slots."""
        return len(self._pending)

    @property
    def finished(self) -> bool:
        """Whether every rollout has ended."""
        return self.completed + self.abandoned == len(self.rollouts)

    @property
    def share(self) -> int:
        """How many rollouts one worker may hold at once."""
        at_once = min(self.slots.capacity, len(self.rollouts))
        return max(1, math.ceil(at_once / self.nr_workers))

    @property
    def workers(self) -> tuple[str, ...]:
        """Those present, in the order in which they came."""
        return tuple(self._workers)

    @property
    def reporter(self) -> str | None:
        """The one worker that publishes the queue: of those present, the first that came."""
        return next(iter(self._workers), None)

    def join(self, worker_id: str, now_s: float) -> None:
        """Take in a worker; raises ``ValueError`` for one that is here already."""
        if worker_id in self._workers:
            raise ValueError(f"worker {worker_id!r} is here already")
        if self._began_s is None:
            self._began_s = now_s
        self._workers[worker_id] = 0

    def leave(self, worker_id: str, now_s: float) -> list[Lost]:
        """Let a worker go; the attempts that it held have failed."""
        held = [lease for lease in self._leases.values() if lease.worker_id == worker_id]
        lost = [Lost(lease, self._end_attempt(lease, ok=False, now_s=now_s)) for lease in held]
        self._workers.pop(worker_id, None)
        return lost

    def assign(self, now_s: float) -> list[Lease]:
        """Give out all that can start now, each to the worker that holds least."""
        given: list[Lease] = []
        while self._pending:
            worker_id = self._least_busy()
            instances = self.slots.take() if worker_id is not None else None
            if worker_id is None or instances is None:
                break
            given.append(self._lease(self._pending.popleft(), worker_id, instances, now_s))
        return given

    def report(self, worker_id: str, lease_id: int, *, completed: bool, now_s: float) -> Verdict:
        """Record how an attempt ended; raises ``KeyError`` where that worker holds no such one."""
        lease = self._leases.get(lease_id)
        if lease is None or lease.worker_id != worker_id:
            raise KeyError(f"worker {worker_id!r} holds no lease {lease_id}")
        return self._end_attempt(lease, ok=completed, now_s=now_s)

    def _least_busy(self) -> str | None:
        free = [w for w, held in self._workers.items() if held < self.share]
        return min(free, key=lambda w: (self._workers[w], _natural(w)), default=None)

    def _lease(
        self, pending: _Pending, worker_id: str, instances: dict[str, Instance], now_s: float
    ) -> Lease:
        since_s = pending.since_s if pending.since_s is not None else self._began_s
        lease = Lease(
            lease_id=self._next_lease_id,
            worker_id=worker_id,
            rollout=pending.rollout,
            attempt=pending.attempt,
            instances=instances,
            waited_s=0.0 if since_s is None else max(0.0, now_s - since_s),
        )
        self._next_lease_id += 1
        self._leases[lease.lease_id] = lease
        self._workers[worker_id] += 1
        return lease

    def _end_attempt(self, lease: Lease, *, ok: bool, now_s: float) -> Verdict:
        del self._leases[lease.lease_id]
        self.slots.give_back(lease.instances)
        self._workers[lease.worker_id] -= 1
        if ok:
            self.completed += 1
            return Verdict.RECORDED
        self.failed_attempts += 1
        if lease.attempt <= self.max_retries:
            self._pending.append(_Pending(lease.rollout, lease.attempt + 1, now_s))
            return Verdict.RETRY
        self.abandoned += 1
        return Verdict.ABANDONED


def _natural(worker_id: str) -> tuple[int, str]:
    """Order worker ids as numbers where they are: "2" before "10"."""
    return (int(worker_id) if worker_id.isdecimal() else 1 << 30, worker_id)
