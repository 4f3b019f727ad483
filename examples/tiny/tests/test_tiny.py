"""Services and workers of the tiny simulator, started as a launcher would."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rolltop_instrument import WorkerTelemetry
from rolltop_tiny import world
from rolltop_tiny.service import CRASHED, Instance
from rolltop_tiny.worker import Worker, slots_of

Faults = dict[str, dict[str, Any]]


@asynccontextmanager
async def services(
    faults: Faults | None = None, *, n_concurrent: int = 2
) -> AsyncIterator[tuple[dict[str, Any], dict[str, Instance]]]:
    """One instance of each service in this process; yields the endpoints file's content."""
    endpoints, instances = {}, {}
    async with AsyncExitStack() as stack:
        for service in world.METHODS:
            instance = Instance(service, 0.0, (faults or {}).get(service, {}))
            server = await asyncio.start_server(instance.serve, "127.0.0.1", 0)
            await stack.enter_async_context(server)
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            named = {"instance": f"{service}-0", "address": address}
            endpoints[service] = [{**named, "n_concurrent": n_concurrent}]
            instances[service] = instance
        yield endpoints, instances


def arguments(folder: Path, endpoints: dict[str, Any], **changes: Any) -> argparse.Namespace:
    """What a worker is started with, for six rollouts of four steps."""
    rollouts = [
        {"uuid": f"u{n}", "scene": f"road-{n % 3}", "seed": n, "first_wave": False}
        for n in range(6)
    ]
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rollouts))
    (folder / "endpoints.json").write_text(json.dumps(endpoints))
    said = {
        "worker_id": 0,
        "nr_workers": 1,
        "steps": 4,
        "max_retries": 1,
        "rollouts_file": folder / "rollouts.jsonl",
        "endpoints_file": folder / "endpoints.json",
        "run_dir": folder,
    }
    return argparse.Namespace(**{**said, **changes})


def results(folder: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in folder.glob("rollouts/*/*/result.json")]
    return {result["uuid"]: result for result in found}


async def driven(folder: Path, faults: Faults | None = None, **changes: Any) -> str:
    """Drive with one worker; return its page."""
    async with services(faults) as (endpoints, _), WorkerTelemetry() as telemetry:
        await Worker(arguments(folder, endpoints, **changes), telemetry).run()
        return telemetry.render()


async def test_every_rollout_leaves_a_result_by_the_contract(tmp_path: Path) -> None:
    await driven(tmp_path)
    found = results(tmp_path)
    assert found.keys() == {f"u{n}" for n in range(6)}
    first = found["u0"]
    assert first.pop("duration_s") > 0
    assert 0 < first.pop("quality")["largest_lateral_error_m"] < 1
    assert first == {
        "status": "completed",
        "uuid": "u0",
        "scene": "road-0",
        "seed": 0,
        "steps": 4,
        "attempts": 1,
        "first_wave": False,
        "worker_id": "0",
        "error": None,
    }


async def test_the_same_seed_gives_the_same_rollout(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        await driven(tmp_path / name)
    a, b = (results(tmp_path / name) for name in ("a", "b"))
    assert {u: r["quality"] for u, r in a.items()} == {u: r["quality"] for u, r in b.items()}


async def test_what_the_worker_measures(tmp_path: Path) -> None:
    page = await driven(tmp_path)
    lines = set(page.splitlines())
    assert 'alpasim_rollouts_total{worker_id="0",status="completed"} 6' in lines
    assert 'alpasim_step_duration_seconds_count{worker_id="0"} 24' in lines
    for service in world.METHODS:
        labels = f'worker_id="0",service="{service}"'
        called = f'rolltop_rpc_calls_total{{{labels},endpoint="{service}-0"}} 24'
        assert called in lines
        assert (
            f'rolltop_rpc_server_service_seconds_count{{worker_id="0",service="{service}"}}' in page
        )


async def test_a_rollout_that_keeps_failing_is_abandoned(tmp_path: Path) -> None:
    page = await driven(tmp_path, {"driver": {"fail_ratio": 1.0}})
    found = results(tmp_path)
    assert {r["status"] for r in found.values()} == {"abandoned"}
    assert {r["attempts"] for r in found.values()} == {2}
    assert {r["steps"] for r in found.values()} == {0}
    assert found["u0"]["quality"] is None
    assert found["u0"]["error"] == "driver-0: drive failed on request"
    assert 'rolltop_rollouts_abandoned_total{worker_id="0"} 6' in page
    assert 'alpasim_rollouts_total{worker_id="0",status="failed"} 12' in page


async def test_another_attempt_may_succeed_and_fails_alike_next_time(tmp_path: Path) -> None:
    attempts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        await driven(tmp_path / name, {"driver": {"fail_ratio": 0.1}}, max_retries=9)
        attempts.append({u: r["attempts"] for u, r in results(tmp_path / name).items()})
    assert attempts[0] == attempts[1]
    assert max(attempts[0].values()) > 1
    assert {r["status"] for r in results(tmp_path / "a").values()} == {"completed"}


async def test_a_fault_of_another_method_hurts_nobody(tmp_path: Path) -> None:
    await driven(tmp_path, {"driver": {"fail_ratio": 1.0, "fail_method": "start"}})
    assert {r["status"] for r in results(tmp_path).values()} == {"completed"}


async def test_a_service_that_is_not_there_costs_its_rollouts(tmp_path: Path) -> None:
    async with services() as (endpoints, _), WorkerTelemetry() as telemetry:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            endpoints["driver"][0]["address"] = f"127.0.0.1:{closed.getsockname()[1]}"
            await Worker(arguments(tmp_path, endpoints), telemetry).run()
    assert {r["status"] for r in results(tmp_path).values()} == {"abandoned"}


async def test_workers_share_the_rollouts(tmp_path: Path) -> None:
    async with services(n_concurrent=4) as (endpoints, _), WorkerTelemetry() as telemetry:
        for worker_id in range(3):
            said = arguments(tmp_path, endpoints, worker_id=worker_id, nr_workers=3)
            await Worker(said, telemetry).run()
    workers = {u: r["worker_id"] for u, r in results(tmp_path).items()}
    assert workers == {f"u{n}": str(n % 3) for n in range(6)}


async def test_a_worker_without_a_slot_leaves_the_rollouts_to_the_others(tmp_path: Path) -> None:
    async with services(n_concurrent=1) as (endpoints, _), WorkerTelemetry() as telemetry:
        for worker_id in range(3):
            said = arguments(tmp_path, endpoints, worker_id=worker_id, nr_workers=3)
            await Worker(said, telemetry).run()
    assert {r["worker_id"] for r in results(tmp_path).values()} == {"0"}
    assert len(results(tmp_path)) == 6


async def test_calls_are_served_in_turn(tmp_path: Path) -> None:
    instance = Instance("driver", 10.0, {})
    request = {"state": {"image": [0.0, 0.0]}, "which": "x"}
    replies = await asyncio.gather(*(instance.answer(request) for _ in range(3)))
    waits = sorted(reply["queue_s"] for reply in replies)
    assert waits[0] < waits[1] < waits[2]
    assert all(reply["service_s"] > 0 for reply in replies)


async def test_a_crash_comes_after_as_many_calls_as_asked_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = {"physics": {"crash_after": 5}}
    async with services(faults) as (endpoints, instances), WorkerTelemetry() as telemetry:
        await Worker(arguments(tmp_path, endpoints), telemetry).run()
    assert await instances["physics"].ended == CRASHED
    assert "sim.faults.physics.crash_after=5 ends this service\n" in capsys.readouterr().out
    assert not instances["driver"].ended.done()


def test_slots_take_turns_among_instances_and_pass_over_skipped_services() -> None:
    def instance(name: str, n: int) -> dict[str, Any]:
        return {"instance": name, "n_concurrent": n}

    endpoints = {
        "renderer": [instance("r0", 2), instance("r1", 2)],
        "driver": [instance("d0", 3)],
    }
    slots = slots_of(endpoints)
    names = [tuple(place["instance"] for place in slot.values()) for slot in slots]
    assert names == [("r0", "d0"), ("r1", "d0"), ("r0", "d0")]


async def start(module: str, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"rolltop_tiny.{module}",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def words_of(said: argparse.Namespace) -> list[str]:
    """The command line of a worker's arguments."""
    return [w for k, v in vars(said).items() for w in (f"--{k.replace('_', '-')}", str(v))]


@pytest.fixture
def service_words(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "faults.json").write_text("{}")
    faults = str(tmp_path / "faults.json")
    return ("--instance", "renderer-0", "--faults-file", faults, "--port")


async def test_a_service_ends_on_sigterm(service_words: tuple[str, ...]) -> None:
    process = await start("service", *service_words, "0")
    assert process.stdout is not None
    assert b"renderer-0 serves" in await process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_a_taken_port_is_said_in_one_line(service_words: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = await start("service", *service_words, str(taken.getsockname()[1]))
        output, _ = await process.communicate()
    assert process.returncode == 1
    assert b"address already in use" in output
    assert output.count(b"\n") == 1


async def test_a_worker_process_ends_with_its_share(tmp_path: Path) -> None:
    async with services() as (endpoints, _):
        process = await start("worker", *words_of(arguments(tmp_path, endpoints)))
        output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"")
    assert len(results(tmp_path)) == 6


async def test_a_worker_process_ends_on_sigterm(tmp_path: Path) -> None:
    called = asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        place = {"instance": "renderer-0", "address": address, "n_concurrent": 1}
        process = await start("worker", *words_of(arguments(tmp_path, {"renderer": [place]})))
        await called.wait()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 128 + signal.SIGTERM
