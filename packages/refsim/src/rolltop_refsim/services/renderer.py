"""The renderer service: camera images of a scene with its traffic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import grpc

from rolltop_refsim.rpc import common_pb2, renderer_pb2
from rolltop_refsim.rpc.convert import pose_from_wire
from rolltop_refsim.services.station import CallError
from rolltop_refsim.world.camera import Camera
from rolltop_refsim.world.scene import SceneCache

if TYPE_CHECKING:
    from rolltop_refsim.services.hosting import Options
    from rolltop_refsim.world.camera import Frame

CAMERAS = ("front",)


class Renderer:
    """Implements ``rolltop.refsim.Renderer``; made and used in one thread, with a GL context."""

    inline: frozenset[str] = frozenset()

    def __init__(self, options: Options) -> None:
        self._scenes = SceneCache(options.cache_size)
        self._camera = Camera(cache_size=options.cache_size)

    def batch_render_rgb(
        self, request: renderer_pb2.BatchRenderRgbRequest
    ) -> renderer_pb2.BatchRenderRgbReply:
        """Render what each camera sees at one moment."""
        unknown = sorted(set(request.cameras) - set(CAMERAS))
        if unknown or not request.cameras:
            raise CallError(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"cameras are {', '.join(CAMERAS)}, not {list(request.cameras)}",
            )
        began = time.perf_counter()
        scene = self._scenes.get(request.rollout.scene, request.rollout.seed)
        made_s = time.perf_counter() - began
        ego = pose_from_wire(request.ego)
        frame = self._camera.render(scene, ego, [pose_from_wire(pose) for pose in request.traffic])
        reply = renderer_pb2.BatchRenderRgbReply(
            images=[_image(camera, frame) for camera in request.cameras]
        )
        if not frame.cache_hit:
            reply.scene.CopyFrom(renderer_pb2.SceneLoad(hit=False, seconds=made_s + frame.load_s))
        elif request.rollout.step == 0:
            reply.scene.CopyFrom(renderer_pb2.SceneLoad(hit=True))
        return reply


def _image(camera: str, frame: Frame) -> common_pb2.Image:
    height, width, _ = frame.image.shape
    return common_pb2.Image(camera=camera, width=width, height=height, rgb=frame.image.tobytes())
