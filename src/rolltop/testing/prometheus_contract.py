"""What any Prometheus does when it is asked through ``Prometheus``: the fake and the real one.

A test module makes a class of it and gives the fixture ``prometheus``, a client of a server that
has the series of :func:`history` and nothing else.
"""

# ruff: noqa: D102 (a test says by its name what holds)

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rolltop.errors import QueryError
from rolltop.model.series import Series
from rolltop.prometheus.query import MAX_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolltop.prometheus.query import Prometheus

START_S = 1_700_000_000.0
STEP_S = 10.0
N_SAMPLES = 121
END_S = START_S + STEP_S * (N_SAMPLES - 1)


def history() -> list[Series]:
    """Return the series of the contract: two counters, and a gauge with values that are no numbers.

    All have a sample every ten seconds for twenty minutes.
    """
    index = np.arange(N_SAMPLES, dtype=np.float64)
    times = START_S + STEP_S * index
    strange = np.zeros(N_SAMPLES)
    strange[:3] = (math.nan, math.inf, -math.inf)
    return [
        Series({"__name__": "steps", "worker": "0"}, times, 2.0 * index),
        Series({"__name__": "steps", "worker": "1"}, times, 3.0 * index),
        Series({"__name__": "strange", "worker": 'a "b" \\ ü'}, times, strange),
    ]


def render_openmetrics(series: Iterable[Series]) -> str:
    """Return series as OpenMetrics text, which ``promtool`` turns into blocks."""
    lines = []
    for one in series:
        labels = ",".join(
            f'{name}="{_escaped(value)}"'
            for name, value in one.labels.items()
            if name != "__name__"
        )
        for t, value in zip(one.t_s.tolist(), one.values.tolist(), strict=True):
            lines.append(f"{one.labels['__name__']}{{{labels}}} {_number(value)} {t:.3f}")
    return "\n".join([*lines, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value).replace("inf", "Inf")


class PrometheusContract:
    """The tests; a subclass has the fixture ``prometheus``."""

    def test_gives_the_value_at_a_time(self, prometheus: Prometheus) -> None:
        (one,) = prometheus.query('steps{worker="1"}', at=START_S + 20.0)
        assert one.labels == {"__name__": "steps", "worker": "1"}
        assert one.t_s.tolist() == [START_S + 20.0]
        assert one.values.tolist() == [6.0]

    def test_gives_the_samples_of_a_range_selector(self, prometheus: Prometheus) -> None:
        (one,) = prometheus.query('steps{worker="0"}[25s]', at=START_S + 41.0)
        assert one.t_s.tolist() == [START_S + 20.0, START_S + 30.0, START_S + 40.0]
        assert one.values.tolist() == [4.0, 6.0, 8.0]

    def test_a_scalar_is_a_series_without_labels(self, prometheus: Prometheus) -> None:
        (one,) = prometheus.query("42", at=START_S)
        assert one.labels == {}
        assert one.values.tolist() == [42.0]

    def test_keeps_what_is_no_number(self, prometheus: Prometheus) -> None:
        (one,) = prometheus.query_range("strange", START_S, START_S + 30.0, STEP_S)
        assert math.isnan(one.values[0])
        assert one.values[1:].tolist() == [math.inf, -math.inf, 0.0]
        assert one.labels["worker"] == 'a "b" \\ ü'

    def test_a_range_has_both_its_ends(self, prometheus: Prometheus) -> None:
        found = prometheus.query_range("steps", START_S, END_S, STEP_S)
        assert sorted(one.labels["worker"] for one in found) == ["0", "1"]
        for one in found:
            assert one.t_s.tolist() == (START_S + STEP_S * np.arange(N_SAMPLES)).tolist()

    def test_a_range_of_one_moment(self, prometheus: Prometheus) -> None:
        (one,) = prometheus.query_range('steps{worker="0"}', START_S, START_S, 1.0)
        assert one.values.tolist() == [0.0]

    def test_more_points_than_one_answer_holds(self, prometheus: Prometheus) -> None:
        step_s = 0.05
        (one,) = prometheus.query_range('steps{worker="0"}', START_S, END_S, step_s)
        n = round((END_S - START_S) / step_s) + 1
        assert n > 2 * MAX_POINTS
        assert one.t_s.shape == (n,)
        assert set(np.diff(np.rint(one.t_s * 1000))) == {50.0}
        assert one.values[-1] == 2.0 * (N_SAMPLES - 1)

    def test_nothing_found_is_no_error(self, prometheus: Prometheus) -> None:
        assert prometheus.query("absent_series", at=START_S) == []
        assert prometheus.query_range("absent_series", START_S, END_S, STEP_S) == []
        assert prometheus.query("steps", at=START_S - 1000.0) == []
        assert prometheus.series("absent_series", START_S, END_S) == []

    def test_what_is_no_expression_is_refused(self, prometheus: Prometheus) -> None:
        with pytest.raises(QueryError) as caught:
            prometheus.query('steps{worker="0"', at=START_S)
        assert prometheus.url in caught.value.message
        assert 'steps{worker="0"' in caught.value.message
        assert caught.value.hint

    def test_samples_over_time_are_refused(self, prometheus: Prometheus) -> None:
        with pytest.raises(QueryError, match="range vector"):
            prometheus.query_range("steps[1m]", START_S, END_S, STEP_S)

    def test_finds_series_by_any_of_the_matchers(self, prometheus: Prometheus) -> None:
        found = prometheus.series(['steps{worker="1"}', "strange"], START_S, END_S)
        assert sorted(one["__name__"] for one in found) == ["steps", "strange"]

    def test_matchers_of_all_kinds(self, prometheus: Prometheus) -> None:
        for matcher, workers in {
            'worker=~"0|1"': ["0", "1"],
            'worker!="0"': ["1"],
            'worker!~"[01]"': [],
            'absent=""': ["0", "1"],
        }.items():
            found = prometheus.query(f"steps{{{matcher}}}", at=END_S)
            assert sorted(one.labels["worker"] for one in found) == workers

    def test_names_labels_and_values(self, prometheus: Prometheus) -> None:
        assert {"__name__", "worker"} <= set(prometheus.labels())
        assert {"steps", "strange"} <= set(prometheus.label_values("__name__"))
        assert prometheus.label_values("absent") == []

    def test_scrapes_nothing(self, prometheus: Prometheus) -> None:
        assert prometheus.targets() == []

    def test_says_what_it_is(self, prometheus: Prometheus) -> None:
        assert prometheus.ready()
        assert prometheus.version()[0].isdigit()
        assert prometheus.runtime_info()["storageRetention"] == "100y"

    def test_a_page_that_it_has_not(self, prometheus: Prometheus) -> None:
        assert not prometheus.page("/absent-page")
