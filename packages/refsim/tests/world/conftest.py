"""Parts of the world, compiled once per session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rolltop_refsim.world import Camera, Dynamics, GroundProbe, Scene, make_scene


@pytest.fixture(scope="session")
def scene() -> Scene:
    return make_scene("test-road", 3)


@pytest.fixture(scope="session")
def dynamics() -> Dynamics:
    return Dynamics()


@pytest.fixture(scope="session")
def probe() -> GroundProbe:
    return GroundProbe()


@pytest.fixture(scope="session")
def camera() -> Iterator[Camera]:
    camera = Camera(cache_size=2)
    yield camera
    camera.close()
