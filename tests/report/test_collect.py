from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rolltop.catalogue.panels import PANELS_BY_KEY
from rolltop.errors import QueryError
from rolltop.model.series import Series
from rolltop.report.collect import Resolution, collect_panels
from rolltop.report.evidence import Missing, ask_scrapes
from rolltop.report.reader import RunReader, Window

if TYPE_CHECKING:
    from collections.abc import Callable

PANELS = [PANELS_BY_KEY[key] for key in ("step_rate", "calls", "gpu_memory", "targets_up")]


class Answers:
    """A Prometheus that answers every query the same way, and keeps what it was asked."""

    def __init__(self, answer: Callable[[str], list[Series]]) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        self.asked.append(promql)
        return self._answer(promql)

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        return self.query(promql)


def series(*values: float, **labels: str) -> Series:
    return Series(labels, np.arange(len(values), dtype=float), np.array(values))


def test_one_failing_query_costs_one_panel() -> None:
    def answer(promql: str) -> list[Series]:
        if "rpc" in promql:
            raise QueryError("refused: too many samples")
        if "FB_USED" in promql:
            raise RuntimeError("not foreseen")
        return [series(1, 2, job="a")]

    data = collect_panels(Answers(answer), PANELS, 0, 10, 1)

    assert [d.empty for d in data] == [False, True, True, False]
    assert data[1].reason == "the query failed: refused: too many samples"
    assert data[2].reason == "the query failed: not foreseen"
    assert data[1].failed


def test_an_absent_series_is_named_with_what_it_means() -> None:
    data = collect_panels(Answers(lambda _: []), PANELS[:1], 0, 10, 1)

    assert data[0].reason == (
        "no worker recorded a step (no series alpasim_step_duration_seconds_count)"
    )
    assert not data[0].failed


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ({}, "not in this version of rolltop, which starts no GPU exporter"),
        (
            {"alpasim-dcgm": False},
            "the GPU exporter never answered a scrape (job alpasim-dcgm)",
        ),
        (
            {"alpasim-dcgm": True},
            "the GPU exporter does not report memory (no series DCGM_FI_DEV_FB_USED)",
        ),
    ],
)
def test_an_absent_exporter_is_not_asked(jobs: dict[str, bool], reason: str) -> None:
    answers = Answers(lambda _: [])
    data = collect_panels(answers, [PANELS_BY_KEY["gpu_memory"]], 0, 10, 1, jobs=jobs)

    assert data[0].reason == reason
    assert bool(answers.asked) == jobs.get("alpasim-dcgm", False)


def test_a_worker_that_is_absent_is_of_this_run_alone() -> None:
    data = collect_panels(Answers(lambda _: []), PANELS[:1], 0, 10, 1, jobs={})

    assert data[0].reason == (
        "no runtime worker in this run (no target of job alpasim-runtime-worker)"
    )


def test_queries_are_of_the_run_alone() -> None:
    answers = Answers(lambda _: [])
    collect_panels(answers, list(PANELS_BY_KEY.values()), 0, 10, 1, run_uuid="0f3a")

    assert answers.asked
    assert all('run_uuid="0f3a"' in promql and "$" not in promql for promql in answers.asked)


def test_names_of_services_are_the_configurations() -> None:
    answers = Answers(lambda _: [series(1, 2, service="sensorsim")])
    (data,) = collect_panels(answers, [PANELS_BY_KEY["calls"]], 0, 10, 1)

    assert (data.lines[0].legend, data.lines[0].colour_key) == ("renderer", "renderer")


def test_what_cannot_be_drawn_is_a_gap_and_nothing_but_gaps_is_no_series() -> None:
    answers = Answers(lambda _: [series(1, np.inf, 1e40, 2), series(np.nan, np.nan)])
    (data,) = collect_panels(answers, [PANELS_BY_KEY["step_rate"]], 0, 10, 1)

    assert len(data.lines) == 1
    assert np.isnan(data.lines[0].values).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("seconds", "interval", "step", "window"),
    [(60, 1, 1, 5), (120, 1, 1, 10), (3600, 1, 12, 24), (600, 5, 5, 25), (0, 1, 1, 5)],
)
def test_resolution_suits_length_and_interval(
    seconds: float, interval: float, step: float, window: float
) -> None:
    assert Resolution.of(Window(0, seconds), interval) == Resolution(step, window)


def test_a_slope_has_enough_samples_of_what_is_scraped_seldom() -> None:
    answers = Answers(lambda _: [])
    panels = [PANELS_BY_KEY[key] for key in ("process_cpu", "step_rate")]
    collect_panels(answers, panels, 0, 60, 1, intervals_s={"alpasim-process": 5.0})

    assert "[25s]" in next(promql for promql in answers.asked if "namedprocess" in promql)
    assert "[5s]" in next(promql for promql in answers.asked if "step_duration" in promql)


def test_what_a_run_came_to_stands_at_its_end() -> None:
    assert Window(0.5, 30.2).whole_steps(1.0) == Window(pytest.approx(1.2), 30.2)
    assert Window(3.0, 3.0).whole_steps(1.0) == Window(3.0, 3.0)


def scrapes(*times: tuple[float, float]) -> Series:
    return Series(
        {"job": "alpasim-runtime-worker", "instance": "127.0.0.1:9001"},
        np.array([t for t, _ in times]),
        np.array([up for _, up in times]),
    )


@pytest.mark.parametrize(
    ("up", "lost", "gaps_s"),
    [
        ([(t, 1) for t in range(10)], 0, 0.0),
        ([(0, 0), (1, 0), *((t, 1) for t in range(2, 9)), (9, 0)], 0, 0.0),
        ([*((t, 1) for t in range(5)), (5, 0), *((t, 1) for t in range(6, 10))], 1, 1.0),
        ([*((t, 1) for t in range(5)), *((t, 1) for t in range(9, 14))], 4, 4.0),
        ([(t + 0.3 * (t % 2), 1) for t in range(10)], 0, 0.0),
        ([(t, 0) for t in range(10)], 10, 10.0),
    ],
    ids=["none", "before its start and after its end", "failed", "not done", "jitter", "silent"],
)
def test_lost_scrapes_are_those_of_a_worker_that_lived(
    up: list[tuple[float, float]], lost: int, gaps_s: float
) -> None:
    reader = RunReader(Answers(lambda _: [scrapes(*up)]), "")
    found = ask_scrapes(reader, Window(0, 20), Missing())

    assert found.lost == lost
    assert found.gaps_s == pytest.approx(gaps_s, abs=0.01)
    answered = any(value for _, value in up)
    assert found.jobs == {"alpasim-runtime-worker": answered}
    assert found.silent == (() if answered else (("alpasim-runtime-worker", "127.0.0.1:9001"),))


def test_scrapes_of_nobody_are_unknown_not_perfect() -> None:
    missing = Missing()
    found = ask_scrapes(RunReader(Answers(lambda _: []), ""), Window(0, 20), missing)

    assert (found.lost, found.gaps_s, found.interval_s) == (None, None, None)
    assert missing.reasons == {"up": "no target of the run exports it"}
