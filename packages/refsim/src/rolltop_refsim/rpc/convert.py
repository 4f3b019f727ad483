"""Between the wire and the world: poses and arrays."""

from __future__ import annotations

import numpy as np

from rolltop_refsim.rpc import common_pb2, driver_pb2
from rolltop_refsim.world.geometry import FloatArray, Plan, Pose

_POINT = 2


def pose_to_wire(pose: Pose) -> common_pb2.Pose:
    """Turn a pose into its message."""
    return common_pb2.Pose(
        x=pose.x,
        y=pose.y,
        z=pose.z,
        yaw=pose.yaw,
        pitch=pose.pitch,
        roll=pose.roll,
        speed_m_s=pose.speed_m_s,
        yaw_rate_rad_s=pose.yaw_rate_rad_s,
    )


def pose_from_wire(message: common_pb2.Pose) -> Pose:
    """Turn a message into the pose."""
    return Pose(
        x=message.x,
        y=message.y,
        z=message.z,
        yaw=message.yaw,
        pitch=message.pitch,
        roll=message.roll,
        speed_m_s=message.speed_m_s,
        yaw_rate_rad_s=message.yaw_rate_rad_s,
    )


def points_to_wire(points: FloatArray) -> bytes:
    """Pack (N, 2) points in metres."""
    return np.ascontiguousarray(points, dtype="<f8").tobytes()


def points_from_wire(packed: bytes) -> FloatArray:
    """Unpack (N, 2) points in metres; raises ``ValueError`` where the bytes are no such thing."""
    return np.frombuffer(packed, dtype="<f8").reshape(-1, _POINT)


def plan_to_wire(plan: Plan) -> driver_pb2.Plan:
    """Turn a plan into its message."""
    return driver_pb2.Plan(
        points=points_to_wire(plan.points), target_speed_m_s=plan.target_speed_m_s
    )


def plan_from_wire(message: driver_pb2.Plan) -> Plan:
    """Turn a message into the plan; raises ``ValueError`` where its points are none."""
    return Plan(points=points_from_wire(message.points), target_speed_m_s=message.target_speed_m_s)
