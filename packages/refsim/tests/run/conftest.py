"""A whole simulation in one process: services, scheduler and workers, over real gRPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from rolltop_instrument import WorkerTelemetry
from rolltop_refsim.faults import Fault
from rolltop_refsim.rpc.channel import open_channel
from rolltop_refsim.rpc.scheduler_pb2_grpc import SchedulerStub, add_SchedulerServicer_to_server
from rolltop_refsim.rpc.serving import Stop, serve
from rolltop_refsim.scheduler.ledger import Ledger, Rollout
from rolltop_refsim.scheduler.service import SchedulerService
from rolltop_refsim.scheduler.slots import Instance, SlotTable
from rolltop_refsim.services.hosting import Host, Options
from rolltop_refsim.worker.agent import Agent, Settings
from rolltop_refsim.worker.fleet import Fleet

SERVICES = ("renderer", "driver", "controller", "physics", "trafficsim")


@dataclass
class Served:
    """A server in this process."""

    address: str
    stop: Stop
    task: asyncio.Task[int]


@asynccontextmanager
async def serving(run: Any) -> AsyncIterator[Served]:
    """Run ``run(stop, started)`` as a task until the block ends."""
    stop = Stop()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(stop, port.set_result))
    await asyncio.wait([task, port], return_when=asyncio.FIRST_COMPLETED)
    if not port.done():
        port.cancel()
        await task
    try:
        yield Served(f"127.0.0.1:{await port}", stop, task)
    finally:
        stop.request()
        await task


def hosting(service: str, *, instance: str | None = None, **options: Any) -> Any:
    """Serve one instance of a service."""
    given = Options(service=service, port=0, instance=instance or f"{service}-0", **options)
    return serving(lambda stop, started: Host(given, stop).run(started))


@asynccontextmanager
async def serving_scheduler(
    run_dir: Path,
    rollouts: Sequence[Rollout],
    instances: dict[str, list[Instance]],
    *,
    nr_workers: int = 1,
    max_retries: int = 2,
) -> AsyncIterator[tuple[Served, Ledger]]:
    """Serve a scheduler over ``rollouts``."""
    ledger = Ledger(rollouts, SlotTable(instances), nr_workers, max_retries)
    service = SchedulerService(ledger, run_dir, clock=lambda: 0.0)

    def run(stop: Stop, started: Any) -> Any:
        def register(server: grpc.aio.Server) -> None:
            add_SchedulerServicer_to_server(service, server)  # type: ignore[no-untyped-call]

        return serve(0, register, stop=stop, started=started, grace_s=0.1)

    async with serving(run) as served:
        yield served, ledger
    await service.close()


@dataclass
class RunOutcome:
    """What a run left behind."""

    ledger: Ledger
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)
    """The workers' pages at their end."""


@dataclass
class Simulation:
    """Instances of all services, kept over several runs."""

    instances: dict[str, list[Instance]]

    async def run(
        self,
        run_dir: Path,
        rollouts: Sequence[Rollout],
        *,
        steps: int,
        nr_workers: int = 1,
        max_retries: int = 2,
        instances: dict[str, list[Instance]] | None = None,
    ) -> RunOutcome:
        """Run all rollouts to their end."""
        async with serving_scheduler(
            run_dir,
            rollouts,
            instances or self.instances,
            nr_workers=nr_workers,
            max_retries=max_retries,
        ) as (scheduler, ledger):
            pages = await asyncio.gather(
                *(
                    run_worker(scheduler.address, Settings(str(i), run_dir, steps))
                    for i in range(nr_workers)
                )
            )
        return RunOutcome(ledger, read_results(run_dir), pages)


async def run_worker(scheduler: str, settings: Settings) -> str:
    """Run one worker to its end; return its page."""
    async with (
        WorkerTelemetry(worker_id=settings.worker_id) as telemetry,
        open_channel(scheduler) as channel,
    ):
        fleet = Fleet(telemetry)
        try:
            stub = SchedulerStub(channel)  # type: ignore[no-untyped-call]
            await Agent(settings, stub, fleet, telemetry).run()
        finally:
            await fleet.close()
        return telemetry.render()


@asynccontextmanager
async def simulation(
    *, replicas: int = 1, n_concurrent: int = 2, faults: dict[str, Fault] | None = None
) -> AsyncIterator[Simulation]:
    """Serve all services."""
    instances: dict[str, list[Instance]] = {}
    async with AsyncExitStack() as stack:
        for service in SERVICES:
            for index in range(replicas):
                name = f"{service}-{index}"
                served = await stack.enter_async_context(
                    hosting(
                        service,
                        instance=name,
                        n_concurrent=n_concurrent,
                        cache_size=n_concurrent + 1,
                        fault=(faults or {}).get(service, Fault()),
                    )
                )
                instances.setdefault(service, []).append(
                    Instance(name, served.address, n_concurrent)
                )
        yield Simulation(instances)


def read_results(run_dir: Path) -> dict[str, dict[str, Any]]:
    """Return every ``result.json``, by uuid."""
    paths = run_dir.glob("rollouts/*/*/result.json")
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


def make_rollouts(count: int, first: int = 0) -> list[Rollout]:
    """Make rollouts over as many scenes."""
    return [
        Rollout(f"uuid-{i}", f"road-{i:04d}", seed=100 + i) for i in range(first, first + count)
    ]


@pytest.fixture
def harness() -> Any:
    """Everything above, for tests that cannot import from beside them."""
    import types

    return types.SimpleNamespace(
        hosting=hosting,
        serving=serving,
        serving_scheduler=serving_scheduler,
        simulation=simulation,
        run_worker=run_worker,
        read_results=read_results,
        make_rollouts=make_rollouts,
    )
