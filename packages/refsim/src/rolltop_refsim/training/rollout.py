"""One closed loop in one process: what the services and the worker do together in a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rolltop_refsim.world.camera import Camera, Image
from rolltop_refsim.world.geometry import FloatArray, Plan, Pose
from rolltop_refsim.world.ground import GroundProbe
from rolltop_refsim.world.route import RouteStatus, route_progress
from rolltop_refsim.world.scene import Scene
from rolltop_refsim.world.traffic import initial_traffic, simulate, traffic_poses
from rolltop_refsim.world.vehicle import Dynamics

Driver = Callable[[Image, Pose], Plan]
"""Plans from the image; the pose is for its speed, and for experts."""


@dataclass(frozen=True)
class Trace:
    """What a rollout did.

    Attributes:
        poses: (T, 7) x, y, z, yaw, pitch, roll, speed before each step.
        lateral_m: (T,) metres to the left of the lane's middle.
        final_state: The vehicle's last integration state.
    """

    poses: FloatArray
    lateral_m: FloatArray
    final_state: bytes

    @property
    def worst_lateral_m(self) -> float:
        """The largest lateral error."""
        return float(np.abs(self.lateral_m).max())


class World:
    """The parts that a closed loop needs, made once and used for many rollouts."""

    def __init__(self) -> None:
        """Compiles the models and opens the camera (about a second)."""
        self.camera = Camera()
        self.dynamics = Dynamics()
        self.probe = GroundProbe()

    def close(self) -> None:
        """Closes the camera."""
        self.camera.close()

    def rollout(self, scene: Scene, driver: Driver, steps: int) -> Trace:
        """Drives a scene from its start, 0.1 s a step, until its steps or its route are over.

        Args:
            scene: The scene.
            driver: The driver.
            steps: Steps to drive at most.

        Returns:
            What happened.
        """
        state = self.dynamics.initial_state(scene)
        traffic = initial_traffic(scene)
        poses, lateral = [], []
        for _ in range(steps):
            proposed = self.dynamics.pose(state)
            cars = traffic_poses(scene, traffic)
            ego, *others = self.probe.ground_intersection(scene, [proposed, *cars])
            progress = route_progress(scene, ego)
            poses.append((ego.x, ego.y, ego.z, ego.yaw, ego.pitch, ego.roll, ego.speed_m_s))
            lateral.append(progress.lateral_m)
            if progress.status is not RouteStatus.UNDER_WAY:
                break
            plan = driver(self.camera.render(scene, ego, others).image, ego)
            state = self.dynamics.track(scene, state, plan)
            traffic = simulate(scene, traffic, ego)
        return Trace(np.array(poses), np.array(lateral), state)
