"""How well a rollout drove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rolltop_refsim.world.road import LANE_HALF_WIDTH_M

if TYPE_CHECKING:
    from rolltop_refsim.rpc import controller_pb2

LEFT_EDGE_M = 3 * LANE_HALF_WIDTH_M
RIGHT_EDGE_M = -LANE_HALF_WIDTH_M


@dataclass
class Quality:
    """Gathers, step by step, what ``result.json`` says of a rollout's driving."""

    _lateral_m: list[float] = field(default_factory=list)
    _speed_m_s: list[float] = field(default_factory=list)
    _deviation_m: list[float] = field(default_factory=list)
    _progress_m: float = 0.0
    _ground_gap_m: float = 0.0
    _collisions: int = 0
    _touching: int = 0

    def drove(self, vehicle: controller_pb2.Vehicle, *, route_deviation_m: float) -> None:
        """Take in where the car is after a step."""
        self._lateral_m.append(vehicle.lateral_error_m)
        self._speed_m_s.append(vehicle.pose.speed_m_s)
        self._deviation_m.append(route_deviation_m)
        self._progress_m = vehicle.progress_m

    def touched(self, cars: int) -> None:
        """Take in how many cars touch the ego car; one that touches on is one collision."""
        self._collisions += max(0, cars - self._touching)
        self._touching = cars

    def stood_on_ground(self, gap_m: float) -> None:
        """Take in how far the car's springs hold it from where the ground would."""
        self._ground_gap_m = max(self._ground_gap_m, abs(gap_m))

    def summary(self) -> dict[str, float | int | bool]:
        """Return the figures; the mean ones are 0 where no step was driven."""
        steps = max(1, len(self._lateral_m))
        errors = [abs(lateral) for lateral in self._lateral_m]
        return {
            "max_lateral_error_m": max(errors, default=0.0),
            "mean_lateral_error_m": sum(errors) / steps,
            "mean_route_deviation_m": sum(self._deviation_m) / steps,
            "max_ground_gap_m": self._ground_gap_m,
            "progress_m": self._progress_m,
            "mean_speed_m_s": sum(self._speed_m_s) / steps,
            "collisions": self._collisions,
            "offroad": any(not RIGHT_EDGE_M <= x <= LEFT_EDGE_M for x in self._lateral_m),
        }
