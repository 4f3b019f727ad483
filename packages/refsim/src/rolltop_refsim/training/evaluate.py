"""Measures the policy: ``python -m rolltop_refsim.training.evaluate --roads 10``.

The roads are named ``held-out-...``, those of the training ``train-...``: by their names they
share neither shape nor look.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rolltop_refsim.policy.policy import Policy
from rolltop_refsim.training.progress import Progress
from rolltop_refsim.training.rollout import World
from rolltop_refsim.world.scene import make_scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rolltop_refsim.world.geometry import Plan, Pose


@dataclass(frozen=True)
class Evaluation:
    """Largest lateral errors over some roads.

    Attributes:
        roads: Names of the roads.
        worst_m: The largest lateral error on each, in metres.
    """

    roads: tuple[str, ...]
    worst_m: tuple[float, ...]

    @property
    def median_m(self) -> float:
        """Median over the roads."""
        return float(np.median(self.worst_m))

    @property
    def max_m(self) -> float:
        """Largest over the roads."""
        return max(self.worst_m)


def held_out_roads(count: int, group: str = "a") -> tuple[str, ...]:
    """Names roads that no training saw.

    Args:
        count: How many.
        group: Another text gives other roads.
    """
    return tuple(f"held-out-{group}-{index}" for index in range(count))


def evaluate(
    world: World,
    policy: Policy,
    roads: Sequence[str],
    *,
    steps: int = 200,
    black: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Drives roads and measures the largest lateral error on each.

    Args:
        world: The simulation.
        policy: The policy.
        roads: Names of the roads.
        steps: Steps of 0.1 s on each.
        black: Show the policy black images instead of the camera's.
        progress: Told how far it is.

    Returns:
        The errors.
    """

    def driver(image: NDArray[np.uint8], ego: Pose) -> Plan:
        return policy.act(np.zeros_like(image) if black else image, ego.speed_m_s)

    worst = []
    for index, road in enumerate(roads):
        worst.append(world.rollout(make_scene(road, index), driver, steps).worst_lateral_m)
        if progress:
            progress.advance("roads", index + 1, len(roads))
    return Evaluation(tuple(roads), tuple(worst))


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluates and prints a table and a line of JSON."""
    parser = argparse.ArgumentParser(prog="rolltop_refsim.training.evaluate", description=__doc__)
    parser.add_argument("--roads", type=int, default=10)
    parser.add_argument("--group", default="a", help="another text gives other held-out roads")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--weights", type=Path, default=None)
    parser.add_argument("--black", action="store_true", help="show black images")
    options = parser.parse_args(arguments)
    roads = held_out_roads(options.roads, options.group)
    world = World()
    try:
        with Progress(sys.stderr) as progress:
            result = evaluate(
                world,
                Policy.load(options.weights),
                roads,
                steps=options.steps,
                black=options.black,
                progress=progress,
            )
    finally:
        world.close()
    sys.stdout.write(table(result))
    sys.stdout.write(json.dumps(summary(result, options.steps, options.black)) + "\n")
    return 0


def table(result: Evaluation) -> str:
    """Formats an evaluation for people."""
    rows = zip(result.roads, result.worst_m, strict=True)
    lines = [f"{road:<24} {worst:8.2f} m" for road, worst in rows]
    lines.append(f"{'median':<24} {result.median_m:8.2f} m")
    lines.append(f"{'worst':<24} {result.max_m:8.2f} m")
    return "\n".join(lines) + "\n"


def summary(result: Evaluation, steps: int, black: bool) -> dict[str, object]:
    """Formats an evaluation for programs."""
    return {
        "roads": dict(zip(result.roads, result.worst_m, strict=True)),
        "median_m": result.median_m,
        "worst_m": result.max_m,
        "steps": steps,
        "black": black,
    }


if __name__ == "__main__":
    sys.exit(main())
