"""Trains the policy: ``python -m rolltop_refsim.training.train --out weights.npz``.

First the head is fitted to images from random places in and beside the lane, labelled from the map.
Then, for some rounds (DAgger: Ross, Gordon and Bagnell, 2011), the policy drives, is pushed off its
path now and then, and what it sees is added with the label of the expert.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rolltop_refsim.policy.features import Encoder
from rolltop_refsim.policy.policy import DISTANCES_M, Policy
from rolltop_refsim.training.expert import lane_ahead
from rolltop_refsim.training.progress import Progress
from rolltop_refsim.training.rollout import World
from rolltop_refsim.world.geometry import FloatArray, Plan, Pose
from rolltop_refsim.world.scene import Scene, make_scene
from rolltop_refsim.world.seeds import stream
from rolltop_refsim.world.traffic import Traffic, initial_traffic, simulate, traffic_poses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_PUSH_STEPS = 8
_PUSH_EVERY = 30


@dataclass(frozen=True)
class Recipe:
    """How much of what is trained on.

    Attributes:
        roads: Roads of the first round.
        images: Images per road of the first round.
        rounds: Rounds in which the policy drives.
        drives: Roads per such round.
        steps: Steps per such drive.
        ridge: Strength of the ridge penalty, relative to the features' mean variance.
        seed: Seed of everything random.
    """

    roads: int = 120
    images: int = 90
    rounds: int = 2
    drives: int = 16
    steps: int = 120
    ridge: float = 0.003
    seed: int = 0


@dataclass
class Moments:
    """Sums that a ridge regression needs, so that no image has to be kept."""

    features: int
    count: int = 0
    gram: FloatArray = field(init=False)
    cross: FloatArray = field(init=False)
    feature_sum: FloatArray = field(init=False)
    label_sum: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Starts at zero."""
        labels = len(DISTANCES_M)
        self.gram = np.zeros((self.features, self.features))
        self.cross = np.zeros((self.features, labels))
        self.feature_sum = np.zeros(self.features)
        self.label_sum = np.zeros(labels)

    def add(self, features: Sequence[NDArray[np.float32]], labels: Sequence[FloatArray]) -> None:
        """Adds a batch of images' features and their labels."""
        phi, target = np.array(features, dtype=np.float32), np.array(labels)
        self.gram += phi.T @ phi
        self.cross += phi.T.astype(np.float64) @ target
        self.feature_sum += phi.sum(axis=0, dtype=np.float64)
        self.label_sum += target.sum(axis=0)
        self.count += len(phi)

    def solve(self, encoder: Encoder, ridge: float) -> Policy:
        """Fits the head to what was added."""
        mean, label_mean = self.feature_sum / self.count, self.label_sum / self.count
        covariance = self.gram / self.count - np.outer(mean, mean)
        cross = self.cross / self.count - np.outer(mean, label_mean)
        covariance[np.diag_indices_from(covariance)] += (
            ridge * float(covariance.trace()) / len(mean)
        )
        weights = np.linalg.solve(covariance, cross)
        offset = label_mean - mean @ weights
        return Policy(encoder, weights.astype(np.float32), offset.astype(np.float32))


def train(recipe: Recipe, encoder: Encoder, progress: Progress) -> Policy:
    """Trains a policy.

    Args:
        recipe: How much of what.
        encoder: The features.
        progress: Told how far it is.

    Returns:
        The policy; the same for the same recipe and encoder on the same machine.
    """
    world = World()
    moments = Moments(encoder.length)
    try:
        for road in range(recipe.roads):
            scene = make_scene(f"train-{recipe.seed}-{road}", road)
            moments.add(*_look_around(world, scene, encoder, recipe.images))
            progress.advance("images", road + 1, recipe.roads)
        policy = moments.solve(encoder, recipe.ridge)
        for index in range(recipe.rounds * recipe.drives):
            scene = make_scene(f"train-{recipe.seed}-drive-{index}", index)
            moments.add(*_drive(world, scene, policy, recipe.steps))
            progress.advance("drives", index + 1, recipe.rounds * recipe.drives)
            if (index + 1) % recipe.drives == 0:
                policy = moments.solve(encoder, recipe.ridge)
        return policy
    finally:
        world.close()


def _look_around(
    world: World, scene: Scene, encoder: Encoder, images: int
) -> tuple[list[NDArray[np.float32]], list[FloatArray]]:
    """Looks from random places in and beside the lane."""
    rng = stream("look", scene.name, scene.seed)
    features, labels = [], []
    traffic = initial_traffic(scene)
    for _ in range(images):
        s = float(rng.uniform(0, scene.road.route_length_m))
        lateral = float(np.clip(rng.normal(0, 0.8), -2.2, 2.2))
        x, y, heading = scene.road.at(s, lateral)[0]
        proposed = Pose(float(x), float(y), yaw=float(heading + rng.normal(0, 0.09)))
        moved = Traffic(
            s=traffic.s + s - rng.uniform(-10, 20),
            lateral=traffic.lateral,
            speed=traffic.speed,
            wanted=traffic.wanted,
        )
        cars = traffic_poses(scene, simulate(scene, moved, proposed, float(rng.uniform(0.1, 0.5))))
        ego, *others = world.probe.ground_intersection(scene, [proposed, *cars])
        features.append(encoder.encode(world.camera.render(scene, ego, others).image))
        labels.append(lane_ahead(scene.road, ego))
    return features, labels


def _drive(
    world: World, scene: Scene, policy: Policy, steps: int
) -> tuple[list[NDArray[np.float32]], list[FloatArray]]:
    """Lets the policy drive, pushes it off its path, and notes what the expert would see."""
    rng = stream("drive", scene.name, scene.seed)
    pushes = rng.normal(0, 0.7, steps // _PUSH_EVERY + 1)
    features: list[NDArray[np.float32]] = []
    labels: list[FloatArray] = []

    def driver(image: NDArray[np.uint8], ego: Pose) -> Plan:
        seen = policy.encoder.encode(image)
        step = len(features)
        features.append(seen)
        labels.append(lane_ahead(scene.road, ego))
        left = policy.read(seen)
        if step % _PUSH_EVERY < _PUSH_STEPS:
            left = left + pushes[step // _PUSH_EVERY]
        return Plan(
            np.column_stack([DISTANCES_M, left]), policy.act(image, ego.speed_m_s).target_speed_m_s
        )

    world.rollout(scene, driver, steps)
    return features, labels


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains and writes the weights."""
    defaults = Recipe()
    parser = argparse.ArgumentParser(prog="rolltop_refsim.training.train", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="weights file to write")
    for name in ("roads", "images", "rounds", "drives", "steps", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    parser.add_argument("--filters", type=int, default=Encoder().filters)
    parser.add_argument("--ridge", type=float, default=defaults.ridge)
    options = vars(parser.parse_args(arguments))
    out, encoder = options.pop("out"), Encoder(filters=options.pop("filters"))
    began = time.monotonic()
    with Progress(sys.stderr) as progress:
        policy = train(Recipe(**options), encoder, progress)
    policy.save(out)
    sys.stdout.write(f"{out}: {out.stat().st_size} bytes, {time.monotonic() - began:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
