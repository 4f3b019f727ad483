"""The controller service: a tracking controller in the loop with the car's dynamics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import numpy as np

from rolltop_refsim.rpc import common_pb2, controller_pb2
from rolltop_refsim.rpc.convert import plan_from_wire, points_to_wire, pose_to_wire
from rolltop_refsim.services.station import CallError
from rolltop_refsim.world.scene import SceneCache
from rolltop_refsim.world.vehicle import Dynamics, StateError

if TYPE_CHECKING:
    from rolltop_refsim.services.hosting import Options
    from rolltop_refsim.world.scene import Scene

ROUTE_SPACING_M = 2.0


class Controller:
    """Implements ``rolltop.refsim.Controller``."""

    inline = frozenset({"close_session"})

    def __init__(self, options: Options) -> None:
        self._scenes = SceneCache(options.n_concurrent + 1)
        self._dynamics = Dynamics()

    def start_session(self, request: common_pb2.SessionRequest) -> controller_pb2.ControllerStart:
        """Put the car at the start of its route."""
        scene = self._scene(request.rollout)
        s = np.arange(0.0, scene.road.s[-1], ROUTE_SPACING_M)
        return controller_pb2.ControllerStart(
            vehicle=self._vehicle(scene, self._dynamics.initial_state(scene)),
            route=points_to_wire(scene.road.at(s)[:, :2]),
            route_spacing_m=ROUTE_SPACING_M,
            route_length_m=scene.road.route_length_m,
        )

    def run_controller_and_vehicle(
        self, request: controller_pb2.RunRequest
    ) -> controller_pb2.RunReply:
        """Follow a plan for a while."""
        scene = self._scene(request.rollout)
        try:
            plan = plan_from_wire(request.plan)
            state = self._dynamics.track(scene, request.state, plan, request.duration_s)
        except (ValueError, StateError) as error:
            raise CallError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error
        return controller_pb2.RunReply(vehicle=self._vehicle(scene, state))

    def close_session(self, request: common_pb2.SessionRequest) -> common_pb2.SessionReply:  # noqa: ARG002
        """Answer that nothing needs to be closed: the state is the caller's."""
        return common_pb2.SessionReply()

    def _scene(self, rollout: common_pb2.RolloutStep) -> Scene:
        return self._scenes.get(rollout.scene, rollout.seed)

    def _vehicle(self, scene: Scene, state: bytes) -> controller_pb2.Vehicle:
        pose = self._dynamics.pose(state)
        progress_m, lateral_m = scene.road.project(pose.x, pose.y)
        return controller_pb2.Vehicle(
            state=state,
            pose=pose_to_wire(pose),
            progress_m=progress_m,
            lateral_error_m=lateral_m,
        )
