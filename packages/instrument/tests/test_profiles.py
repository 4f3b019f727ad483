from __future__ import annotations

import asyncio
import gc
import selectors
import threading
import time
from types import SimpleNamespace

import pytest
from rolltop_instrument import WorkerTelemetry, names
from rolltop_instrument._profiles import GcProfile, LoopProfile

SHORT_S = 2.0**-11
"""As long as a look takes at the most; sums of it are exact."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Selector:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.takes = 0.0

    def select(self, timeout: float | None = None) -> list[object]:
        self.clock.now += self.takes
        return [timeout]


def started(clock: Clock) -> tuple[LoopProfile, Selector]:
    selector = Selector(clock)
    profile = LoopProfile(clock, looks=1)
    profile.start(SimpleNamespace(_selector=selector))
    return profile, selector


def test_times_are_split_by_what_the_selector_was_asked() -> None:
    clock = Clock()
    profile, selector = started(clock)
    clock.now += 3
    selector.takes = 2
    assert selector.select(None) == [None]
    clock.now += 1
    selector.takes = 0.25
    assert selector.select(0) == [0]
    assert profile.read() == (2, 0.25, 4)
    clock.now += 0.5
    selector.takes = 1
    selector.select(7.5)
    assert profile.read() == (3, 0.25, 4.5)


def test_one_look_of_seven_stands_for_all() -> None:
    clock = Clock()
    selector = Selector(clock)
    selector.takes = SHORT_S
    profile = LoopProfile(clock)
    profile.start(SimpleNamespace(_selector=selector))
    for n in range(1, 22):
        assert selector.select(0) == [0]
        if not n % 7:
            assert profile.read() == (0, SHORT_S * n, 0)
    assert selector.select(None) == [None]
    assert profile.read() == (SHORT_S, 21 * SHORT_S, 0)


def test_a_look_that_was_preempted_stands_for_itself_alone() -> None:
    clock = Clock()
    selector = Selector(clock)
    profile = LoopProfile(clock)
    profile.start(SimpleNamespace(_selector=selector))
    for n in range(7):
        selector.takes = 0.0 if n < 6 else 0.5
        selector.select(0)
    assert profile.read() == (0, 0.5, 0)


def test_work_that_still_runs_is_counted() -> None:
    clock = Clock()
    profile, _ = started(clock)
    clock.now += 60
    assert profile.read() == (0, 0, 60)


def test_idling_that_still_lasts_is_counted() -> None:
    clock = Clock()
    profile, selector = started(clock)
    seen = []

    def look(timeout: float | None = None) -> list[object]:
        clock.now += 5
        seen.append(profile.read())
        return []

    profile.stop()
    selector.select = look
    profile.start(SimpleNamespace(_selector=selector))
    selector.select(None)
    selector.select(0)
    assert seen == [(5, 0, 0), (5, 0, 5)]  # a look is work until it ends


def test_no_time_goes_back() -> None:
    """A look under way, which was taken for work, is none when it has ended."""
    clock = Clock()
    profile, selector = started(clock)

    def look(timeout: float | None = None) -> list[object]:
        clock.now += 0.5
        assert profile.read() == (0, 0, 3.5)
        return []

    profile.stop()
    selector.select = look
    profile.start(SimpleNamespace(_selector=selector))
    clock.now += 3
    selector.select(0)
    assert profile.read() == (0, 0.5, 3.5)
    clock.now += 1
    assert profile.read() == (0, 0.5, 4)


def test_an_error_in_select_leaves_the_times_right() -> None:
    clock = Clock()
    selector = Selector(clock)

    def broken(timeout: float | None = None) -> list[object]:
        clock.now += 1
        raise InterruptedError

    selector.select = broken
    profile = LoopProfile(clock, looks=1)
    profile.start(SimpleNamespace(_selector=selector))
    with pytest.raises(InterruptedError):
        selector.select(None)
    clock.now += 2
    assert profile.read() == (1, 0, 2)


def test_the_selector_is_given_back_as_it_was() -> None:
    profile, selector = started(Clock())
    assert "select" in vars(selector)
    profile.stop()
    assert "select" not in vars(selector)
    assert profile.read() is None


def test_a_stopped_profile_that_stays_wrapped_counts_nothing() -> None:
    clock = Clock()
    profile, selector = started(clock)
    inner = selector.select
    selector.select = lambda timeout=None: inner(timeout)  # somebody wraps it after us
    profile.stop()
    selector.takes = 0.5
    profile.start(SimpleNamespace(_selector=selector))
    selector.select(0)
    assert profile.read() == (0, 0.5, 0)


def test_two_profiles_of_one_loop_leave_in_any_order() -> None:
    clock = Clock()
    for first_out in (0, 1):
        selector = Selector(clock)
        loop = SimpleNamespace(_selector=selector)
        profiles = [LoopProfile(clock, looks=1), LoopProfile(clock, looks=1)]
        for profile in profiles:
            profile.start(loop)
        profiles[first_out].stop()
        selector.takes = 1
        selector.select(None)
        assert profiles[1 - first_out].stop() == (1, 0, 0)
        assert selector.select(4) == [4]


@pytest.mark.parametrize("loop", [SimpleNamespace(), SimpleNamespace(_selector=object())])
def test_a_loop_without_a_selector_has_a_reason_instead(
    loop: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    profile = LoopProfile()
    profile.start(loop)
    assert profile.read() is None
    assert profile.stop() is None
    assert "selector" in (profile.reason or "")
    assert len(caplog.records) == 1


def test_a_selector_that_cannot_be_wrapped_has_a_reason_too() -> None:
    class Closed:
        __slots__ = ()

        def select(self, timeout: float | None = None) -> list[object]:
            return []

    profile = LoopProfile()
    profile.start(SimpleNamespace(_selector=Closed()))
    assert "cannot be wrapped" in (profile.reason or "")


async def test_a_blocked_loop_is_seen_from_another_thread() -> None:
    seen: list[float] = []
    async with WorkerTelemetry() as telemetry:
        blocked = threading.Event()

        def look() -> None:
            blocked.wait()
            time.sleep(0.2)
            lines = telemetry.render().splitlines()
            (line,) = [x for x in lines if x.startswith("alpasim_event_loop_work_seconds_total")]
            seen.append(float(line.split()[-1]))

        watcher = threading.Thread(target=look)
        watcher.start()
        blocked.set()
        watcher.join()
    assert seen[0] >= 0.2


async def test_what_is_left_after_the_end_are_the_last_times() -> None:
    async with WorkerTelemetry() as telemetry:
        await asyncio.sleep(0.05)  # nobody reads the page meanwhile
    cell = telemetry._registry.cell
    assert cell(names.SIMULATION_ELAPSED)[0] >= 0.05
    assert cell(names.LOOP_IDLE)[0] > 0.01
    before = telemetry.render()
    assert telemetry.render() == before


async def test_a_reader_that_came_before_the_end_does_not_write_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside, ending = threading.Event(), threading.Event()
    async with WorkerTelemetry() as telemetry:
        profile, read = telemetry._loop_profile, telemetry._loop_profile.read

        def slowly() -> object:
            times = read()
            if threading.current_thread() is reader:
                inside.set()
                ending.wait(0.5)  # the end comes, waits for this reader, and has the last word
            return times

        monkeypatch.setattr(profile, "read", slowly)
        reader = threading.Thread(target=telemetry.render)
        reader.start()
        assert await asyncio.to_thread(inside.wait, 10)
        await asyncio.sleep(0.05)
    last = telemetry._registry.cell(names.LOOP_IDLE)[0]
    assert last > 0.01
    ending.set()
    reader.join()
    assert telemetry._registry.cell(names.LOOP_IDLE)[0] == last


async def test_a_worker_leaves_the_real_loop_and_the_collector_as_they_were() -> None:
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    assert isinstance(selector, selectors.BaseSelector)
    callbacks = list(gc.callbacks)
    async with WorkerTelemetry() as telemetry:
        assert "select" in vars(selector)
        assert len(gc.callbacks) == len(callbacks) + 1
        await asyncio.sleep(0.01)
        times = telemetry._loop_profile.read()
        assert times is not None
        assert times.idle_s > 0
    assert "select" not in vars(selector)
    assert gc.callbacks == callbacks


def test_collections_are_counted_and_the_longest_is_forgotten_again() -> None:
    clock = Clock()
    profile = GcProfile(window_s=30, clock=clock)
    profile.start()
    try:
        gc.collect()
        assert profile.read().collections == 1
    finally:
        profile.stop()
    for seconds in (2.0, 0.5):
        profile._on_phase("start", {})
        clock.now += seconds
        profile._on_phase("stop", {})
    assert profile.read() == (2.5, 2.0, 3)
    clock.now = 30.0 * 4 + 1
    assert profile.read().max_s == 2.0
    clock.now += 30
    assert profile.read() == (2.5, 0.0, 3)


def test_a_stop_without_its_start_is_ignored() -> None:
    profile = GcProfile()
    profile._on_phase("stop", {})
    assert profile.read().collections == 0
