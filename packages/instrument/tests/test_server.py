"""The executor and the slot, without gRPC."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rolltop_instrument import StampedExecutor, StampedSlot, current_stamps, stamped_call


async def test_the_executor_tells_waiting_from_serving() -> None:
    """Three calls on one thread: the n-th waits for n - 1 turns and is served for one."""

    async def call() -> tuple[float, float]:
        with stamped_call() as stamps:
            await executor.run(time.sleep, 0.03)
            return stamps.queue_s, stamps.service_s

    gate = threading.Event()
    with StampedExecutor(1) as executor:
        before = asyncio.create_task(executor.run(gate.wait))
        waiting = [asyncio.create_task(call()) for _ in range(3)]
        await asyncio.sleep(0)  # now all have asked
        gate.set()
        calls = await asyncio.gather(*waiting)
        await before
    for n, (queue_s, service_s) in enumerate(calls):
        assert service_s >= 0.03
        assert queue_s >= 0.029 * n


async def test_the_slot_tells_waiting_from_holding() -> None:
    async def call() -> tuple[float, float]:
        with stamped_call() as stamps:
            async with slot:
                await all_have_asked.wait()
                await asyncio.sleep(0.03)
            return stamps.queue_s, stamps.service_s

    slot, all_have_asked = StampedSlot(2), asyncio.Event()
    waiting = [asyncio.create_task(call()) for _ in range(4)]
    await asyncio.sleep(0)
    all_have_asked.set()
    calls = await asyncio.gather(*waiting)
    assert all(service_s >= 0.029 for _, service_s in calls)
    assert all(queue_s >= 0.029 for queue_s, _ in calls[2:])
    assert max(queue_s for queue_s, _ in calls[:2]) < min(queue_s for queue_s, _ in calls[2:])


async def test_turns_of_one_call_add_up() -> None:
    slot = StampedSlot(1)
    with StampedExecutor(2) as executor, stamped_call() as stamps:
        await executor.run(time.sleep, 0.01)
        await asyncio.gather(executor.run(time.sleep, 0.01), executor.run(time.sleep, 0.01))
        async with slot:
            await asyncio.sleep(0.01)
        assert stamps.service_s >= 0.038
    assert stamps.stamped


async def test_what_runs_and_what_it_raises_come_back() -> None:
    def fail() -> None:
        raise LookupError("here")

    with StampedExecutor(1) as executor:
        assert await executor.run(lambda a, *, b: a + b, 1, b=2) == 3
        with pytest.raises(LookupError, match="here"):
            await executor.run(fail)
        assert current_stamps().stamped


async def test_the_work_sees_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("caller's")
    with StampedExecutor(1) as executor:
        assert await executor.run(variable.get) == "caller's"
        await executor.run(variable.set, "the work's")
    assert variable.get() == "caller's"


async def test_the_stamps_of_a_call_are_its_own_without_any_scope_too() -> None:
    async def call(turns: int) -> int:
        with StampedExecutor(1) as executor:
            for _ in range(turns):
                await executor.run(time.sleep, 0)
        return len(current_stamps()._turns)

    tasks = [asyncio.create_task(call(turns)) for turns in (1, 3)]
    assert await asyncio.gather(*tasks) == [1, 3]


async def test_a_caller_that_is_cancelled_while_it_waits_has_waited() -> None:
    gate = threading.Event()
    with StampedExecutor(1) as executor:
        first = asyncio.create_task(executor.run(gate.wait))
        await asyncio.sleep(0.01)

        async def call() -> None:
            nonlocal stamps
            with stamped_call() as stamps:
                await executor.run(ran.append, 1)

        stamps, ran = current_stamps(), list[int]()
        second = asyncio.create_task(call())
        await asyncio.sleep(0)  # now it has asked
        await asyncio.sleep(0.02)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        await first
    assert ran == []
    assert stamps.queue_s >= 0.015
    assert stamps.service_s == 0


async def test_a_caller_that_is_cancelled_while_it_is_served_has_been_served() -> None:
    served, gate = threading.Event(), threading.Event()
    stamps = current_stamps()

    def serve() -> None:
        served.set()
        gate.wait()

    with StampedExecutor(1) as executor:
        call = asyncio.create_task(executor.run(serve))
        assert await asyncio.to_thread(served.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
    assert stamps.service_s > 0


async def test_a_slot_is_free_again_after_errors_and_cancellations() -> None:
    slot = StampedSlot(1)
    with pytest.raises(ValueError, match="inside"):
        async with slot:
            raise ValueError("inside")

    async def hold() -> None:
        async with slot:
            await asyncio.sleep(3600)

    holder, waiter = asyncio.create_task(hold()), asyncio.create_task(hold())
    await asyncio.sleep(0.01)
    waiter.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    async with asyncio.timeout(5), slot:
        pass


class Visitors:
    """Tasks that hold a place of a slot until they are told to leave, and who is inside."""

    def __init__(self, n: int) -> None:
        self.slot = StampedSlot(n)
        self.n = n
        self.inside: set[int] = set()
        self.entered: list[int] = []
        self.overtaken: list[tuple[int, list[int]]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._leave: list[asyncio.Event] = []

    def come(self) -> None:
        self._leave.append(asyncio.Event())
        self.tasks.append(asyncio.create_task(self._visit(len(self.tasks))))

    def leave(self, visitor: int) -> None:
        self._leave[visitor].set()

    async def _visit(self, visitor: int) -> None:
        async with self.slot:
            self.inside.add(visitor)
            self.entered.append(visitor)
            self._look_for_the_overtaken(visitor)
            try:
                await self._leave[visitor].wait()
            finally:
                self.inside.discard(visitor)

    def _look_for_the_overtaken(self, visitor: int) -> None:
        """Who came before and is not inside yet has been given a place, and resumes in a moment."""
        before = [
            earlier
            for earlier, task in enumerate(self.tasks[:visitor])
            if earlier not in self.entered and not task.done() and not task.cancelling()
        ]
        given = self.n - self.slot._free - len(self.inside)
        if len(before) > given:
            self.overtaken.append((visitor, before))


_BOTH_LEAVE_AS_ONE_COMES = [
    *[("come", 0), ("come", 0), ("come", 0), ("turn", 0)],
    *[("leave", 0), ("leave", 1), ("come", 0), ("turn", 0), ("turn", 0)],
]
_GIVEN_UP_WHEN_HANDED_OVER = [
    *[("come", 0), ("come", 0), ("turn", 0)],
    *[("leave", 0), ("turn", 0), ("cancel", 1)],
]


@given(
    n=st.integers(1, 3),
    moves=st.lists(
        st.tuples(st.sampled_from(["come", "leave", "cancel", "turn"]), st.integers(0, 5)),
        max_size=40,
    ),
)
@example(n=1, moves=_GIVEN_UP_WHEN_HANDED_OVER)
@example(n=2, moves=_BOTH_LEAVE_AS_ONE_COMES)
def test_a_slot_is_fair_and_loses_no_place(n: int, moves: list[tuple[str, int]]) -> None:
    """Whoever comes, leaves and gives up in whatever order and turn of the loop."""

    async def play() -> None:
        visitors = Visitors(n)
        for move, which in moves:
            if move == "come":
                visitors.come()
            elif move == "turn":
                await asyncio.sleep(0)
            elif which < len(visitors.tasks):
                visitors.leave(which) if move == "leave" else visitors.tasks[which].cancel()
            assert len(visitors.inside) <= n
        for visitor in range(len(visitors.tasks)):
            visitors.leave(visitor)
        await asyncio.gather(*visitors.tasks, return_exceptions=True)
        assert visitors.overtaken == []
        async with asyncio.timeout(5), contextlib.AsyncExitStack() as stack:
            for _ in range(n):
                await stack.enter_async_context(visitors.slot)

    asyncio.run(play())


async def test_waiters_that_give_up_leave_the_queue() -> None:
    slot = StampedSlot(1)
    async with slot:
        waiters = [asyncio.create_task(slot.__aenter__()) for _ in range(50)]
        await asyncio.sleep(0)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)
        assert not slot._waiting


async def test_a_waiter_that_is_closed_takes_no_place() -> None:
    slot = StampedSlot(1)
    async with slot:
        waiter = slot.__aenter__()
        waiter.send(None)
        waiter.close()
    async with asyncio.timeout(5), slot:
        pass


async def test_a_slot_may_be_left_in_another_task() -> None:
    """As an async generator that the loop's shutdown closes does."""
    slot = StampedSlot(1)
    await asyncio.create_task(slot.__aenter__())
    await slot.__aexit__(None, None, None)
    async with asyncio.timeout(5), slot:
        pass


async def test_a_slot_may_be_held_twice_by_one_call() -> None:
    slot = StampedSlot(2)
    with stamped_call() as stamps:
        async with slot:
            async with slot:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
    assert stamps.service_s >= 0.028


def test_a_slot_needs_a_place() -> None:
    with pytest.raises(ValueError, match="at least one"):
        StampedSlot(0)


def test_a_scope_ends() -> None:
    with stamped_call() as outer:
        with stamped_call() as inner:
            assert current_stamps() is inner
        assert current_stamps() is outer
    assert outer is not inner
