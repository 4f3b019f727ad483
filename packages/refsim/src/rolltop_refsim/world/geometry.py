"""Poses, controls and plans, and the angles between them.

World frame: x forward along the road's mean direction, y to the left, z up; metres and radians.
Vehicle frame: x forward, y left, z up; its origin lies midway between the axles, at the height of
the wheels' centres. Angles are yaw about z, then pitch about y (positive: nose down), then roll
about x (positive: right side down), all right-handed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

WHEELBASE_M = 2.7
TRACK_M = 1.6
WHEEL_RADIUS_M = 0.33


@dataclass(frozen=True)
class Pose:
    """Where a vehicle is and how fast it moves (frames in the module's docstring).

    Attributes:
        x: Metres along the world's x axis.
        y: Metres along the world's y axis.
        z: Height of the wheels' centres in metres.
        yaw: Radians about z.
        pitch: Radians about the vehicle's y axis, positive with the nose down.
        roll: Radians about the vehicle's x axis, positive with the right side down.
        speed_m_s: Speed along the vehicle's x axis.
        yaw_rate_rad_s: Rate of yaw.
    """

    x: float
    y: float
    z: float = 0.0
    yaw: float = 0.0
    pitch: float = 0.0
    roll: float = 0.0
    speed_m_s: float = 0.0
    yaw_rate_rad_s: float = 0.0


@dataclass(frozen=True)
class Control:
    """What the driver's hands and feet do.

    Attributes:
        steer_rad: Angle of the front wheels, positive to the left.
        acceleration_m_s2: Wanted acceleration; negative brakes.
    """

    steer_rad: float
    acceleration_m_s2: float


@dataclass(frozen=True)
class Plan:
    """A path to follow, as the driver plans it.

    Attributes:
        points: (K, 2) metres in the vehicle's frame at the moment of the image, x rising.
        target_speed_m_s: Speed to hold along it.
    """

    points: FloatArray
    target_speed_m_s: float


def quaternion(yaw: float, pitch: float, roll: float) -> FloatArray:
    """Turns yaw, pitch and roll into a unit quaternion.

    Returns:
        (4,) w, x, y, z.
    """
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def euler(quat: FloatArray) -> tuple[float, float, float]:
    """Turns a unit quaternion into angles; the reverse of `quaternion`.

    Args:
        quat: (4,) w, x, y, z.

    Returns:
        Yaw, pitch and roll in radians.
    """
    w, x, y, z = (float(value) for value in quat)
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    pitch = math.asin(min(1.0, max(-1.0, 2 * (w * y - z * x))))
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    return yaw, pitch, roll


def to_world(pose: Pose, points: FloatArray) -> FloatArray:
    """Moves points of the vehicle's plane into the world's.

    Args:
        pose: The vehicle.
        points: (N, 2) metres in the vehicle's frame.

    Returns:
        (N, 2) metres in the world's frame.
    """
    c, s = math.cos(pose.yaw), math.sin(pose.yaw)
    x, y = points[:, 0], points[:, 1]
    return np.column_stack([pose.x + c * x - s * y, pose.y + s * x + c * y])


def to_vehicle(pose: Pose, points: FloatArray) -> FloatArray:
    """Moves points of the world's plane into the vehicle's; the reverse of `to_world`.

    Args:
        pose: The vehicle.
        points: (N, 2) metres in the world's frame.

    Returns:
        (N, 2) metres in the vehicle's frame.
    """
    c, s = math.cos(pose.yaw), math.sin(pose.yaw)
    dx, dy = points[:, 0] - pose.x, points[:, 1] - pose.y
    return np.column_stack([c * dx + s * dy, -s * dx + c * dy])
