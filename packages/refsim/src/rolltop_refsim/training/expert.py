"""The privileged expert: it reads the lane off the map instead of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rolltop_refsim.policy.policy import CRUISE_SPEED_M_S, DISTANCES_M
from rolltop_refsim.world.geometry import FloatArray, Plan, Pose, to_vehicle

if TYPE_CHECKING:
    from rolltop_refsim.world.road import Road

_REACH_M = 26.0
_SPACING_M = 0.5


def lane_ahead(road: Road, pose: Pose) -> FloatArray:
    """Measures where the lane's middle lies in front of a car: what the policy has to see.

    Args:
        road: The road.
        pose: The car.

    Returns:
        (len(DISTANCES_M),) metres to the left of the car's axis at each distance in front.
    """
    s, _ = road.project(pose.x, pose.y)
    samples = np.arange(s - 4.0, s + _REACH_M, _SPACING_M)
    points = to_vehicle(pose, road.at(samples)[:, :2])
    return np.interp(DISTANCES_M, points[:, 0], points[:, 1])


def expert_plan(road: Road, pose: Pose) -> Plan:
    """Plans with the map.

    Args:
        road: The road.
        pose: The car.

    Returns:
        The lane's true middle.
    """
    return Plan(np.column_stack([DISTANCES_M, lane_ahead(road, pose)]), CRUISE_SPEED_M_S)
