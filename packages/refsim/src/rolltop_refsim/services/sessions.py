"""What a service remembers of the rollouts that are pinned to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

import grpc

from rolltop_refsim.services.station import CallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop_refsim.rpc.common_pb2 import RolloutStep

T = TypeVar("T")
_IDLE_S = 60.0
_Key = tuple[str, int]


class Sessions(Generic[T]):
    """Sessions by rollout and attempt, at most ``limit``.

    A worker that died never closes its sessions: when all places are taken, one that nobody has
    used for a minute makes room.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._sessions: dict[_Key, tuple[T, float]] = {}
        """In the order of their last use."""

    def __len__(self) -> int:
        return len(self._sessions)

    def start(self, rollout: RolloutStep, session: T) -> None:
        """Begin a session; raises :class:`CallError` where there is no place for it."""
        self._sessions.pop(_key(rollout), None)
        if len(self._sessions) >= self._limit:
            oldest, (_, used_s) = next(iter(self._sessions.items()))
            if self._clock() - used_s < _IDLE_S:
                raise CallError(
                    grpc.StatusCode.RESOURCE_EXHAUSTED, f"all {self._limit} sessions are in use"
                )
            del self._sessions[oldest]
        self._sessions[_key(rollout)] = (session, self._clock())

    def get(self, rollout: RolloutStep) -> T:
        """Return a session; raises :class:`CallError` where it was never started, or closed."""
        entry = self._sessions.pop(_key(rollout), None)
        if entry is None:
            raise CallError(grpc.StatusCode.NOT_FOUND, f"rollout {rollout.uuid} has no session")
        self._sessions[_key(rollout)] = (entry[0], self._clock())
        return entry[0]

    def close(self, rollout: RolloutStep) -> None:
        """End a session, if there is one."""
        self._sessions.pop(_key(rollout), None)


def _key(rollout: RolloutStep) -> _Key:
    return (rollout.uuid, rollout.attempt)
