"""Reading answers: what Prometheus writes is read back, anything else is refused in one way."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.model.series import Series
from rolltop.prometheus.results import (
    MalformedError,
    ScrapedTarget,
    merge,
    parse_data,
    parse_duration,
    parse_error,
    parse_label_sets,
    parse_series,
    parse_strings,
    parse_targets,
    parse_time,
)
from rolltop.testing.prometheus import FakePrometheus

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["resultType", "result", "metric", "value", "values", "x"]),
            inner | st.sampled_from(["vector", "matrix", "scalar"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)
LABELS = st.dictionaries(st.text("ab_", min_size=1, max_size=3), st.text(max_size=5), max_size=3)
VALUES = st.floats(width=64)


@given(JSON)
def test_anything_is_series_or_malformed(data):
    for parse in (parse_series, parse_targets, parse_label_sets, parse_strings):
        with suppress(MalformedError):
            parse(data)


@given(st.binary() | JSON.map(lambda data: json.dumps(data).encode()))
def test_any_body_is_data_or_malformed(body):
    parse_error(body)
    with suppress(MalformedError):
        parse_data(body)


@given(st.lists(st.tuples(LABELS, st.lists(VALUES, min_size=1, max_size=5)), max_size=4))
def test_a_matrix_is_read_back(rows):
    result = [
        {"metric": labels, "values": [[t, repr(v)] for t, v in enumerate(values)]}
        for labels, values in rows
    ]
    read = parse_series({"resultType": "matrix", "result": result})
    assert [one.labels for one in read] == [labels for labels, _ in rows]
    for one, (_, values) in zip(read, rows, strict=True):
        assert one.values.dtype == one.t_s.dtype == np.float64
        np.testing.assert_array_equal(one.values, np.array(values))


def test_go_writes_infinity_so():
    data = {"resultType": "scalar", "result": [1.5, "+Inf"]}
    (one,) = parse_series(data)
    assert (one.t_s[0], one.values[0]) == (1.5, math.inf)


def test_native_histograms_are_left_out():
    data = {"resultType": "vector", "result": [{"metric": {}, "histogram": [1, {"count": "3"}]}]}
    assert parse_series(data) == []


@given(st.integers(1, 4_000_000_000_000_000))
def test_times_are_read_back(microseconds):
    when = datetime.fromtimestamp(microseconds / 1e6, UTC)
    assert parse_time(when.isoformat()) == when.timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-12-01T11:23:46.310011123Z", 1796124226.310011),
        ("2026-12-01T12:23:46.31+01:00", 1796124226.31),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_go_writes_times_so(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-12-01T11:23:46"])
def test_a_time_that_is_none(text):
    with pytest.raises(ValueError):  # noqa: PT011 (two kinds of words)
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1m30s", 90.0), ("250ms", 0.25), ("1h0m5s", 3605.0), ("", None), ("5", None), ("s", None)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@given(st.dictionaries(st.text("ab", max_size=2), st.lists(VALUES, max_size=9)), st.integers(1, 4))
def test_parts_are_joined_in_their_order(columns, size):
    def part(first):
        return [
            Series(
                {"x": name},
                np.arange(first, min(first + size, len(values)), dtype=float),
                np.array(values[first : first + size]),
            )
            for name, values in columns.items()
            if values[first:]
        ]

    joined = {one.labels["x"]: one for one in merge(part(first) for first in range(0, 9, size))}
    assert set(joined) == {name for name, values in columns.items() if values}
    for name, one in joined.items():
        np.testing.assert_array_equal(one.values, np.array(columns[name]))
        assert one.t_s.tolist() == list(range(len(columns[name])))


def test_targets_are_read_back():
    targets = [
        ScrapedTarget("workers", "http://h:1/metrics?run=u", {"job": "a"}, "up", 12.5, "", 0.25),
        ScrapedTarget("exporters", "http://h:2/metrics", {}, "down", None, "refused", 5.0),
    ]
    assert FakePrometheus(scraped=targets).client().targets() == targets
