"""The wait at the end: real pages, and a clock of our own where time is the point."""

from __future__ import annotations

import asyncio
import urllib.request
from time import monotonic
from typing import Any

import pytest
from rolltop_instrument import WorkerTelemetry
from rolltop_instrument._readers import Readers

PATIENCE = {"own": 2.0, "central": 20.0}


async def lingering(readers: Readers, *, expect_own: bool = False) -> asyncio.Task[None]:
    task = asyncio.create_task(readers.linger(PATIENCE, expect_own=expect_own))
    await asyncio.sleep(0.01)
    return task


async def test_nobody_has_read_and_nobody_is_expected() -> None:
    task = await lingering(Readers())
    assert task.done()


async def test_a_reader_who_has_read_is_waited_for() -> None:
    now = [100.0]
    readers = Readers(lambda: now[0])
    readers.comes("own")
    task = await lingering(readers)
    assert not task.done()
    readers.has_read("own", 100.0)  # began before the end: it may lack the last values
    await asyncio.sleep(0.01)
    assert not task.done()
    readers.has_read("own", 100.1)
    await asyncio.wait_for(task, 1)
    assert readers.on_read is None


async def test_each_reader_is_waited_for() -> None:
    now = [100.0]
    readers = Readers(lambda: now[0])
    readers.comes("own")
    readers.comes("central")
    task = await lingering(readers)
    readers.has_read("own", 100.1)
    await asyncio.sleep(0.01)
    assert not task.done()
    readers.has_read("central", 100.2)
    await asyncio.wait_for(task, 1)


async def test_the_runs_own_reader_is_expected_even_if_it_has_not_come_yet() -> None:
    readers = Readers()
    task = await lingering(readers, expect_own=True)
    assert not task.done()
    readers.has_read("own", readers.clock() + 1)
    await asyncio.wait_for(task, 1)


async def test_patience_ends() -> None:
    readers = Readers()
    readers.has_read("own", readers.comes("own"))
    await asyncio.wait_for(readers.linger({"own": 0.02, "central": 0.02}, expect_own=True), 5)


def fetch(port: int | None, query: str = "") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics{query}") as answer:
        return answer.read().decode()


@pytest.mark.parametrize(("run", "query"), [("u", "?run=u"), ("", ""), ("", "?from=central")])
async def test_the_last_values_are_read_before_a_worker_leaves(
    run: str, query: str, until: Any
) -> None:
    telemetry = WorkerTelemetry(run_uuid=run, port=0, scrape_interval_s=30)
    pages: list[str] = []

    async def scrape_late() -> None:
        await until(lambda: telemetry._frozen)
        pages.append(await asyncio.to_thread(fetch, telemetry.page_port, query))

    async with asyncio.TaskGroup() as group, telemetry:
        await asyncio.to_thread(fetch, telemetry.page_port, query)
        group.create_task(scrape_late())
        async with telemetry.rollout():
            pass
    assert 'alpasim_rollouts_total{worker_id="0",status="completed"} 1' in pages[0]
    assert telemetry.page_port is None


async def test_without_a_run_and_a_reader_a_worker_leaves_at_once() -> None:
    began = monotonic()
    async with WorkerTelemetry(port=0, scrape_interval_s=60):
        pass
    assert monotonic() - began < 60


async def test_a_cancelled_worker_still_gives_its_last_values_and_can_be_hurried(
    until: Any,
) -> None:
    telemetry = WorkerTelemetry(run_uuid="u", port=0, scrape_interval_s=60)

    async def work() -> None:
        async with telemetry:
            await asyncio.sleep(3600)

    task = asyncio.create_task(work())
    await until(lambda: telemetry.page_port is not None)
    port = telemetry.page_port
    task.cancel()
    await asyncio.sleep(0.02)
    assert not task.done()
    assert "alpasim_rollouts_total" in await asyncio.to_thread(fetch, port)
    with pytest.raises(asyncio.CancelledError):
        await task

    impatient = asyncio.create_task(_enter(WorkerTelemetry(run_uuid="u", port=0)))
    await asyncio.sleep(0.02)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def _enter(telemetry: WorkerTelemetry) -> None:
    async with telemetry:
        pass
