"""A worker: ``python -m rolltop_tiny.worker --worker-id 0 ...`` drives its share of the rollouts.

There is no scheduler: worker i of n takes every n-th line of the rollouts file from line i on, and
every n-th slot of the services. What rolltop measures from inside, it measures by the five lines
that name `telemetry`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from rolltop_instrument import WorkerTelemetry

from rolltop_tiny import world

PAUSE_S = 0.1
"""Before another attempt, so that a service that is gone is not asked in a tight loop."""


class CallError(Exception):
    """A service answered that it failed."""


class Connection:
    """A connection to one instance, opened when it is first used. One call at a time."""

    def __init__(self, service: str, endpoint: dict[str, Any]) -> None:
        self.service = service
        self.endpoint = endpoint
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(
        self, telemetry: WorkerTelemetry, state: world.State, which: str
    ) -> dict[str, Any]:
        """Return what the service changes of the state.

        Raises:
            CallError: The service failed.
            ConnectionError: It is not there.
        """
        method, instance = world.METHODS[self.service].__name__, self.endpoint["instance"]
        async with telemetry.call(self.service, method, endpoint=instance) as call:
            reply = await self.ask({"state": state, "which": which})
            call.server_times(queue_s=reply["queue_s"], service_s=reply["service_s"])
            if "error" in reply:
                raise CallError(f"{instance}: {reply['error']}")
        return dict(reply["value"])

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one line and read one."""
        if self.streams is None:
            host, _, port = self.endpoint["address"].rpartition(":")
            self.streams = await asyncio.open_connection(host, int(port))
        reader, writer = self.streams
        writer.write(json.dumps(request).encode() + b"\n")
        line = await reader.readline()
        if not line:
            self.close()
            raise ConnectionError(f"{self.endpoint['instance']} closed the connection")
        return dict(json.loads(line))

    def close(self) -> None:
        """Close it; the next call opens it again."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


class Worker:
    """Drives its rollouts, as many at once as it has slots."""

    def __init__(self, arguments: argparse.Namespace, telemetry: WorkerTelemetry) -> None:
        self.arguments = arguments
        self.telemetry = telemetry

    async def run(self) -> None:
        """Return when every rollout of this worker's share has ended."""
        arguments = self.arguments
        slots = slots_of(json.loads(arguments.endpoints_file.read_text()))
        busy = min(arguments.nr_workers, len(slots))
        if arguments.worker_id >= busy:
            return
        lines = arguments.rollouts_file.read_text().splitlines()[arguments.worker_id :: busy]
        share = iter([json.loads(line) for line in lines])
        async with asyncio.TaskGroup() as group:
            for slot in slots[arguments.worker_id :: busy]:
                group.create_task(self.drive_all(share, slot))

    async def drive_all(
        self, share: Iterator[dict[str, Any]], slot: dict[str, dict[str, Any]]
    ) -> None:
        """Drive one rollout after the other in a slot, which holds one place in every service."""
        connections = [Connection(service, endpoint) for service, endpoint in slot.items()]
        for rollout in share:
            await self.drive_with_retries(rollout, connections)
        for connection in connections:
            connection.close()

    async def drive_with_retries(
        self, rollout: dict[str, Any], connections: list[Connection]
    ) -> None:
        """Drive one rollout, again if it fails, and write its result."""
        last = self.arguments.max_retries + 1
        for attempt in range(1, last + 1):
            began, state = perf_counter(), world.start()
            quality: dict[str, float] | None = None
            error: str | None = None
            try:
                async with self.telemetry.rollout():
                    quality = await self.drive(rollout, state, attempt, connections)
            except (CallError, OSError) as problem:
                error = str(problem)
            if quality is not None or attempt == last:
                break
            await asyncio.sleep(PAUSE_S)
        if quality is None:
            self.telemetry.rollout_abandoned()
        write_result(
            self.arguments.run_dir / "rollouts" / rollout["scene"] / rollout["uuid"],
            {
                **rollout,
                "status": "abandoned" if quality is None else "completed",
                "steps": state["steps"],
                "attempts": attempt,
                "duration_s": perf_counter() - began,
                "worker_id": str(self.arguments.worker_id),
                "quality": quality,
                "error": error,
            },
        )

    async def drive(
        self,
        rollout: dict[str, Any],
        state: world.State,
        attempt: int,
        connections: list[Connection],
    ) -> dict[str, float]:
        """Drive all steps, which changes ``state``; return how well the car kept its lane."""
        self.telemetry.renderer_started()  # its slot is its own: it never waits for one
        largest = 0.0
        bends = world.bends(rollout["seed"])
        for step in range(self.arguments.steps):
            with self.telemetry.step():
                state |= {"steps": step, "bend": next(bends)}
                for connection in connections:
                    which = f"{rollout['scene']} {rollout['seed']} {attempt} {step}"
                    state |= await connection.call(self.telemetry, state, which)
            state["steps"] += 1
            largest = max(largest, abs(state["offset_m"]))
        return {"largest_lateral_error_m": largest}


def slots_of(endpoints: dict[str, list[dict[str, Any]]]) -> list[dict[str, dict[str, Any]]]:
    """Return the slots of the run: each holds one place in one instance of every service.

    There are as many as the scarcest service has places. Instances take turns, so that few
    rollouts are spread over all of them. A service that is skipped is absent.
    """
    places = [
        [
            (service, instance)
            for turn in range(max(instance["n_concurrent"] for instance in instances))
            for instance in instances
            if turn < instance["n_concurrent"]
        ]
        for service in world.METHODS
        if (instances := endpoints.get(service))
    ]
    return [dict(slot) for slot in zip(*places, strict=False)]


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write ``result.json`` whole or not at all: the launcher reads it while the run goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / ".result.json"
    unfinished.write_text(json.dumps(result))
    unfinished.replace(folder / "result.json")


async def run(arguments: argparse.Namespace) -> None:
    """Drive, with the page open; at the end it stays open until the last values were read."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with WorkerTelemetry.from_environment() as telemetry:
        await Worker(arguments, telemetry).run()


def main() -> int:
    """Return 0 when its share is done, 143 on SIGTERM."""
    parser = argparse.ArgumentParser()
    for name in ("worker-id", "nr-workers", "steps", "max-retries"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("rollouts-file", "endpoints-file", "run-dir"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    try:
        asyncio.run(run(parser.parse_args()))
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    sys.exit(main())
