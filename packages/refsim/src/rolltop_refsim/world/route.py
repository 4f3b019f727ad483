"""How far a car has come on its route, and how well it keeps its lane."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolltop_refsim.world.geometry import Pose
    from rolltop_refsim.world.scene import Scene

LOST_M = 25.0
"""A car that is farther than this from its lane will not find back: the rollout is over."""


class RouteStatus(Enum):
    """Whether there is anything left to drive."""

    UNDER_WAY = "under way"
    ARRIVED = "arrived"
    LOST = "lost"


@dataclass(frozen=True)
class RouteProgress:
    """Where a car is on its route.

    Attributes:
        s_m: Metres along the road since the start.
        lateral_m: Metres to the left of the lane's middle.
        status: Whether there is anything left to drive.
    """

    s_m: float
    lateral_m: float
    status: RouteStatus


def route_progress(scene: Scene, ego: Pose) -> RouteProgress:
    """Measures where a car is on its route.

    Args:
        scene: The scene.
        ego: The car.

    Returns:
        Its progress.
    """
    s, lateral = scene.road.project(ego.x, ego.y)
    if abs(lateral) > LOST_M:
        return RouteProgress(s, lateral, RouteStatus.LOST)
    if s > scene.road.route_length_m:
        return RouteProgress(s, lateral, RouteStatus.ARRIVED)
    return RouteProgress(s, lateral, RouteStatus.UNDER_WAY)
