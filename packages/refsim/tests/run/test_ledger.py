from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from rolltop_refsim.scheduler.ledger import Lease, Ledger, Rollout, Verdict
from rolltop_refsim.scheduler.slots import Instance, SlotTable


def fleet(**capacities: list[int]) -> dict[str, list[Instance]]:
    return {
        service: [Instance(f"{service}-{i}", f"host:{i}", n) for i, n in enumerate(ns)]
        for service, ns in capacities.items()
    }


def rollouts(count: int) -> list[Rollout]:
    return [Rollout(f"uuid-{i}", f"road-{i}", i) for i in range(count)]


class LedgerMachine(RuleBasedStateMachine):
    """Workers come and go, attempts end well or badly, in any order."""

    @initialize(
        count=st.integers(0, 8),
        drivers=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        renderers=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        nr_workers=st.integers(1, 3),
        max_retries=st.integers(0, 2),
    )
    def begin(
        self,
        count: int,
        drivers: list[int],
        renderers: list[int],
        nr_workers: int,
        max_retries: int,
    ) -> None:
        self.instances = fleet(driver=drivers, renderer=renderers)
        self.ledger = Ledger(rollouts(count), SlotTable(self.instances), nr_workers, max_retries)
        self.now_s = 0.0
        self.held: dict[int, Lease] = {}
        self.present: list[str] = []
        self.ended: dict[str, Verdict] = {}
        self.attempts: dict[str, int] = {}

    @rule(worker=st.sampled_from(["0", "1", "2"]))
    def come_or_go(self, worker: str) -> None:
        self.now_s += 1.0
        if worker not in self.present:
            self.ledger.join(worker, self.now_s)
            self.present.append(worker)
            return
        self.present.remove(worker)
        mine = {i for i, lease in self.held.items() if lease.worker_id == worker}
        lost = self.ledger.leave(worker, self.now_s)
        assert {one.lease.lease_id for one in lost} == mine
        for one in lost:
            self.end(one.lease, one.verdict, completed=False)

    @rule()
    def assign(self) -> None:
        for lease in self.ledger.assign(self.now_s):
            assert lease.lease_id not in self.held
            assert lease.worker_id in self.present
            assert lease.rollout.uuid not in self.ended
            assert lease.attempt == self.attempts.get(lease.rollout.uuid, 0) + 1
            assert lease.waited_s >= 0
            assert lease.instances.keys() == self.instances.keys()
            self.attempts[lease.rollout.uuid] = lease.attempt
            self.held[lease.lease_id] = lease

    @precondition(lambda self: self.held)
    @rule(data=st.data(), completed=st.booleans())
    def report(self, data: st.DataObject, completed: bool) -> None:
        self.now_s += 1.0
        lease = self.held[data.draw(st.sampled_from(sorted(self.held)))]
        verdict = self.ledger.report(
            lease.worker_id, lease.lease_id, completed=completed, now_s=self.now_s
        )
        self.end(lease, verdict, completed=completed)

    def end(self, lease: Lease, verdict: Verdict, *, completed: bool) -> None:
        del self.held[lease.lease_id]
        last = lease.attempt > self.ledger.max_retries
        wanted = Verdict.ABANDONED if last else Verdict.RETRY
        assert verdict is (Verdict.RECORDED if completed else wanted)
        if verdict is not Verdict.RETRY:
            assert lease.rollout.uuid not in self.ended
            self.ended[lease.rollout.uuid] = verdict

    @invariant()
    def no_instance_holds_more_than_it_can(self) -> None:
        held = self.ledger.slots.held()
        for members in self.instances.values():
            assert sum(held[m.name] for m in members) == len(self.held)
            assert all(0 <= held[m.name] <= m.n_concurrent for m in members)

    @invariant()
    def no_rollout_is_lost_or_doubled(self) -> None:
        running = [lease.rollout.uuid for lease in self.held.values()]
        assert len(set(running)) == len(running)
        assert len(running) + self.ledger.pending + len(self.ended) == len(self.ledger.rollouts)
        assert self.ledger.finished == (len(self.ended) == len(self.ledger.rollouts))
        assert self.ledger.abandoned == list(self.ended.values()).count(Verdict.ABANDONED)

    @invariant()
    def one_of_those_present_reports_the_queue(self) -> None:
        assert self.ledger.reporter == (self.present[0] if self.present else None)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(deadline=None)
@given(
    count=st.integers(1, 30),
    drivers=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    nr_workers=st.integers(1, 4),
)
def test_all_that_fits_starts_at_once_and_is_spread(
    count: int, drivers: list[int], nr_workers: int
) -> None:
    ledger = Ledger(rollouts(count), SlotTable(fleet(driver=drivers)), nr_workers, 0)
    for worker in range(nr_workers):
        ledger.join(str(worker), 0.0)
    given_out = ledger.assign(0.0)
    at_once = min(count, sum(drivers))
    assert len(given_out) == at_once
    per_worker = [sum(lease.worker_id == str(w) for lease in given_out) for w in range(nr_workers)]
    assert max(per_worker) - min(per_worker) <= 1
    held = ledger.slots.held()
    for name, n in zip(held, drivers, strict=True):  # no instance is fuller than another need be
        assert held[name] / n <= at_once / sum(drivers) + 1 / n


def test_few_rollouts_are_shared_by_all_workers() -> None:
    ledger = Ledger(rollouts(4), SlotTable(fleet(driver=[8])), nr_workers=2, max_retries=0)
    ledger.join("0", 0.0)
    assert len(ledger.assign(0.0)) == 2
    ledger.join("1", 0.0)
    assert [lease.worker_id for lease in ledger.assign(0.0)] == ["1", "1"]


def test_idle_instances_take_turns() -> None:
    table = SlotTable(fleet(driver=[2, 2, 2]))
    names = []
    for _ in range(4):
        taken = table.take()
        assert taken is not None
        names.append(taken["driver"].name)
        table.give_back(taken)
    assert names == ["driver-0", "driver-1", "driver-2", "driver-0"]


def test_waiting_is_counted_anew_after_a_failure() -> None:
    ledger = Ledger(rollouts(1), SlotTable(fleet(driver=[1])), 1, max_retries=1)
    ledger.join("0", 5.0)
    (first,) = ledger.assign(7.0)
    ledger.report("0", first.lease_id, completed=False, now_s=20.0)
    (second,) = ledger.assign(21.0)
    assert (first.waited_s, second.waited_s) == (2.0, 1.0)


def test_what_cannot_be_is_refused() -> None:
    table = SlotTable(fleet(driver=[1]))
    with pytest.raises(ValueError, match="nr_workers"):
        Ledger(rollouts(1), table, nr_workers=0, max_retries=0)
    with pytest.raises(ValueError, match="same uuid"):
        Ledger(rollouts(1) * 2, table, nr_workers=1, max_retries=0)
    with pytest.raises(ValueError, match="no capacity"):
        SlotTable(fleet(driver=[]))
    with pytest.raises(ValueError, match="no capacity"):
        SlotTable(fleet(driver=[0]))
    ledger = Ledger(rollouts(1), table, nr_workers=1, max_retries=0)
    ledger.join("0", 0.0)
    with pytest.raises(ValueError, match="here already"):
        ledger.join("0", 0.0)
    (lease,) = ledger.assign(0.0)
    with pytest.raises(KeyError, match="no lease"):
        ledger.report("1", lease.lease_id, completed=True, now_s=0.0)
    with pytest.raises(ValueError, match="no slot"):
        SlotTable(fleet(driver=[1])).give_back(lease.instances)
