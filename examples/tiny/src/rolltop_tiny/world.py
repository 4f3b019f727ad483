"""A car that keeps its lane on a winding road: each service is one function of the state.

A function takes the rollout's state and returns what it changes. All randomness comes from the
rollout's seed, so that the same seed drives the same rollout, whoever serves it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

State = dict[str, Any]
BEND = 0.15
"""How far the road may turn within a step, in radians."""


def batch_render_rgb(state: State) -> State:
    """Show where the car is on the road; two numbers do for an image."""
    return {"image": [state["offset_m"], state["heading"]]}


def drive(state: State) -> State:
    """Steer back to the middle of the lane."""
    offset_m, heading = state["image"]
    return {"steering": -0.4 * offset_m - 1.2 * heading}


def run_controller_and_vehicle(state: State) -> State:
    """Move the car by one step."""
    heading = state["heading"] + 0.5 * state["steering"] + state["bend"]
    return {"heading": heading, "offset_m": state["offset_m"] + heading}


def ground_intersection(state: State) -> State:
    """Put the car on the uneven ground."""
    return {"height_m": 0.1 * math.sin(state["steps"] / 5 + state["offset_m"])}


def simulate(state: State) -> State:
    """Move the car ahead."""
    return {"gap_m": 20 + 5 * math.cos(state["steps"] / 7)}


METHODS: dict[str, Callable[[State], State]] = {
    "renderer": batch_render_rgb,
    "driver": drive,
    "controller": run_controller_and_vehicle,
    "physics": ground_intersection,
    "trafficsim": simulate,
}
"""The one method of each service, in the order in which a step calls them."""


def start() -> State:
    """Return the state in which a rollout begins."""
    return {"offset_m": 0.0, "heading": 0.0, "steps": 0}


def bends(seed: int) -> Iterator[float]:
    """Yield the road's turn in each step, without end."""
    road = random.Random(seed)  # noqa: S311 - a road, no secret
    while True:
        yield road.uniform(-BEND, BEND)
