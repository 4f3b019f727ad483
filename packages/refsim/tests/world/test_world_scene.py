"""Scenes: the same in each process, smooth roads, clear of trees."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolltop_refsim.world import LANE_HALF_WIDTH_M, RouteStatus, Scene, SceneCache, make_scene
from rolltop_refsim.world.geometry import (
    Pose,
    euler,
    quaternion,
    to_vehicle,
    to_world,
)
from rolltop_refsim.world.road import MAX_CURVATURE, SPACING_M, make_road
from rolltop_refsim.world.route import LOST_M, route_progress
from rolltop_refsim.world.seeds import stream
from rolltop_refsim.world.terrain import MAX_HEIGHT_M

_DIGEST = """
import hashlib
from rolltop_refsim.world import initial_traffic, make_scene
scene = make_scene("road-0001", 7)
parts = [scene.road.x, scene.road.y, scene.height_grid, scene.trees, scene.posts]
digest = hashlib.sha256(b"".join(part.tobytes() for part in parts))
digest.update(repr((scene.look, scene.start, scene.tyre_friction)).encode())
digest.update(initial_traffic(scene).to_bytes())
print(digest.hexdigest())
"""

angles = st.floats(-1.4, 1.4)
distances = st.floats(-200, 200)


def _digest(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_scene_is_the_same_in_each_process() -> None:
    assert _digest("1") == _digest("2")


def test_seed_and_name_make_the_scene() -> None:
    scene, same = make_scene("a", 1), make_scene("a", 1)
    other_seed, other_name = make_scene("a", 2), make_scene("b", 1)
    assert scene.look == same.look
    assert np.array_equal(scene.trees, same.trees)
    assert scene.look != other_seed.look
    assert scene.start != other_seed.start
    assert np.array_equal(scene.road.x, other_seed.road.x)
    assert not np.array_equal(scene.road.y, other_name.road.y)


def test_stream_keeps_parts_of_a_key_apart() -> None:
    keys: list[tuple[str | int, ...]] = [("a", "bc"), ("ab", "c"), ("abc",), ("a", 1), ("a", "1")]
    numbers = {stream(*key).integers(2**63) for key in keys}
    assert len(numbers) == len(keys)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_roads_are_smooth(index: int) -> None:
    road = make_road(stream("road", index))
    steps = np.hypot(np.diff(road.x), np.diff(road.y))
    np.testing.assert_allclose(steps, SPACING_M, rtol=1e-6)
    assert np.abs(road.curvature).max() <= MAX_CURVATURE
    np.testing.assert_allclose(np.diff(road.heading), road.curvature[1:] * SPACING_M, atol=2e-3)
    # The lane never turns back: the coarse ground and the height grid lie along x.
    assert np.abs(road.heading).max() < 1.3


@given(st.floats(0, 300), st.floats(-5, 5))
@settings(max_examples=60, deadline=None)
def test_project_undoes_at(s: float, lateral: float) -> None:
    road = make_scene("test-road", 3).road
    x, y, _ = road.at(s, lateral)[0]
    found_s, found_lateral = road.project(x, y)
    assert found_s == pytest.approx(s, abs=0.05)
    assert found_lateral == pytest.approx(lateral, abs=0.02)


def test_nothing_stands_on_the_road(scene: Scene) -> None:
    for x, y in np.vstack([scene.trees[:, :2], scene.posts]):
        _, lateral = scene.road.project(float(x), float(y))
        assert lateral < -LANE_HALF_WIDTH_M - 1 or lateral > 3 * LANE_HALF_WIDTH_M + 1


def test_ground_fits_the_height_field(scene: Scene) -> None:
    grid = scene.height_grid
    assert 0 < grid.min() < grid.max() < 1
    assert (grid.max() - grid.min()) * 2 * MAX_HEIGHT_M > 0.5


def test_route_status(scene: Scene) -> None:
    def at(s: float, lateral: float) -> RouteStatus:
        x, y, _ = scene.road.at(s, lateral)[0]
        return route_progress(scene, Pose(float(x), float(y))).status

    assert at(10, 0) is RouteStatus.UNDER_WAY
    assert at(scene.road.route_length_m + 1, 0) is RouteStatus.ARRIVED
    assert at(10, LOST_M + 2) is RouteStatus.LOST


def test_scene_cache_keeps_the_scenes_used_last() -> None:
    cache = SceneCache(2)
    first = cache.get("a", 1)
    cache.get("b", 1)
    assert cache.get("a", 1) is first
    second = cache.get("b", 1)
    cache.get("c", 1)
    assert cache.get("b", 1) is second
    assert cache.get("a", 1) is not first
    with pytest.raises(ValueError, match="at least 1"):
        SceneCache(0)


@given(angles, angles, angles)
def test_angles_survive_the_quaternion(yaw: float, pitch: float, roll: float) -> None:
    assert euler(quaternion(yaw, pitch, roll)) == pytest.approx((yaw, pitch, roll), abs=1e-9)


@given(distances, distances, angles, distances, distances)
def test_points_survive_the_frames(x: float, y: float, yaw: float, u: float, v: float) -> None:
    pose, point = Pose(x, y, yaw=yaw), np.array([[u, v]])
    np.testing.assert_allclose(to_vehicle(pose, to_world(pose, point)), point, atol=1e-9)


def test_hash_of_a_road_is_what_it_was() -> None:
    # Roads are named in results: a change of this number changes what old results mean.
    curvature = np.round(make_scene("road-0001", 7).road.curvature, 9)
    assert hashlib.sha256(curvature.tobytes()).hexdigest()[:12] == "49f4300a66f4"
