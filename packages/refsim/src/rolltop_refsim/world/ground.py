"""The physics service's part: puts proposed poses on the uneven ground, by casting rays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rolltop_refsim.world import heightfield
from rolltop_refsim.world.engine import load_mujoco
from rolltop_refsim.world.geometry import (
    TRACK_M,
    WHEEL_RADIUS_M,
    WHEELBASE_M,
    FloatArray,
    Pose,
    to_world,
)
from rolltop_refsim.world.heightfield import Ground
from rolltop_refsim.world.terrain import MAX_HEIGHT_M

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop_refsim.world.scene import Scene

PATCH = 3
"""Rays per side of the square under a wheel that is averaged: the tyre's footprint."""
PATCH_M = 0.2
_START_M = MAX_HEIGHT_M + 2.0


def _footprints() -> FloatArray:
    """Returns (4 * PATCH**2, 2) points under the wheels in the vehicle's frame, by wheel."""
    offsets = np.linspace(-PATCH_M / 2, PATCH_M / 2, PATCH)
    patch = np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
    half = np.array([WHEELBASE_M, TRACK_M]) / 2
    wheels = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * half
    return (wheels[:, None, :] + patch[None]).reshape(-1, 2)


_FOOTPRINTS = _footprints()


class GroundProbe:
    """Casts rays onto the ground of any scene; to be used by one thread."""

    def __init__(self) -> None:
        """Compiles the model (tens of milliseconds)."""
        self._mujoco = mujoco = load_mujoco()
        self._model: Any = mujoco.MjModel.from_xml_string(
            f"<mujoco><asset>{heightfield.ASSET_XML}</asset>"
            f"<worldbody>{heightfield.GEOM_XML}</worldbody></mujoco>"
        )
        self._data: Any = mujoco.MjData(self._model)
        self._ground = Ground(self._model)
        self._geom = np.zeros(1, dtype=np.int32)

    def heights(self, scene: Scene, points: FloatArray) -> FloatArray:
        """Casts a ray down at each point.

        Args:
            scene: The scene.
            points: (N, 2) world x, y in metres.

        Returns:
            (N,) heights of the ground in metres.

        Raises:
            ValueError: A point lies beside the scene's ground.
        """
        if self._ground.load(scene):
            self._mujoco.mj_kinematics(self._model, self._data)
        return np.array([self._height(float(x), float(y)) for x, y in points])

    def _height(self, x: float, y: float) -> float:
        start = np.array([x, y, _START_M])
        distance = self._mujoco.mj_ray(
            self._model, self._data, start, np.array([0.0, 0.0, -1.0]), None, 1, -1, self._geom
        )
        if distance < 0:
            raise ValueError(f"there is no ground at x={x:.1f} m, y={y:.1f} m")
        return float(_START_M - distance)

    def ground_intersection(self, scene: Scene, poses: Sequence[Pose]) -> list[Pose]:
        """Corrects proposed poses so that their wheels stand on the ground.

        Args:
            scene: The scene.
            poses: Proposed poses, the car's own and those of the traffic; their height, pitch and
                roll are not looked at.

        Returns:
            The poses with height, pitch and roll of the ground under the four wheels.

        Raises:
            ValueError: A wheel lies beside the scene's ground.
        """
        return [self._settle(scene, pose) for pose in poses]

    def _settle(self, scene: Scene, pose: Pose) -> Pose:
        heights = self.heights(scene, to_world(pose, _FOOTPRINTS))
        front_left, front_right, rear_left, rear_right = heights.reshape(4, -1).mean(axis=1)
        rise = (front_left + front_right - rear_left - rear_right) / 2
        lean = (front_left + rear_left - front_right - rear_right) / 2
        mean = (front_left + front_right + rear_left + rear_right) / 4
        return Pose(
            x=pose.x,
            y=pose.y,
            z=float(mean) + WHEEL_RADIUS_M,
            yaw=pose.yaw,
            pitch=-math.atan2(float(rise), WHEELBASE_M),
            roll=math.atan2(float(lean), TRACK_M),
            speed_m_s=pose.speed_m_s,
            yaw_rate_rad_s=pose.yaw_rate_rad_s,
        )
