from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.catalogue.panels import PANELS
from rolltop.report.style import Colours, elapsed, is_count, number, scaled, time_ticks


@given(st.floats(0.5, 1e7))
def test_ticks_are_few_round_and_within(span_s: float) -> None:
    ticks = time_ticks(span_s)

    assert 1 <= len(ticks) <= 6
    assert ticks[0] == 0
    assert ticks[-1] <= span_s
    assert len({elapsed(t) for t in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("s", 2.0, (1.0, "s")),
        ("s", 0.05, (1e3, "ms")),
        ("s", 2e-4, (1e6, "µs")),
        ("s, whole run", 0.05, (1e3, "ms, whole run")),
        ("s of calls per step", 0.05, (1e3, "ms of calls per step")),
        ("steps/s", 0.05, (1.0, "steps/s")),
        ("s", 0.0, (1.0, "s")),
        ("samples", 0.1, (1.0, "samples")),
    ],
)
def test_seconds_are_said_so_that_they_read_well(
    unit: str, largest: float, expected: tuple[float, str]
) -> None:
    assert scaled(unit, largest) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (980, "980"), (12_480, "12.5k"), (3e6, "3M"), (-2e3, "-2k")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0"), (40, "40 s"), (150, "2.5 min"), (9000, "2.5 h")]
)
def test_times_have_their_unit(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def test_a_colour_does_not_depend_on_who_else_is_there() -> None:
    assert Colours(["driver"]).of("driver") == Colours(["a", "driver", "z"]).of("driver")
    assert Colours(["renderer", "sensor"]).of("sensor") == Colours(["sensor"]).of("sensor")


def test_few_workers_are_far_apart_in_colour() -> None:
    colours = Colours([str(i) for i in range(8)])

    assert len({colours.of(str(i)) for i in range(8)}) == 8


def test_a_services_colour_is_nothing_elses() -> None:
    services = ["renderer", "driver", "physics", "controller", "trafficsim"]
    others = ["completed", "failed attempts", "abandoned", "mean", "median", "95th percentile",
              "hit", "miss", "work", "poll", "idle", "waiting", "fifo", "alpasim-runtime-worker",
              "sensor", "all workers", "since the start"]  # fmt: skip
    colours = Colours([*services, *others])

    assert len({colours.of(name) for name in services}) == len(services)
    assert not {colours.of(name) for name in services} & {colours.of(name) for name in others}


def test_units_of_counts_are_known() -> None:
    assert [p.unit for p in PANELS if is_count(p.unit)] == [
        "rollouts", "calls", "calls or attempts", "rollouts", "rollouts", "requests",
        "rollouts, whole run", "targets", "samples",
    ]  # fmt: skip
