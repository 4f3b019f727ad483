"""The whole closed loop, opened once per session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rolltop_refsim.training.rollout import World


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()
