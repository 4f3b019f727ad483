"""The camera: what it shows, that it repeats itself, and its cache of scenes."""

from __future__ import annotations

import numpy as np
import pytest
from rolltop_refsim.world import Camera, GroundProbe, Pose, Scene, make_scene
from rolltop_refsim.world.camera import Image
from rolltop_refsim.world.geometry import FloatArray


def _look(probe: GroundProbe, scene: Scene, s: float = 20.0, lateral: float = 0.0) -> Pose:
    x, y, heading = scene.road.at(s, lateral)[0]
    pose = Pose(float(x), float(y), yaw=float(heading))
    return probe.ground_intersection(scene, [pose])[0]


def _brightness(image: Image) -> FloatArray:
    total: FloatArray = image.astype(float).sum(axis=2)
    return total


def test_the_picture_shows_sky_grass_and_road(
    camera: Camera, probe: GroundProbe, scene: Scene
) -> None:
    image = camera.render(scene, _look(probe, scene)).image.astype(float)
    assert image.shape == (64, 64, 3)
    sky, road = image[4, 32], image[58, 26]
    assert sky[2] > sky[0]
    assert np.ptp(road) < 40
    assert sky.sum() > road.sum()
    grass = image[28:36, 56:]
    assert (grass[..., 1] > grass[..., 2]).mean() > 0.8


def test_the_lane_moves_with_the_car(camera: Camera, probe: GroundProbe, scene: Scene) -> None:
    def right_line(lateral: float) -> float:
        """Column of the brightest pixel right of the middle, a little below the horizon."""
        image = camera.render(scene, _look(probe, scene, lateral=lateral)).image
        return float(np.argmax(_brightness(image)[38, 32:]))

    assert right_line(0.8) > right_line(0.0) > right_line(-0.8)


def test_cars_are_seen(camera: Camera, probe: GroundProbe, scene: Scene) -> None:
    ego, lead = _look(probe, scene), _look(probe, scene, s=32.0)
    empty = camera.render(scene, ego).image
    followed = camera.render(scene, ego, [lead]).image
    changed = np.abs(empty.astype(int) - followed.astype(int)).sum(axis=2) > 30
    rows, columns = np.nonzero(changed)
    assert changed.sum() > 20
    assert 20 < rows.mean() < 44
    assert 22 < columns.mean() < 42


def test_the_picture_repeats_itself(camera: Camera, probe: GroundProbe, scene: Scene) -> None:
    ego = _look(probe, scene)
    first = camera.render(scene, ego).image
    for index in range(3):
        other = make_scene(f"other-{index}", index)
        assert not np.array_equal(camera.render(other, _look(probe, other)).image, first)
    again = camera.render(scene, ego)
    assert not again.cache_hit
    assert np.array_equal(again.image, first)
    second = Camera(cache_size=1)
    try:
        assert np.array_equal(second.render(scene, ego).image, first)
    finally:
        second.close()


def test_the_seed_changes_the_look(camera: Camera, probe: GroundProbe) -> None:
    images = [
        camera.render(scene, _look(probe, scene)).image
        for scene in (make_scene("one-road", seed) for seed in range(3))
    ]
    differences = [np.abs(images[0].astype(int) - image).mean() for image in images[1:]]
    assert min(differences) > 2


def test_the_cache_counts(probe: GroundProbe) -> None:
    a, b, c = (make_scene("cached", seed) for seed in range(3))
    camera = Camera(cache_size=2)
    try:
        frames = [camera.render(scene, _look(probe, scene)) for scene in (a, a, b, a, c, a, b)]
    finally:
        camera.close()
    # c takes the slot of b, which was used longest ago, and b then has to be loaded again.
    hits = [frame.cache_hit for frame in frames]
    assert hits == [False, True, False, True, False, True, False]
    assert (camera.stats.hits, camera.stats.misses) == (3, 4)
    assert all((frame.load_s > 0) is not frame.cache_hit for frame in frames)
    assert camera.stats.load_s == pytest.approx(sum(frame.load_s for frame in frames))


def test_size_and_sampling(scene: Scene, probe: GroundProbe) -> None:
    camera = Camera(size=(24, 32), cache_size=1, supersampling=1)
    try:
        assert camera.render(scene, _look(probe, scene)).image.shape == (24, 32, 3)
    finally:
        camera.close()
    with pytest.raises(ValueError, match="cache size"):
        Camera(cache_size=0)
