"""The driver service: the policy under test, with what it was shown of every rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import numpy as np

from rolltop_refsim.policy.policy import Policy
from rolltop_refsim.policy.session import DriverSession, ObservationError
from rolltop_refsim.rpc import common_pb2, driver_pb2
from rolltop_refsim.rpc.convert import plan_to_wire, points_from_wire
from rolltop_refsim.services.sessions import Sessions
from rolltop_refsim.services.station import CallError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rolltop_refsim.services.hosting import Options
    from rolltop_refsim.world.geometry import FloatArray, Plan

_SESSIONS_PER_ROLLOUT = 4
"""More than one: workers that died leave theirs behind."""


@dataclass
class _Drive:
    session: DriverSession
    route: FloatArray


class Driver:
    """Implements ``rolltop.refsim.Driver``."""

    inline = frozenset(
        {
            "start_session",
            "submit_image_observation",
            "submit_egomotion_observation",
            "submit_route",
            "close_session",
        }
    )

    def __init__(self, options: Options) -> None:
        self._policy = Policy.load()
        self._sessions: Sessions[_Drive] = Sessions(_SESSIONS_PER_ROLLOUT * options.n_concurrent)

    def start_session(self, request: common_pb2.SessionRequest) -> common_pb2.SessionReply:
        """Begin to drive a rollout."""
        self._sessions.start(
            request.rollout, _Drive(DriverSession(self._policy), route=np.empty((0, 2)))
        )
        return common_pb2.SessionReply()

    def submit_image_observation(
        self, request: driver_pb2.ImageObservation
    ) -> driver_pb2.ObservationReply:
        """Take a camera image."""
        drive = self._sessions.get(request.rollout)
        drive.session.submit_image_observation(_pixels(request.image))
        return driver_pb2.ObservationReply()

    def submit_egomotion_observation(
        self, request: driver_pb2.EgomotionObservation
    ) -> driver_pb2.ObservationReply:
        """Take how the car moves."""
        drive = self._sessions.get(request.rollout)
        drive.session.submit_egomotion_observation(request.speed_m_s)
        return driver_pb2.ObservationReply()

    def submit_route(self, request: driver_pb2.RouteObservation) -> driver_pb2.ObservationReply:
        """Take where to go. The policy is told the speed limit alone; the points judge its plan."""
        drive = self._sessions.get(request.rollout)
        drive.session.submit_route(request.speed_limit_m_s)
        drive.route = points_from_wire(request.points)
        return driver_pb2.ObservationReply()

    def drive(self, request: driver_pb2.DriveRequest) -> driver_pb2.DriveReply:
        """Plan a path from what was submitted last."""
        drive = self._sessions.get(request.rollout)
        try:
            plan = drive.session.drive()
        except ObservationError as error:
            raise CallError(grpc.StatusCode.FAILED_PRECONDITION, str(error)) from error
        return driver_pb2.DriveReply(
            plan=plan_to_wire(plan), route_deviation_m=_deviation(plan, drive.route)
        )

    def close_session(self, request: common_pb2.SessionRequest) -> common_pb2.SessionReply:
        """Forget a rollout."""
        self._sessions.close(request.rollout)
        return common_pb2.SessionReply()


def _pixels(image: common_pb2.Image) -> NDArray[np.uint8]:
    """Return (H, W, 3) pixels; raises :class:`CallError` where they are not as many as said."""
    if len(image.rgb) != image.height * image.width * 3:
        raise CallError(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"an image of {image.width}x{image.height} has {len(image.rgb)} bytes",
        )
    return np.frombuffer(image.rgb, dtype=np.uint8).reshape(image.height, image.width, 3)


def _deviation(plan: Plan, route: FloatArray) -> float:
    """Return how far the plan's last point lies beside the route, in metres; 0 without a route."""
    if len(route) == 0:
        return 0.0
    ahead, left = plan.points[-1]
    return float(abs(left - np.interp(ahead, route[:, 0], route[:, 1])))
