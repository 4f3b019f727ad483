"""A scene: a road on its ground, what stands beside it, and how it looks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rolltop_refsim.world.geometry import FloatArray
from rolltop_refsim.world.road import BEHIND_M, LENGTH_M, Road, make_road
from rolltop_refsim.world.seeds import stream
from rolltop_refsim.world.terrain import Terrain, make_terrain

Colour = tuple[float, float, float]

TREES = 90
POSTS = 28
_CLEAR_M = 5.0


@dataclass(frozen=True)
class Look:
    """What is randomised about a scene's picture.

    Attributes:
        grass: Colour of the ground, red, green and blue in 0..1.
        asphalt: Colour of the road.
        line: Colour of the lane lines.
        crown: Colour of the trees' crowns.
        sky: Colour of the upper sky.
        horizon: Colour of the sky near the horizon.
        sun_direction: Unit vector the light travels along.
        sun: Brightness of the sun, 0..1.
        ambient: Brightness of what has no direction, 0..1.
        camera_height_m: Height of the camera over the wheels' centres.
        camera_pitch_rad: Downward tilt of the camera.
        camera_fov_deg: Vertical field of view.
    """

    grass: Colour
    asphalt: Colour
    line: Colour
    crown: Colour
    sky: Colour
    horizon: Colour
    sun_direction: Colour
    sun: float
    ambient: float
    camera_height_m: float
    camera_pitch_rad: float
    camera_fov_deg: float


@dataclass(frozen=True)
class Start:
    """How a rollout begins, apart from the middle of its lane.

    Attributes:
        lateral_m: Metres to the left of the lane's middle.
        heading_rad: Heading over that of the road.
        speed_m_s: Speed.
    """

    lateral_m: float
    heading_rad: float
    speed_m_s: float


@dataclass(frozen=True)
class Scene:
    """All that the services of a rollout need to agree on; the same in each of them.

    Attributes:
        name: Name of the road.
        seed: Seed of everything random.
        road: The lane's centreline.
        terrain: The ground.
        look: What the picture is randomised by.
        tyre_friction: Friction of the tyres on the ground.
        start: Where and how the car begins.
        trees: (TREES, 4) x, y, height, crown radius in metres.
        posts: (POSTS, 2) x, y of the posts that stand beside the road.
    """

    name: str
    seed: int
    road: Road
    terrain: Terrain
    look: Look
    tyre_friction: float
    start: Start
    trees: FloatArray
    posts: FloatArray

    @property
    def key(self) -> tuple[str, int]:
        """What a cache knows the scene by."""
        return self.name, self.seed

    @cached_property
    def height_grid(self) -> NDArray[np.float32]:
        """The ground as MuJoCo's height field takes it (see `Terrain.grid`)."""
        return self.terrain.grid()


def make_scene(name: str, seed: int) -> Scene:
    """Makes a scene.

    The road's shape and ground come from its name alone; the seed randomises the rest, so that
    two rollouts on one road differ.

    Args:
        name: Name of the road, any text.
        seed: Seed of the rollout.

    Returns:
        The scene; the same in each process for the same name and seed.
    """
    road = make_road(stream("road", name))
    middle_y = float((road.y.min() + road.y.max()) / 2)
    rng = stream("scene", name, seed)
    return Scene(
        name=name,
        seed=seed,
        road=road,
        terrain=make_terrain(stream("terrain", name), middle_y),
        look=_make_look(rng),
        tyre_friction=float(rng.uniform(0.8, 1.1)),
        start=Start(
            lateral_m=float(rng.uniform(-0.5, 0.5)),
            heading_rad=float(rng.uniform(-0.05, 0.05)),
            speed_m_s=float(rng.uniform(7.5, 9.0)),
        ),
        trees=_plant(stream("trees", name, seed), road),
        posts=_posts(road),
    )


def _colour(rng: np.random.Generator, low: Colour, high: Colour) -> Colour:
    red, green, blue = (float(value) for value in rng.uniform(low, high))
    return red, green, blue


def _make_look(rng: np.random.Generator) -> Look:
    grey = float(rng.uniform(0.22, 0.42))
    azimuth, height = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.3)
    direction = (
        float(np.cos(azimuth) * np.cos(height)),
        float(np.sin(azimuth) * np.cos(height)),
        float(-np.sin(height)),
    )
    return Look(
        grass=_colour(rng, (0.16, 0.34, 0.10), (0.46, 0.56, 0.24)),
        asphalt=(grey, grey, grey * float(rng.uniform(0.95, 1.1))),
        line=_colour(rng, (0.85, 0.80, 0.60), (1.0, 1.0, 1.0)),
        crown=_colour(rng, (0.08, 0.22, 0.06), (0.30, 0.42, 0.16)),
        sky=_colour(rng, (0.30, 0.48, 0.75), (0.55, 0.70, 0.95)),
        horizon=_colour(rng, (0.70, 0.74, 0.80), (0.90, 0.90, 0.95)),
        sun_direction=direction,
        sun=float(rng.uniform(0.35, 0.65)),
        ambient=float(rng.uniform(0.35, 0.55)),
        camera_height_m=float(rng.uniform(1.15, 1.30)),
        camera_pitch_rad=float(rng.uniform(0.12, 0.16)),
        camera_fov_deg=70.0,
    )


def _plant(rng: np.random.Generator, road: Road) -> FloatArray:
    s = rng.uniform(-BEHIND_M, LENGTH_M, TREES)
    side = rng.choice((-1.0, 1.0), TREES)
    beside = rng.uniform(6.0, 32.0, TREES)
    lateral = np.where(side > 0, beside + 5.4, -beside)
    places = road.at(s, lateral)[:, :2]
    # A bend may carry a far tree onto another piece of the road.
    clear = np.array([abs(road.project(x, y)[1]) > _CLEAR_M for x, y in places])
    places = np.where(clear[:, None], places, places + np.array([0.0, 30.0]))
    height = rng.uniform(4.0, 9.0, TREES)
    return np.column_stack([places, height, height * rng.uniform(0.22, 0.34, TREES)])


def _posts(road: Road) -> FloatArray:
    s = np.linspace(-BEHIND_M / 2, LENGTH_M, POSTS // 2)
    return np.vstack([road.at(s, -3.4)[:, :2], road.at(s, 7.0)[:, :2]])


class SceneCache:
    """The scenes a process used last; making one costs a few milliseconds.

    Safe to use from several threads.
    """

    def __init__(self, size: int) -> None:
        """Makes an empty cache.

        Args:
            size: Number of scenes to keep, at least 1.

        Raises:
            ValueError: The size is below 1.
        """
        if size < 1:
            raise ValueError(f"a scene cache needs a size of at least 1, not {size}")
        self._size = size
        self._scenes: OrderedDict[tuple[str, int], Scene] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, seed: int) -> Scene:
        """Returns a scene, made now if it is not at hand."""
        with self._lock:
            scene = self._scenes.pop((name, seed), None)
            if scene is None:
                scene = make_scene(name, seed)
            self._scenes[(name, seed)] = scene
            while len(self._scenes) > self._size:
                self._scenes.popitem(last=False)
            return scene
