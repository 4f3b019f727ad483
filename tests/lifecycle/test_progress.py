"""What a person sees while a run goes on."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.lifecycle.progress import (
    Pace,
    PlainProgress,
    RunStatus,
    TerminalProgress,
    describe,
    format_duration,
    make_progress,
    pace_of,
    time_left_s,
)
from rolltop.model.run import RolloutCounts


def _status(completed: int, elapsed_s: float, requested: int = 12, **fields: object) -> RunStatus:
    counts = RolloutCounts(requested=requested, completed=completed)
    return RunStatus(counts=counts, elapsed_s=elapsed_s, **fields)  # type: ignore[arg-type]


def test_describe_names_only_what_is_known() -> None:
    assert describe(_status(0, 3.0)) == "0/12 rollouts · first rollouts under way"
    text = describe(_status(4, 20.0, left_s=40.0, busiest="renderer", busiest_queue=3.0))
    assert text == "4/12 rollouts · 5.0 s/rollout · renderer queue 3 · about 40 s left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (187, "3:07"), (7387, "2:03:07")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def _left(ends_s: list[float], now_s: float, requested: int, at_once: int) -> float | None:
    ended = sorted(end for end in ends_s if end <= now_s)
    return time_left_s(
        ended[-at_once:],
        n_ended=len(ended),
        n_left=requested - len(ended),
        at_once=at_once,
        elapsed_s=now_s,
    )


def test_no_time_left_is_said_before_a_rollout_has_ended() -> None:
    assert _left([], 50.0, requested=8, at_once=4) is None
    assert describe(_status(0, 50.0)) == "0/12 rollouts · first rollouts under way"


def test_the_time_left_stands_beside_what_it_is_reckoned_from() -> None:
    ends_s = [10.0] * 6 + [21.0, 21.5, 22.0, 23.0, 24.0, 25.5, 30.0, 30.5]
    pace = pace_of(ends_s[-12:], n_ended=14, at_once=12)
    assert pace == Pace(12, sum(ends_s[-12:]) / 14)
    left_s = time_left_s(ends_s[-12:], n_ended=14, n_left=22, at_once=12, elapsed_s=30.8)
    text = describe(_status(14, 30.8, 36, left_s=left_s, pace=pace))
    assert text == "14/36 rollouts · 2.2 s/rollout · about 29 s left (12 at once, 17 s each)"
    text = describe(_status(33, 70.0, 36, left_s=8.0, pace=Pace(12, 9.96)))
    assert text.endswith("about 8 s left (3 at once, 10.0 s each)")


def test_in_waves_the_time_left_is_that_of_the_waves_left() -> None:
    ends_s = [60.0] * 4 + [120.0] * 4
    assert [_left(ends_s, now, 8, 4) for now in (60.0, 80.0, 119.0, 120.0)] == [60, 40, 1, 0]


def test_a_wave_that_takes_longer_makes_no_time_grow() -> None:
    assert [_left([60.0] * 4, now, 8, 4) for now in (119.0, 130.0, 500.0)] == [1, 0, 0]
    assert describe(_status(4, 500.0, left_s=0.0)) == "4/12 rollouts · 125.0 s/rollout"


def test_rollouts_that_do_not_fill_a_wave_take_a_whole_one() -> None:
    assert _left([10.0] * 4, 12.0, requested=9, at_once=4) == 18.0


def test_slots_out_of_step() -> None:
    assert _left([5.0, 10.0, 15.0], 15.0, requested=8, at_once=2) == pytest.approx(20.0)


@given(
    durations_s=st.lists(st.floats(0.1, 100.0), min_size=1, max_size=30),
    at_once=st.integers(1, 8),
    data=st.data(),
)
def test_it_never_grows_while_nothing_ends(
    durations_s: list[float], at_once: int, data: st.DataObject
) -> None:
    slots_s = [0.0] * min(at_once, len(durations_s))
    ends_s = []
    for duration_s in durations_s:
        slot = slots_s.index(min(slots_s))
        slots_s[slot] += duration_s
        ends_s.append(slots_s[slot])
    known = sorted(ends_s)[: data.draw(st.integers(1, len(ends_s)))]
    times_s = sorted(data.draw(st.lists(st.floats(known[-1], 1e4), min_size=2, max_size=5)))
    left_s = [_left(known, now, len(ends_s), len(slots_s)) for now in times_s]
    assert None not in left_s
    assert left_s == sorted(left_s, reverse=True)  # type: ignore[type-var]


@given(duration_s=st.floats(0.1, 100.0), n=st.integers(2, 40), at_once=st.integers(1, 8))
def test_it_is_right_where_all_take_as_long(duration_s: float, n: int, at_once: int) -> None:
    slots = min(at_once, n)
    ends_s = [duration_s * (1 + i // slots) for i in range(n)]
    for now_s in (ends_s[0], ends_s[0] * 1.5):
        expected = max(0.0, ends_s[-1] - now_s)
        assert _left(ends_s, now_s, n, slots) == pytest.approx(expected, abs=1e-6)


def test_plain_lines_are_few_and_the_last_one_is_written() -> None:
    lines: list[str] = []
    clock = [0.0]
    view = PlainProgress(lines.append, monotonic=lambda: clock[0])
    for completed in range(13):
        clock[0] += 1.0
        view.update(_status(completed, clock[0]))
    assert len(lines) == 3
    assert lines[-1].startswith("12/12 rollouts")


def test_the_final_line_is_written_once() -> None:
    lines: list[str] = []
    view = PlainProgress(lines.append, monotonic=lambda: 0.0)
    for queue in (3.0, 2.0, 0.0):
        view.update(_status(12, 24.0 + queue, busiest="renderer", busiest_queue=queue))
    assert lines == ["12/12 rollouts · 2.2 s/rollout"]


def test_a_first_wave_that_is_discarded_is_not_left() -> None:
    counts = RolloutCounts(requested=12, completed=8, first_wave=4)
    status = RunStatus(counts=counts, elapsed_s=16.0, left_s=0.0)
    assert status.over
    assert describe(status) == "8/12 rollouts · 2.0 s/rollout"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_that_goes_away_is_survived(terminal: bool) -> None:
    class Gone(io.StringIO):
        def isatty(self) -> bool:
            return terminal

        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    view = make_progress(Gone())
    assert isinstance(view, TerminalProgress) is terminal
    view.phase("starting")
    view.update(_status(1, 1.0))
    view.note("a note")
    view.close()


def test_no_terminal_gets_plain_lines() -> None:
    output = io.StringIO()
    view = make_progress(output)
    view.phase("starting [12] services")
    assert output.getvalue() == "starting [12] services\n"


def test_a_long_line_in_a_log_stays_one_line() -> None:
    output = io.StringIO()
    make_progress(output).note("warning: " + "very " * 60 + "long")
    assert output.getvalue().count("\n") == 1
