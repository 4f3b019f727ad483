from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rolltop_tiny import world


def driven(seed: int, steps: int = 200) -> list[float]:
    state, bends, offsets = world.start(), world.bends(seed), []
    for step in range(steps):
        state |= {"steps": step, "bend": next(bends)}
        for method in world.METHODS.values():
            state |= method(state)
        offsets.append(state["offset_m"])
    return offsets


@given(st.integers(0, 2**31))
def test_the_car_keeps_its_lane(seed: int) -> None:
    assert max(map(abs, driven(seed))) < 1.8


def test_the_same_seed_drives_the_same() -> None:
    assert driven(7) == driven(7)
    assert driven(7) != driven(8)
