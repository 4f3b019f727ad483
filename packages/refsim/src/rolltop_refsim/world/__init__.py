"""The world of the reference simulation: scenes, dynamics, ground, traffic and camera.

Pure computation, without services: the same scene and seed give the same world in each process.
"""

from rolltop_refsim.world.camera import CacheStats, Camera, Frame
from rolltop_refsim.world.geometry import Control, Plan, Pose
from rolltop_refsim.world.ground import GroundProbe
from rolltop_refsim.world.road import LANE_HALF_WIDTH_M, Road
from rolltop_refsim.world.route import RouteProgress, RouteStatus, route_progress
from rolltop_refsim.world.scene import Scene, SceneCache, make_scene
from rolltop_refsim.world.traffic import (
    Traffic,
    TrafficStateError,
    initial_traffic,
    simulate,
    traffic_poses,
)
from rolltop_refsim.world.vehicle import Dynamics, StateError

__all__ = [
    "LANE_HALF_WIDTH_M",
    "CacheStats",
    "Camera",
    "Control",
    "Dynamics",
    "Frame",
    "GroundProbe",
    "Plan",
    "Pose",
    "Road",
    "RouteProgress",
    "RouteStatus",
    "Scene",
    "SceneCache",
    "StateError",
    "Traffic",
    "TrafficStateError",
    "initial_traffic",
    "make_scene",
    "route_progress",
    "simulate",
    "traffic_poses",
]
