"""The traffic: cars that follow the road, keep their distance and mind the ego car.

The intelligent driver model (Treiber, Hennecke and Helbing, 2000) sets their accelerations. Like
the vehicle's, the state travels as bytes and stepping keeps nothing between calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rolltop_refsim.world.geometry import FloatArray, Pose
from rolltop_refsim.world.road import LANE_HALF_WIDTH_M
from rolltop_refsim.world.seeds import stream

if TYPE_CHECKING:
    from rolltop_refsim.world.scene import Scene

CARS = 6
ONCOMING = 3
"""The last cars come the other way, in the other lane."""
CAR_LENGTH_M = 4.4
TIME_GAP_S = 1.4
STANDSTILL_GAP_M = 2.0
MAX_ACCELERATION_M_S2 = 1.5
COMFORTABLE_BRAKING_M_S2 = 2.0
_SUBSTEP_S = 0.05
_FAR_M = 1e6


class TrafficStateError(ValueError):
    """A traffic state that this module did not write."""


@dataclass(frozen=True)
class Traffic:
    """The cars of one scene at one moment.

    Attributes:
        s: (CARS,) arclength in metres.
        lateral: (CARS,) metres to the left of the ego lane's middle.
        speed: (CARS,) m/s along the road; negative for those that come towards.
        wanted: (CARS,) m/s that each would like to drive, positive.
    """

    s: FloatArray
    lateral: FloatArray
    speed: FloatArray
    wanted: FloatArray

    def to_bytes(self) -> bytes:
        """Packs the state."""
        return np.stack([self.s, self.lateral, self.speed, self.wanted]).tobytes()

    @classmethod
    def from_bytes(cls, state: bytes) -> Traffic:
        """Unpacks a state.

        Raises:
            TrafficStateError: It has the wrong size.
        """
        if len(state) != 4 * CARS * 8:
            raise TrafficStateError(f"a traffic state has {4 * CARS * 8} bytes, not {len(state)}")
        s, lateral, speed, wanted = np.frombuffer(state, dtype=np.float64).reshape(4, CARS)
        return cls(s, lateral, speed, wanted)


def initial_traffic(scene: Scene) -> Traffic:
    """Draws where the traffic starts.

    Args:
        scene: The scene.

    Returns:
        Two cars ahead and one behind in the ego's lane, `ONCOMING` in the other.
    """
    rng = stream("traffic", scene.name, scene.seed)
    ahead = np.cumsum(rng.uniform((22, 20), (45, 40)))
    behind = -rng.uniform(18, 30, 1)
    oncoming = np.cumsum(rng.uniform((40, 50, 50), (110, 100, 100)))
    middle = np.concatenate([np.zeros(CARS - ONCOMING), np.full(ONCOMING, 2 * LANE_HALF_WIDTH_M)])
    wanted = np.concatenate([rng.uniform(9.3, 11.5, 2), [9.0], rng.uniform(7, 11, ONCOMING)])
    sign = np.concatenate([np.ones(CARS - ONCOMING), -np.ones(ONCOMING)])
    return Traffic(
        s=np.concatenate([ahead, behind, oncoming]),
        lateral=middle + rng.normal(0, 0.1, CARS),
        speed=sign * wanted,
        wanted=wanted,
    )


def simulate(scene: Scene, traffic: Traffic, ego: Pose, dt_s: float = 0.1) -> Traffic:
    """Moves the traffic on.

    Args:
        scene: The scene.
        traffic: The cars now.
        ego: The ego car now, which those behind it follow; it is taken to keep its speed.
        dt_s: Seconds.

    Returns:
        The cars then.
    """
    ego_s, ego_lateral = scene.road.project(ego.x, ego.y)
    steps = max(1, round(dt_s / _SUBSTEP_S))
    step_s = dt_s / steps
    for index in range(steps):
        at = ego_s + ego.speed_m_s * step_s * index
        traffic = _advance(traffic, at, ego_lateral, ego.speed_m_s, step_s)
    return traffic


def _advance(
    traffic: Traffic, ego_s: float, ego_lateral: float, ego_speed: float, dt_s: float
) -> Traffic:
    sign = np.sign(traffic.speed) + (traffic.speed == 0)
    own_speed = np.abs(traffic.speed)
    s = np.append(traffic.s, ego_s)
    lateral = np.append(traffic.lateral, ego_lateral)
    velocity = np.append(traffic.speed, ego_speed)
    distance = (s[None, :] - traffic.s[:, None]) * sign[:, None]
    same_lane = np.abs(lateral[None, :] - traffic.lateral[:, None]) < LANE_HALF_WIDTH_M
    leads = same_lane & (distance > 0)
    gaps = np.where(leads, distance - CAR_LENGTH_M, _FAR_M)
    leader = np.argmin(gaps, axis=1)
    rows = np.arange(CARS)
    gap = np.maximum(gaps[rows, leader], 0.1)
    closing = own_speed - velocity[leader] * sign
    braking = 2 * math.sqrt(MAX_ACCELERATION_M_S2 * COMFORTABLE_BRAKING_M_S2)
    wish = own_speed * TIME_GAP_S + own_speed * closing / braking
    wish = STANDSTILL_GAP_M + np.maximum(wish, 0.0)
    free = 1 - (own_speed / traffic.wanted) ** 4
    acceleration = MAX_ACCELERATION_M_S2 * (free - (wish / gap) ** 2)
    speed = np.maximum(own_speed + np.maximum(acceleration, -8.0) * dt_s, 0.05)
    return Traffic(
        s=traffic.s + sign * speed * dt_s,
        lateral=traffic.lateral,
        speed=sign * speed,
        wanted=traffic.wanted,
    )


def traffic_poses(scene: Scene, traffic: Traffic) -> list[Pose]:
    """Finds where the cars are in the world, in the plane.

    Args:
        scene: The scene.
        traffic: The cars.

    Returns:
        The poses of those that are on the road, without height, pitch and roll.
    """
    road = scene.road
    here = (traffic.s > road.s[0]) & (traffic.s < road.s[-1])
    places = road.at(traffic.s[here], traffic.lateral[here])
    return [
        Pose(
            x=float(x),
            y=float(y),
            yaw=float(heading) + (math.pi if speed < 0 else 0.0),
            speed_m_s=abs(float(speed)),
        )
        for (x, y, heading), speed in zip(places, traffic.speed[here], strict=True)
    ]
