"""When a run's work ended, asked of a real Prometheus that holds its being stopped too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rolltop.errors import QueryError
from rolltop.report.last_move import last_move_s
from rolltop.report.reader import RunReader, Window
from tests.report.conftest import serving_text

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.model.series import Series
    from rolltop.prometheus.binary import Binary

START_S = 1_750_000_000.0
STEPS, ROLLOUTS = "alpasim_step_duration_seconds_count", "alpasim_rollouts_total"


def _line(name: str, labels: str, t_s: float, value: float) -> str:
    labels = f'{labels}run_uuid="u",worker_id="0"'
    return f"{name}{{{labels}}} {value:g} {START_S + t_s:.3f}"


def _scraped(stops_s: int, ends_s: int, every_s: int) -> str:
    """A worker that steps until ``stops_s``, completes its last rollout then, and is scraped on.

    What a stop makes of it is there too: failed rollouts, and another worker that never moved.
    """
    steps, completed, failed, idle = [], [], [], []
    for t in range(0, ends_s + 1, every_s):
        steps.append(_line(STEPS, "", t, min(t, stops_s) * 3))
        completed.append(_line(ROLLOUTS, 'status="completed",', t, min(t, stops_s) // 100))
        failed.append(_line(ROLLOUTS, 'status="failed",', t, max(0, t - stops_s)))
        idle.append(_line(STEPS, 'of="other",', t, 7))
    return "\n".join([*steps, *idle, *completed, *failed, "# EOF", ""])


@pytest.mark.parametrize(
    ("stops_s", "ends_s", "every_s"), [(40, 60, 1), (3, 60, 1), (9000, 9600, 15), (40, 40, 1)]
)
def test_it_is_when_the_counters_rose_last(
    stops_s: int, ends_s: int, every_s: int, tmp_path: Path, binary: Binary
) -> None:
    window = Window(START_S, START_S + ends_s)
    with serving_text(_scraped(stops_s, ends_s, every_s), tmp_path, binary) as prometheus:
        assert last_move_s(RunReader(prometheus, "u"), window) == START_S + stops_s
        assert last_move_s(RunReader(prometheus, ""), window) == START_S + stops_s
        assert last_move_s(RunReader(prometheus, "another"), window) is None


def test_a_run_that_never_drove_has_none(tmp_path: Path, binary: Binary) -> None:
    with serving_text(_scraped(0, 60, 1), tmp_path, binary) as prometheus:
        window = Window(START_S, START_S + 60)
        assert last_move_s(RunReader(prometheus, "u"), window) is None


def test_no_answer_is_no_time() -> None:
    class Silent:
        def query(self, promql: str, at: float | None = None) -> list[Series]:
            raise QueryError(promql)

        def query_range(
            self, promql: str, start_s: float, end_s: float, step_s: float
        ) -> list[Series]:
            raise QueryError(promql)

    assert last_move_s(RunReader(Silent(), "u"), Window(0.0, 60.0)) is None
