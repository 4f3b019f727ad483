"""What a person sees while a run goes on."""

from __future__ import annotations

import io

import pytest

from rolltop.lifecycle.progress import (
    PlainProgress,
    RunStatus,
    TerminalProgress,
    describe,
    format_duration,
    make_progress,
)
from rolltop.model.run import RolloutCounts


def _status(completed: int, elapsed_s: float, requested: int = 12, **fields: object) -> RunStatus:
    counts = RolloutCounts(requested=requested, completed=completed)
    return RunStatus(counts=counts, elapsed_s=elapsed_s, **fields)  # type: ignore[arg-type]


def test_describe_names_only_what_is_known() -> None:
    assert describe(_status(0, 3.0)) == "0/12 rollouts"
    text = describe(_status(4, 20.0, busiest="renderer", busiest_queue=3.0))
    assert text == "4/12 rollouts · 5.0 s/rollout · renderer queue 3 · about 40 s left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (187, "3:07"), (7387, "2:03:07")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


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
    status = RunStatus(counts=counts, elapsed_s=16.0, at_once=4)
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
