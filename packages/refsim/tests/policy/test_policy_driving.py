"""The policy drives roads that it was not trained on, from what it sees."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from rolltop_refsim.policy import Policy
from rolltop_refsim.training.evaluate import Evaluation, evaluate, held_out_roads
from rolltop_refsim.training.expert import expert_plan
from rolltop_refsim.training.rollout import World
from rolltop_refsim.world import make_scene

ROADS = held_out_roads(10)
STEPS = 80

_ROLLOUT = """
import hashlib
from rolltop_refsim.policy import Policy
from rolltop_refsim.training.rollout import World
from rolltop_refsim.world import make_scene
world, policy = World(), Policy.load()
drive = lambda image, ego: policy.act(image, ego.speed_m_s)
trace = world.rollout(make_scene("held-out-twice", 4), drive, 25)
print(hashlib.sha256(trace.poses.tobytes() + trace.final_state).hexdigest())
"""


@pytest.fixture(scope="module")
def seeing(world: World) -> Evaluation:
    return evaluate(world, Policy.load(), ROADS, steps=STEPS)


def test_the_policy_keeps_its_lane_on_new_roads(seeing: Evaluation) -> None:
    assert seeing.median_m < 1.0
    assert seeing.max_m < 1.8


def test_the_policy_needs_its_eyes(world: World, seeing: Evaluation) -> None:
    some = len(ROADS) // 2
    blind = evaluate(world, Policy.load(), ROADS[:some], steps=STEPS, black=True)
    assert blind.median_m >= 3 * np.median(seeing.worst_m[:some])


def test_the_policy_recovers_from_a_bad_start(world: World) -> None:
    from dataclasses import replace

    scene, policy = make_scene("held-out-start", 0), Policy.load()
    beside = replace(scene, seed=77, start=replace(scene.start, lateral_m=1.2, heading_rad=0.06))
    trace = world.rollout(beside, lambda image, ego: policy.act(image, ego.speed_m_s), 60)
    assert np.abs(trace.lateral_m[40:]).max() < 0.5


def test_the_expert_stays_in_the_middle(world: World) -> None:
    scene = make_scene("held-out-expert", 1)
    trace = world.rollout(scene, lambda _, ego: expert_plan(scene.road, ego), 80)
    assert np.abs(trace.lateral_m[30:]).max() < 0.2


def test_a_rollout_repeats_bit_by_bit_in_another_process() -> None:
    digests = set()
    for number in ("1", "2"):
        # Neither Python's salt nor the number of BLAS threads may matter.
        environment = {
            **os.environ,
            "PYTHONHASHSEED": number,
            "OPENBLAS_NUM_THREADS": number,
        }
        done = subprocess.run(
            [sys.executable, "-c", _ROLLOUT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def test_held_out_names_are_never_trained_on() -> None:
    assert all(not road.startswith("train-") for road in ROADS)
