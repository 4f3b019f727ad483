"""One attempt of a rollout: sessions, then step after step, every call in its turn.

A step goes the way of AlpaSim's: render, submit the observations together, wait for them, drive,
let the controller move the car, let the traffic move, and put all of them on the ground.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np

from rolltop_refsim.rpc import (
    common_pb2,
    controller_pb2,
    driver_pb2,
    physics_pb2,
    renderer_pb2,
    trafficsim_pb2,
)
from rolltop_refsim.rpc.convert import points_from_wire, points_to_wire, pose_from_wire
from rolltop_refsim.worker.quality import Quality
from rolltop_refsim.world.geometry import to_vehicle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rolltop_instrument import WorkerTelemetry

    from rolltop_refsim.world.geometry import FloatArray

STEP_S = 0.1
CAMERAS = ("front",)
ROUTE_POINTS = 20
SPEED_LIMIT_M_S = 8.5
_SESSIONS = ("controller", "driver", "trafficsim")
_CLOSE_TIMEOUT_S = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RolloutSpec:
    """What is to be driven; ``attempt`` counts from 1."""

    uuid: str
    scene: str
    seed: int
    attempt: int
    steps: int

    def at(self, step: int) -> common_pb2.RolloutStep:
        """Return what every call of a step says it is about."""
        return common_pb2.RolloutStep(
            uuid=self.uuid, attempt=self.attempt, scene=self.scene, seed=self.seed, step=step
        )


class Rollout:
    """The state of one attempt. ``stubs`` has the instance of each service that it is pinned to."""

    def __init__(
        self,
        spec: RolloutSpec,
        stubs: Mapping[str, Any],
        telemetry: WorkerTelemetry,
        *,
        call_timeout_s: float,
    ) -> None:
        self.quality = Quality()
        self.steps = 0
        self._spec = spec
        self._stubs = stubs
        self._telemetry = telemetry
        self._timeout_s = call_timeout_s
        self._vehicle = controller_pb2.Vehicle()
        self._ego = common_pb2.Pose()
        self._route: FloatArray = np.empty((0, 2))
        self._route_spacing_m = 1.0
        self._route_length_m = math.inf
        self._traffic_state = b""
        self._traffic: Iterable[common_pb2.Pose] = ()

    async def run(self) -> None:
        """Drive until the steps or the route are over; raises ``grpc.RpcError`` where it fails."""
        try:
            await self._start()
            await self._drive()
        except Exception:
            await self._close()
            raise
        await self._close()

    async def _drive(self) -> None:
        while self.steps < self._spec.steps and self._vehicle.progress_m < self._route_length_m:
            with self._telemetry.step():
                await self._step(self._spec.at(self.steps))
            self.steps += 1

    async def _start(self) -> None:
        at = self._spec.at(0)
        request = common_pb2.SessionRequest(rollout=at)
        start: controller_pb2.ControllerStart
        start = await self._retried("controller", "start_session", request)
        self._vehicle, self._ego = start.vehicle, start.vehicle.pose
        self._route_length_m = start.route_length_m
        self._route = points_from_wire(start.route)
        self._route_spacing_m = start.route_spacing_m
        await self._retried("driver", "start_session", request)
        if "trafficsim" in self._stubs:
            traffic: trafficsim_pb2.TrafficReply
            traffic = await self._retried("trafficsim", "start_session", request)
            self._traffic_state, self._traffic = traffic.state, traffic.poses
        await self._put_on_ground(at)

    async def _step(self, at: common_pb2.RolloutStep) -> None:
        image = await self._render(at)
        await self._observe(at, image)
        reply: driver_pb2.DriveReply
        reply = await self._call("driver", "drive", driver_pb2.DriveRequest(rollout=at))
        ego = self._ego
        await self._drive_on(at, reply)
        await self._move_traffic(at, ego)
        await self._put_on_ground(at)

    async def _render(self, at: common_pb2.RolloutStep) -> common_pb2.Image:
        reply: renderer_pb2.BatchRenderRgbReply
        reply = await self._call(
            "renderer",
            "batch_render_rgb",
            renderer_pb2.BatchRenderRgbRequest(
                rollout=at, ego=self._ego, traffic=self._traffic, cameras=CAMERAS
            ),
        )
        if reply.HasField("scene"):
            self._telemetry.scene_loaded(reply.scene.seconds, hit=reply.scene.hit)
        return reply.images[0]

    async def _observe(self, at: common_pb2.RolloutStep, image: common_pb2.Image) -> None:
        pose = self._ego
        egomotion = driver_pb2.EgomotionObservation(
            rollout=at, speed_m_s=pose.speed_m_s, yaw_rate_rad_s=pose.yaw_rate_rad_s
        )
        submissions = (
            ("submit_image_observation", driver_pb2.ImageObservation(rollout=at, image=image)),
            ("submit_egomotion_observation", egomotion),
            ("submit_route", self._route_ahead(at)),
        )
        with self._telemetry.observation_barrier():
            async with asyncio.TaskGroup() as submitted:
                for method, request in submissions:
                    submitted.create_task(self._call("driver", method, request))

    def _route_ahead(self, at: common_pb2.RolloutStep) -> driver_pb2.RouteObservation:
        first = max(0, int(self._vehicle.progress_m / self._route_spacing_m))
        points = to_vehicle(pose_from_wire(self._ego), self._route[first : first + ROUTE_POINTS])
        return driver_pb2.RouteObservation(
            rollout=at, points=points_to_wire(points), speed_limit_m_s=SPEED_LIMIT_M_S
        )

    async def _drive_on(self, at: common_pb2.RolloutStep, drive: driver_pb2.DriveReply) -> None:
        reply: controller_pb2.RunReply
        reply = await self._call(
            "controller",
            "run_controller_and_vehicle",
            controller_pb2.RunRequest(
                rollout=at, state=self._vehicle.state, plan=drive.plan, duration_s=STEP_S
            ),
        )
        self._vehicle, self._ego = reply.vehicle, reply.vehicle.pose
        self.quality.drove(reply.vehicle, route_deviation_m=drive.route_deviation_m)

    async def _move_traffic(self, at: common_pb2.RolloutStep, ego: common_pb2.Pose) -> None:
        """Move the traffic on over the time of a step, at whose start the car was at ``ego``."""
        if "trafficsim" not in self._stubs:
            return
        reply: trafficsim_pb2.TrafficReply
        reply = await self._call(
            "trafficsim",
            "simulate",
            trafficsim_pb2.SimulateRequest(
                rollout=at,
                state=self._traffic_state,
                ego=ego,
                ego_then=self._ego,
                duration_s=STEP_S,
            ),
        )
        self._traffic_state, self._traffic = reply.state, reply.poses
        self.quality.touched(reply.collisions)

    async def _put_on_ground(self, at: common_pb2.RolloutStep) -> None:
        if "physics" not in self._stubs:
            return
        reply: physics_pb2.GroundIntersectionReply
        reply = await self._call(
            "physics",
            "ground_intersection",
            physics_pb2.GroundIntersectionRequest(
                rollout=at, poses=[self._vehicle.pose, *self._traffic]
            ),
        )
        self._ego, self._traffic = reply.poses[0], reply.poses[1:]
        self.quality.stood_on_ground(self._vehicle.pose.z - self._ego.z)

    async def _close(self) -> None:
        """Close the sessions; one that cannot be closed ends by itself in the service."""
        request = common_pb2.SessionRequest(rollout=self._spec.at(self.steps))
        for service in _SESSIONS:
            if service in self._stubs:
                try:
                    stub = self._stubs[service]
                    await stub.close_session(request, timeout=_CLOSE_TIMEOUT_S)
                except grpc.RpcError as error:
                    _log.warning("%s: a session was not closed: %s", service, error)

    async def _call(self, service: str, method: str, request: Any) -> Any:
        return await getattr(self._stubs[service], method)(request, timeout=self._timeout_s)

    async def _retried(self, service: str, method: str, request: Any) -> Any:
        """Call once more where the call did not reach the service at all."""
        return await self._telemetry.retry(
            service, lambda: self._call(service, method, request), attempts=2
        )
