"""Somebody's simulator: robots carry boxes through a warehouse, and a planner says where to.

It is plain asyncio, has no gRPC, and knows nothing of rolltop but the five marked lines.
``python warehouse.py [PORT]`` runs two workers' worth of rollouts in one process and prints, at
its end, a few of the series that it left.
"""

from __future__ import annotations

import asyncio
import random
import sys

from rolltop_instrument import StampedSlot, WorkerTelemetry, stamped_call

STEPS = 20
ROBOTS = 6


class Planner:
    """A service that plans one path at a time; others wait for their turn."""

    def __init__(self, seed: int) -> None:
        self._turn = StampedSlot(1)
        self._random = random.Random(seed)

    async def next_cell(self, cell: int) -> tuple[int, float, float]:
        """A neighbouring cell, and how long the request waited and was served."""
        with stamped_call() as stamps:
            async with self._turn:
                await asyncio.sleep(0.001)
                target = cell + self._random.choice((-1, 1))
            return target, stamps.queue_s, stamps.service_s


async def carry(telemetry: WorkerTelemetry, planner: Planner, robot: int) -> int:
    """One rollout: a robot moves for some steps. Robot 5 runs out of battery."""
    cell = 0
    async with telemetry.rollout():  # 2
        for step in range(STEPS):
            with telemetry.step():  # 3
                async with telemetry.call("planner", "next_cell") as call:  # 4
                    cell, queue_s, service_s = await planner.next_cell(cell)
                    call.server_times(queue_s=queue_s, service_s=service_s)  # 5
                if robot == ROBOTS - 1 and step == STEPS // 2:
                    raise RuntimeError("battery empty")
    return cell


async def simulate(port: int | None) -> str:
    """All robots at once; returns the page as it is at the end."""
    async with WorkerTelemetry.from_environment(port=port) as telemetry:  # 1
        planner = Planner(seed=7)
        robots = [carry(telemetry, planner, robot) for robot in range(ROBOTS)]
        ends = await asyncio.gather(*robots, return_exceptions=True)
        print(f"{sum(isinstance(end, int) for end in ends)} of {ROBOTS} robots arrived")
        return telemetry.render()


def main() -> None:
    """Run, with a page at the port given, or where a launcher expects one; show what was left."""
    page = asyncio.run(simulate(int(sys.argv[1]) if len(sys.argv) > 1 else None))
    shown = ("alpasim_rollouts_total", "alpasim_step_duration_seconds_count", "rolltop_rpc_calls")
    print("\n".join(line for line in page.splitlines() if line.startswith(shown)))


if __name__ == "__main__":
    main()
