"""The physics service: the ground under the wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from rolltop_refsim.rpc import physics_pb2
from rolltop_refsim.rpc.convert import pose_from_wire, pose_to_wire
from rolltop_refsim.services.station import CallError
from rolltop_refsim.world.ground import GroundProbe
from rolltop_refsim.world.scene import SceneCache

if TYPE_CHECKING:
    from rolltop_refsim.services.hosting import Options


class Physics:
    """Implements ``rolltop.refsim.Physics``."""

    inline: frozenset[str] = frozenset()

    def __init__(self, options: Options) -> None:
        self._scenes = SceneCache(options.n_concurrent + 1)
        self._probe = GroundProbe()

    def ground_intersection(
        self, request: physics_pb2.GroundIntersectionRequest
    ) -> physics_pb2.GroundIntersectionReply:
        """Put poses on the ground."""
        scene = self._scenes.get(request.rollout.scene, request.rollout.seed)
        try:
            poses = self._probe.ground_intersection(
                scene, [pose_from_wire(pose) for pose in request.poses]
            )
        except ValueError as error:
            raise CallError(grpc.StatusCode.OUT_OF_RANGE, str(error)) from error
        return physics_pb2.GroundIntersectionReply(poses=[pose_to_wire(pose) for pose in poses])
