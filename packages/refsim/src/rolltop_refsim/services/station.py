"""One instance of a service: it takes one call at a time, and does wrong what it was told to.

Calls wait for a ``StampedSlot`` of one and hold it while they are served: both times travel home
with the reply. Work that takes longer than a glance runs in the instance's only thread while the
slot is held, so that the event loop keeps taking calls in (and so sees them wait).
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from rolltop_instrument.server import StampedSlot

from rolltop_refsim.faults import CRASH_EXIT_STATUS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rolltop_refsim.faults import Fault
    from rolltop_refsim.rpc.serving import Stop

T = TypeVar("T")
_CALLS_PER_ROLLOUT = 4
"""A rollout has at most three calls to one service in flight; more means that nobody counts."""
_CALLS_MIN = 8
_log = logging.getLogger(__name__)


class CallError(Exception):
    """A call that a service refuses, with the gRPC status that its caller gets."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Station:
    """Queue, slot and thread of one instance."""

    def __init__(self, name: str, *, n_concurrent: int, fault: Fault, stop: Stop) -> None:
        self.name = name
        self.limit = max(_CALLS_MIN, _CALLS_PER_ROLLOUT * n_concurrent)
        self._fault = fault
        self._stop = stop
        self._slot = StampedSlot(1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._in_flight = 0
        self._served = 0

    def handler(
        self, method: str, work: Callable[[Any], T], *, inline: bool
    ) -> Callable[[Any, Any], Awaitable[T]]:
        """Make the gRPC handler of one method; ``inline`` is for work of under 0.1 ms."""

        async def handle(request: Any, context: Any) -> T:
            try:
                return await self._serve(method, request, work, inline=inline)
            except CallError as error:
                await context.abort(error.code, f"{self.name}: {method}: {error}")
            except Exception as error:  # noqa: BLE001 (the caller gets it; the instance goes on)
                _log.exception("%s failed", method)
                await context.abort(grpc.StatusCode.INTERNAL, f"{self.name}: {method}: {error!r}")
            raise AssertionError("abort returned")

        return handle

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run ``work`` in the instance's thread; return only when it has ended."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])  # the slot stays held as long as the thread is busy
            future.exception()  # looked at, lest asyncio says that nobody did
            raise

    def close(self) -> None:
        """Let the thread end once it is idle."""
        self._thread.shutdown(wait=False)

    async def _serve(
        self, method: str, request: Any, work: Callable[[Any], T], *, inline: bool
    ) -> T:
        if self._in_flight >= self.limit:
            raise CallError(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"{self._in_flight} calls are in flight already"
            )
        self._in_flight += 1
        try:
            async with self._slot:
                await self._misbehave(method, request)
                reply = work(request) if inline else await self.in_thread(lambda: work(request))
        finally:
            self._in_flight -= 1
        self._count()
        return reply

    async def _misbehave(self, method: str, request: Any) -> None:
        if self._fault.delay_ms > 0:
            await asyncio.sleep(self._fault.delay_ms / 1e3)
        rollout = request.rollout
        if self._fault.fails(
            method,
            scene=rollout.scene,
            seed=rollout.seed,
            attempt=rollout.attempt,
            step=rollout.step,
        ):
            raise CallError(grpc.StatusCode.INTERNAL, "fails, as sim.faults says")

    def _count(self) -> None:
        self._served += 1
        if self._served == self._fault.crash_after:
            service = self.name.rpartition("-")[0]
            _log.error("sim.faults.%s.crash_after=%d ends this service", service, self._served)
            self._stop.request(CRASH_EXIT_STATUS)
