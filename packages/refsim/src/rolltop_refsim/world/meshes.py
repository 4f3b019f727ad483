"""What the camera sees of a scene, as triangle meshes: one per surface and colour.

A mesh has the same number of vertices and faces in each scene, so that one compiled model shows
any scene: its vertices are overwritten and uploaded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rolltop_refsim.world.road import LANE_HALF_WIDTH_M
from rolltop_refsim.world.scene import POSTS, TREES
from rolltop_refsim.world.seeds import stream

if TYPE_CHECKING:
    from rolltop_refsim.world.geometry import FloatArray
    from rolltop_refsim.world.scene import Scene

IntArray = NDArray[np.int32]

SURFACES = ("grass", "verge", "road", "lines", "trunks", "crowns", "posts")
RIGHT_EDGE_M = -LANE_HALF_WIDTH_M
CENTRE_LINE_M = LANE_HALF_WIDTH_M
LEFT_EDGE_M = 3 * LANE_HALF_WIDTH_M
LINE_WIDTH_M = 0.26
SHOULDER_M = 0.5
VERGE_M = 5.0
DASH_EVERY = 4
"""A dash of the centre line is two road samples long, and so is the gap."""
_ROAD_EVERY = 3
"""Centreline samples per mesh sample: the road mesh has one each 1.5 m."""
_SINK_M = 0.45
"""The coarse ground is lowered by this near the road, or it would stick through it."""
_CROWN_SIDES = 6
_TRUNK_SIDES = 4


@dataclass(frozen=True)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: (V, 3) metres.
        normals: (V, 3) unit vectors.
        faces: (F, 3) indices of vertices, counter-clockwise seen from outside.
    """

    vertices: NDArray[np.float32]
    normals: NDArray[np.float32]
    faces: IntArray


def make_meshes(scene: Scene) -> dict[str, Mesh]:
    """Builds all surfaces of a scene.

    Args:
        scene: The scene.

    Returns:
        A mesh per name in `SURFACES`.
    """
    return {
        "grass": _grass(scene),
        "verge": _verge(scene),
        "road": _road(scene),
        "lines": _lines(scene),
        "trunks": _trunks(scene),
        "crowns": _crowns(scene),
        "posts": _posts(scene),
    }


def _mesh(vertices: FloatArray, faces: IntArray) -> Mesh:
    """Adds smooth normals to a mesh."""
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(normals, faces[:, corner], normal)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.where(length > 0, normals / np.maximum(length, 1e-12), (0.0, 0.0, 1.0))
    return Mesh(vertices.astype(np.float32), normals.astype(np.float32), faces)


def _grid_faces(rows: int, columns: int) -> IntArray:
    """Returns the faces of a sheet whose vertices lie row by row, columns turning left."""
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]).ravel()
    lower = np.column_stack([corner, corner + columns, corner + columns + 1])
    upper = np.column_stack([corner, corner + columns + 1, corner + 1])
    return np.concatenate([lower, upper]).astype(np.int32)


def _grass(scene: Scene) -> Mesh:
    """Ground far and wide: 6 m squares near the road, coarse ones to the horizon."""
    far = np.array([60.0, 140.0, 300.0, 700.0])
    x = np.concatenate([-60 - far[::-1], np.arange(-60, 391, 6.0), 390 + far])
    middle = scene.terrain.middle_y
    y = middle + np.concatenate([-60 - far[::-1], np.arange(-60, 61, 6.0), 60 + far])
    xx, yy = np.meshgrid(x, y, indexing="ij")
    z = scene.terrain.height(xx, yy)
    road = scene.road
    lane_y = np.interp(x, road.x, road.y)
    slope = np.interp(x, road.x, np.cos(road.heading))
    centre = lane_y[:, None] + LANE_HALF_WIDTH_M / slope[:, None]
    near = np.abs(yy - centre) * slope[:, None] < 2 * LANE_HALF_WIDTH_M + VERGE_M + 6.0
    z = np.where(near, z - _SINK_M, z)
    points = np.column_stack([xx.ravel(), yy.ravel(), z.ravel()])
    return _mesh(points, _grid_faces(len(x), len(y)))


def _ribbon(scene: Scene, laterals: FloatArray, lift: FloatArray, every: int) -> Mesh:
    """A sheet along the road.

    Args:
        scene: The scene.
        laterals: (L,) metres to the left of the lane's middle, from left to right.
        lift: (L,) metres over the ground.
        every: Road samples per sheet sample.

    Returns:
        The sheet.
    """
    s = scene.road.s[::every]
    columns = [scene.road.at(s, lateral)[:, :2] for lateral in laterals]
    flat = np.stack(columns, axis=1)
    z = scene.terrain.height(flat[..., 0], flat[..., 1]) + lift[None, :]
    points = np.concatenate([flat, z[..., None]], axis=-1).reshape(-1, 3)
    # Columns run from left to right, rows forward: swap the turn of `_grid_faces`.
    return _mesh(points, _grid_faces(len(s), len(laterals))[:, ::-1].copy())


def _verge(scene: Scene) -> Mesh:
    left, right = LEFT_EDGE_M + SHOULDER_M, RIGHT_EDGE_M - SHOULDER_M
    sides = ([left + VERGE_M, left], [right, right - VERGE_M])
    lifts = ([-0.5, -0.03], [-0.03, -0.5])
    return _join(
        [
            _ribbon(scene, np.array(side), np.array(lift), _ROAD_EVERY)
            for side, lift in zip(sides, lifts, strict=True)
        ]
    )


def _road(scene: Scene) -> Mesh:
    left, right = LEFT_EDGE_M + SHOULDER_M, RIGHT_EDGE_M - SHOULDER_M
    laterals = np.linspace(left, right, 5)
    return _ribbon(scene, laterals, np.full(5, 0.01), _ROAD_EVERY)


def _lines(scene: Scene) -> Mesh:
    half = LINE_WIDTH_M / 2
    parts = []
    for middle in (LEFT_EDGE_M, CENTRE_LINE_M, RIGHT_EDGE_M):
        edges = np.array([middle + half, middle - half])
        parts.append(_ribbon(scene, edges, np.full(2, 0.03), _ROAD_EVERY))
    rows = len(scene.road.s[::_ROAD_EVERY])
    row = np.arange(rows - 1)
    dashed = np.tile(row % DASH_EVERY < DASH_EVERY // 2, 2)
    centre = parts[1]
    parts[1] = Mesh(centre.vertices, centre.normals, centre.faces[dashed])
    return _join(parts)


def _join(parts: list[Mesh]) -> Mesh:
    offsets = np.cumsum([0] + [len(part.vertices) for part in parts[:-1]])
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.faces + at for part, at in zip(parts, offsets, strict=True)]).astype(
            np.int32
        ),
    )


def _cones(base: FloatArray, radius: FloatArray, height: FloatArray, sides: int) -> Mesh:
    """Cones that stand on points.

    Args:
        base: (N, 3) middles of the bases in metres.
        radius: (N,) metres.
        height: (N,) metres.
        sides: Corners of a base.

    Returns:
        N cones without bottoms.
    """
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(sides)])
    rings = base[:, None, :] + radius[:, None, None] * ring[None]
    tips = base + height[:, None] * np.array([0.0, 0.0, 1.0])
    points = np.concatenate([rings, tips[:, None, :]], axis=1)
    side = np.arange(sides)
    faces = np.column_stack([side, (side + 1) % sides, np.full(sides, sides)])
    every = (faces[None] + (sides + 1) * np.arange(len(base))[:, None, None]).reshape(-1, 3)
    return _mesh(points.reshape(-1, 3), every.astype(np.int32))


def _on_ground(scene: Scene, places: FloatArray, lift: FloatArray | float) -> FloatArray:
    z = scene.terrain.height(places[:, 0], places[:, 1]) + lift
    return np.column_stack([places[:, :2], z])


def _trunks(scene: Scene) -> Mesh:
    base = _on_ground(scene, scene.trees, -0.5)
    radius = 0.06 * scene.trees[:, 2]
    return _cones(base, radius, scene.trees[:, 2] * 0.8, _TRUNK_SIDES)


def _crowns(scene: Scene) -> Mesh:
    height = scene.trees[:, 2]
    base = _on_ground(scene, scene.trees, 0.25 * height)
    shape = stream("crowns", scene.name, scene.seed).uniform(0.7, 1.0, TREES)
    lower = _cones(base, scene.trees[:, 3], 0.6 * height * shape, _CROWN_SIDES)
    lift = np.array([0.0, 0.0, 1.0]) * (0.3 * height)[:, None]
    upper = _cones(base + lift, 0.7 * scene.trees[:, 3], 0.5 * height * shape, _CROWN_SIDES)
    return _join([lower, upper])


def _posts(scene: Scene) -> Mesh:
    base = _on_ground(scene, scene.posts, 0.0)
    return _cones(base, np.full(POSTS, 0.12), np.full(POSTS, 1.1), _TRUNK_SIDES)
