"""The tracking controller: steers along a plan and holds its speed."""

from __future__ import annotations

import math

import numpy as np

from rolltop_refsim.world.geometry import WHEELBASE_M, Control, Plan, Pose, to_world

LOOKAHEAD_S = 0.75
MIN_LOOKAHEAD_M = 4.0
SPEED_GAIN_1_S = 1.2


class Tracker:
    """Pure pursuit of a plan that lies fixed in the world."""

    def __init__(self, plan: Plan, pose: Pose) -> None:
        """Lays the plan into the world.

        Args:
            plan: Path in the vehicle's frame.
            pose: The vehicle when the plan was made.

        Raises:
            ValueError: The plan has fewer than two points, or one that is not a number.
        """
        points = np.asarray(plan.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[0] < 2 or points.shape[1] != 2:  # noqa: PLR2004
            raise ValueError(f"a plan needs (K >= 2, 2) points, not {points.shape}")
        if not np.isfinite(points).all() or not math.isfinite(plan.target_speed_m_s):
            raise ValueError("a plan's points and speed must be finite")
        self._points = to_world(pose, points)
        self._speed = plan.target_speed_m_s

    def control(self, pose: Pose) -> Control:
        """Computes what to do now.

        Args:
            pose: The vehicle.

        Returns:
            Steering towards the plan's point one look-ahead away, and acceleration towards its
            speed.
        """
        lookahead = max(MIN_LOOKAHEAD_M, LOOKAHEAD_S * pose.speed_m_s)
        c, s = math.cos(pose.yaw), math.sin(pose.yaw)
        rear_x = pose.x - c * WHEELBASE_M / 2
        rear_y = pose.y - s * WHEELBASE_M / 2
        dx, dy = self._points[:, 0] - rear_x, self._points[:, 1] - rear_y
        ahead, left = c * dx + s * dy, c * dy - s * dx
        target = float(np.interp(lookahead, ahead, left))
        distance2 = lookahead * lookahead + target * target
        steer = math.atan(2.0 * WHEELBASE_M * target / distance2)
        return Control(steer, SPEED_GAIN_1_S * (self._speed - pose.speed_m_s))
