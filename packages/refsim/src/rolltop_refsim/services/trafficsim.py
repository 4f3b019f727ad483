"""The traffic service: the other cars, and who touches whom."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import grpc
import numpy as np

from rolltop_refsim.rpc import common_pb2, trafficsim_pb2
from rolltop_refsim.rpc.convert import pose_from_wire, pose_to_wire
from rolltop_refsim.services.station import CallError
from rolltop_refsim.world.scene import SceneCache
from rolltop_refsim.world.traffic import (
    CAR_LENGTH_M,
    Traffic,
    TrafficStateError,
    initial_traffic,
    simulate,
    traffic_poses,
)

if TYPE_CHECKING:
    from rolltop_refsim.services.hosting import Options
    from rolltop_refsim.world.geometry import FloatArray, Pose
    from rolltop_refsim.world.scene import Scene

CAR_WIDTH_M = 1.8


class Trafficsim:
    """Implements ``rolltop.refsim.Trafficsim``."""

    inline = frozenset({"close_session"})

    def __init__(self, options: Options) -> None:
        self._scenes = SceneCache(options.n_concurrent + 1)

    def start_session(self, request: common_pb2.SessionRequest) -> trafficsim_pb2.TrafficReply:
        """Answer where the traffic starts."""
        scene = self._scene(request.rollout)
        return _reply(scene, initial_traffic(scene), ego=None)

    def simulate(self, request: trafficsim_pb2.SimulateRequest) -> trafficsim_pb2.TrafficReply:
        """Move the traffic on, around the ego car."""
        scene = self._scene(request.rollout)
        try:
            traffic = Traffic.from_bytes(request.state)
        except TrafficStateError as error:
            raise CallError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error
        ego, ego_then = pose_from_wire(request.ego), pose_from_wire(request.ego_then)
        return _reply(scene, simulate(scene, traffic, ego, request.duration_s), ego_then)

    def close_session(self, request: common_pb2.SessionRequest) -> common_pb2.SessionReply:  # noqa: ARG002
        """Answer that nothing needs to be closed: the state is the caller's."""
        return common_pb2.SessionReply()

    def _scene(self, rollout: common_pb2.RolloutStep) -> Scene:
        return self._scenes.get(rollout.scene, rollout.seed)


def touch(one: Pose, other: Pose) -> bool:
    """Whether two cars touch, seen from above: no axis of either separates their rectangles."""
    if math.hypot(one.x - other.x, one.y - other.y) > math.hypot(CAR_LENGTH_M, CAR_WIDTH_M):
        return False
    a, b = _corners(one), _corners(other)
    for yaw in (one.yaw, one.yaw + math.pi / 2, other.yaw, other.yaw + math.pi / 2):
        axis = np.array([math.cos(yaw), math.sin(yaw)])
        on_a, on_b = a @ axis, b @ axis
        if on_a.max() < on_b.min() or on_b.max() < on_a.min():
            return False
    return True


def _corners(pose: Pose) -> FloatArray:
    """Return the (4, 2) corners of a car in the world, in metres."""
    ahead = np.array([math.cos(pose.yaw), math.sin(pose.yaw)]) * CAR_LENGTH_M / 2
    left = np.array([-math.sin(pose.yaw), math.cos(pose.yaw)]) * CAR_WIDTH_M / 2
    middle = np.array([pose.x, pose.y])
    return middle + np.stack([ahead + left, ahead - left, -ahead + left, -ahead - left])


def _reply(scene: Scene, traffic: Traffic, ego: Pose | None) -> trafficsim_pb2.TrafficReply:
    poses = traffic_poses(scene, traffic)
    return trafficsim_pb2.TrafficReply(
        state=traffic.to_bytes(),
        poses=[pose_to_wire(pose) for pose in poses],
        collisions=0 if ego is None else sum(touch(ego, pose) for pose in poses),
    )
