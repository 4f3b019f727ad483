from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import grpc
import pytest
from rolltop_instrument import WorkerTelemetry
from rolltop_refsim.faults import Fault
from rolltop_refsim.policy.policy import Policy
from rolltop_refsim.rpc import scheduler_pb2
from rolltop_refsim.rpc.channel import open_channel
from rolltop_refsim.rpc.scheduler_pb2_grpc import SchedulerStub
from rolltop_refsim.scheduler.slots import Instance
from rolltop_refsim.training.rollout import World
from rolltop_refsim.worker.agent import Agent, SchedulerLostError, Settings
from rolltop_refsim.worker.fleet import Fleet
from rolltop_refsim.world.scene import make_scene

STEPS = 5


def driving(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What must not depend on who drove where and when."""
    return {uuid: (r["quality"], r["steps"], r["seed"]) for uuid, r in results.items()}


def value(page: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    assert found, f"{series} is not on the page"
    return float(found[1])


async def test_rollouts_are_driven_the_same_wherever_they_run(harness: Any, tmp_path: Path) -> None:
    rollouts = harness.make_rollouts(4)
    async with harness.simulation(replicas=2, n_concurrent=2) as simulation:
        one = await simulation.run(tmp_path / "one", rollouts[:2], steps=STEPS)
        turned = {s: list(reversed(i)) for s, i in simulation.instances.items()}
        two = await simulation.run(
            tmp_path / "two", rollouts[::-1], steps=STEPS, nr_workers=2, instances=turned
        )
    assert (one.ledger.completed, two.ledger.completed) == (2, 4)
    alone, together = driving(one.results), driving(two.results)
    assert {uuid: together[uuid] for uuid in alone} == alone
    assert len({str(quality) for quality, _, _ in together.values()}) == 4
    assert {r["worker_id"] for r in two.results.values()} == {"0", "1"}
    for result in two.results.values():
        assert (result["status"], result["steps"], result["attempts"]) == ("completed", STEPS, 1)
        assert result["error"] is None
        assert result["duration_s"] > 0
        assert 2.0 < result["quality"]["progress_m"] < 6.0
        assert result["quality"]["max_lateral_error_m"] < 1.8
        assert result["quality"]["offroad"] is False
    page = one.pages[0]
    worker = 'worker_id="0"'
    assert value(page, f'alpasim_rollouts_total{{{worker},status="completed"}}') == 2
    assert value(page, f"alpasim_step_duration_seconds_count{{{worker}}}") == 2 * STEPS
    calls = "alpasim_rpc_duration_seconds_count"
    for service, method in [
        ("renderer", "batch_render_rgb"),
        ("driver", "submit_image_observation"),
        ("driver", "submit_egomotion_observation"),
        ("driver", "submit_route"),
        ("driver", "drive"),
        ("controller", "run_controller_and_vehicle"),
        ("trafficsim", "simulate"),
    ]:
        labels = f'{worker},service="{service}",method="{method}"'
        assert value(page, f"{calls}{{{labels}}}") == 2 * STEPS
    labels = f'{worker},service="physics",method="ground_intersection"'
    assert value(page, f"{calls}{{{labels}}}") == 2 * (STEPS + 1)
    assert value(page, f'rolltop_scene_cache_requests_total{{{worker},result="miss"}}') == 2
    assert value(page, f'alpasim_renderer_rollouts_started_total{{{worker},kind="fifo"}}') == 2
    assert value(page, f"alpasim_job_queue_depth{{{worker}}}") == 0
    assert sum("alpasim_job_queue_depth{" in page for page in two.pages) == 1


async def test_a_run_drives_as_the_loop_that_the_policy_was_trained_in(
    harness: Any, tmp_path: Path
) -> None:
    (rollout,) = harness.make_rollouts(1)
    world, policy = World(), Policy.load()
    trace = world.rollout(
        make_scene(rollout.scene, rollout.seed),
        lambda image, pose: policy.act(image, pose.speed_m_s),
        STEPS + 1,
    )
    world.close()
    async with harness.simulation() as simulation:
        outcome = await simulation.run(tmp_path, [rollout], steps=STEPS)
    quality = outcome.results[rollout.uuid]["quality"]
    assert quality["max_lateral_error_m"] == abs(trace.lateral_m[1:]).max()
    assert quality["mean_speed_m_s"] == pytest.approx(trace.poses[1:, 6].mean(), rel=1e-12)


async def test_what_fails_is_retried_then_abandoned_the_same_every_time(
    harness: Any, tmp_path: Path
) -> None:
    rollouts = harness.make_rollouts(6)
    fault = Fault(fail_ratio=0.25, fail_method="drive")
    steps = 3
    outcomes = []
    async with harness.simulation(n_concurrent=4, faults={"driver": fault}) as simulation:
        for nr_workers in (1, 2):
            outcome = await simulation.run(
                tmp_path / str(nr_workers),
                rollouts,
                steps=steps,
                nr_workers=nr_workers,
                max_retries=1,
            )
            outcomes.append(outcome)
    expected = {}
    for rollout in rollouts:
        failed = [
            any(
                fault.fails("drive", scene=rollout.scene, seed=rollout.seed, attempt=a, step=s)
                for s in range(steps)
            )
            for a in (1, 2)
        ]
        status = "abandoned" if all(failed) else "completed"
        expected[rollout.uuid] = (status, 2 if failed[0] else 1)
    assert len(set(expected.values())) == 3, "the seeds do not show all three ways to end"
    for outcome in outcomes:
        results = outcome.results
        assert {u: (r["status"], r["attempts"]) for u, r in results.items()} == expected
        for result in results.values():
            assert (result["error"] is None) == (result["status"] == "completed")
            assert (result["quality"] is None) == (result["status"] == "abandoned")
    abandoned = sum(status == "abandoned" for status, _ in expected.values())
    page = outcomes[0].pages[0]
    assert value(page, 'rolltop_rollouts_abandoned_total{worker_id="0"}') == abandoned
    failures = 'rolltop_rpc_failures_total{worker_id="0",service="driver",code="INTERNAL"}'
    assert value(page, failures) == outcomes[0].ledger.failed_attempts


async def test_services_that_may_be_skipped_may_be_skipped(harness: Any, tmp_path: Path) -> None:
    async with harness.simulation() as simulation:
        some = {s: simulation.instances[s] for s in ("renderer", "driver", "controller")}
        outcome = await simulation.run(tmp_path, harness.make_rollouts(1), steps=2, instances=some)
    assert outcome.ledger.completed == 1
    assert 'service="physics"' not in outcome.pages[0]


async def test_a_first_wave_rollout_is_counted_apart(harness: Any, tmp_path: Path) -> None:
    (rollout,) = harness.make_rollouts(1)
    first_wave = type(rollout)(rollout.uuid, rollout.scene, rollout.seed, first_wave=True)
    async with harness.simulation() as simulation:
        outcome = await simulation.run(tmp_path, [first_wave], steps=1)
    assert outcome.results[rollout.uuid]["first_wave"] is True
    page = outcome.pages[0]
    assert value(page, 'rolltop_first_wave_rollouts_total{worker_id="0"}') == 1
    assert value(page, 'alpasim_rollouts_total{worker_id="0",status="completed"}') == 0


async def test_no_rollouts_is_done_at_once(harness: Any, tmp_path: Path) -> None:
    async with harness.serving_scheduler(tmp_path, [], fleet()) as (scheduler, ledger):
        await harness.run_worker(scheduler.address, Settings("0", tmp_path, STEPS))
    assert ledger.finished


def fleet() -> dict[str, list[Instance]]:
    """Instances that nobody serves: for what does not get as far as calling them."""
    return {"driver": [Instance("driver-0", "127.0.0.1:1", 1)]}


def lease_of(channel: grpc.aio.Channel, worker_id: str) -> Any:
    stub = SchedulerStub(channel)  # type: ignore[no-untyped-call]
    return stub.lease(scheduler_pb2.LeaseRequest(worker_id=worker_id))


async def test_a_worker_that_is_lost_gives_its_rollout_back(harness: Any, tmp_path: Path) -> None:
    (rollout,) = harness.make_rollouts(1)
    async with harness.serving_scheduler(
        tmp_path, [rollout], fleet(), nr_workers=2, max_retries=1
    ) as (scheduler, ledger):
        for attempt in (1, 2):
            async with open_channel(scheduler.address) as channel:
                events = lease_of(channel, "0")
                event = await events.read()
                assert event.assignment.attempt == attempt
                again = lease_of(channel, "0")
                with pytest.raises(grpc.aio.AioRpcError, match="here already"):
                    await again.read()
            # The channel is closed, as when the process died.
            async with asyncio.timeout(30):
                while ledger.failed_attempts < attempt:  # noqa: ASYNC110 (no event tells)
                    await asyncio.sleep(0.01)
    assert ledger.abandoned == 1
    (result,) = harness.read_results(tmp_path).values()
    assert (result["status"], result["error"]) == ("abandoned", "worker 0 was lost")


async def test_a_report_that_nobody_waits_for_is_refused(harness: Any, tmp_path: Path) -> None:
    async with (
        harness.serving_scheduler(tmp_path, harness.make_rollouts(1), fleet()) as (scheduler, _),
        open_channel(scheduler.address) as channel,
    ):
        report = scheduler_pb2.ReportRequest(worker_id="0", lease_id=7, completed=True)
        stub = SchedulerStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError, match="holds no lease 7"):
            await stub.report(report)


async def test_a_worker_does_not_outlive_its_scheduler(harness: Any, tmp_path: Path) -> None:
    rollouts = harness.make_rollouts(1)
    async with WorkerTelemetry(worker_id="0") as telemetry:
        async with harness.serving_scheduler(tmp_path, rollouts, fleet(), nr_workers=2) as (
            scheduler,
            ledger,
        ):
            channel = open_channel(scheduler.address)
            other = lease_of(channel, "other")
            await other.read()  # the only rollout is taken: our worker has to wait
            settings = Settings("0", tmp_path, STEPS)
            stub = SchedulerStub(channel)  # type: ignore[no-untyped-call]
            agent = Agent(settings, stub, Fleet(telemetry), telemetry)
            work = asyncio.create_task(agent.run())
            async with asyncio.timeout(30):
                while "0" not in ledger.workers:  # noqa: ASYNC110 (no event tells)
                    await asyncio.sleep(0.01)
        with pytest.raises(SchedulerLostError, match="scheduler was lost"):
            await work
        await channel.close()
