"""Plain lists against a naive model, and both text formats against prometheus_client's parsers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from rolltop_instrument import names
from rolltop_instrument._cells import Family, Registry, escape_label, format_value, observe

seconds = st.floats(0, 1e4, allow_nan=False)


@given(st.lists(seconds, max_size=50))
def test_a_histogram_agrees_with_counting_one_by_one(values: list[float]) -> None:
    registry = Registry(names.METRICS, "0")
    cell = registry.cell(names.STEP_DURATION)
    for value in values:
        observe(cell, names.STEP_DURATION.buckets, value)
    (family,) = [f for f in parse_text(registry.render()) if f.name == names.STEP_DURATION.name]
    got = {(s.name, s.labels.get("le")): s.value for s in family.samples}
    for bound in (*names.STEP_DURATION.buckets, math.inf):
        le = "+Inf" if math.isinf(bound) else repr(bound)
        assert got[f"{names.STEP_DURATION.name}_bucket", le] == sum(v <= bound for v in values)
    assert got[f"{names.STEP_DURATION.name}_count", None] == len(values)
    assert got[f"{names.STEP_DURATION.name}_sum", None] == pytest.approx(sum(values))


labels = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(labels, labels, st.floats(allow_nan=False))
def test_any_label_value_comes_back_from_both_formats(
    service: str, worker: str, value: float
) -> None:
    if {"\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"} & set(
        service + worker
    ):
        return  # the library's parser splits lines there; Prometheus does not
    registry = Registry((names.RPC_QUEUE_DEPTH,), worker)
    registry.cell(names.RPC_QUEUE_DEPTH, service)[0] = value
    for parse, openmetrics in ((parse_text, False), (parse_openmetrics, True)):
        (family,) = parse(registry.render(openmetrics=openmetrics))
        (sample,) = family.samples
        assert sample.labels == {"worker_id": worker, "service": service}
        assert sample.value == value


def test_escapes() -> None:
    assert escape_label('a\\b"c\nd') == r"a\\b\"c\nd"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.5, "0.5"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (True, "1.0"),
        (np.float64(0.5), "0.5"),
    ],
)
def test_values_as_the_formats_spell_them(value: float, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 1e300])
def test_what_is_no_duration_does_not_poison_a_sum(value: float) -> None:
    cell = Registry(names.METRICS, "0").cell(names.STEP_DURATION)
    observe(cell, names.STEP_DURATION.buckets, value)
    assert sum(cell) == 0


def test_two_threads_that_make_a_series_get_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(names.METRICS, "0")
    both = threading.Barrier(2, timeout=10)
    template = Family._template

    def together(family: Family, values: tuple[str, ...]) -> str:
        both.wait()  # both have looked, and found none
        return template(family, values)

    monkeypatch.setattr(Family, "_template", together)
    found: list[list[float]] = []
    threads = [
        threading.Thread(target=lambda: found.append(registry.cell(names.RPC_RETRIES, "driver")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
    assert registry.render().count("rolltop_rpc_retries_total{") == 1


def test_a_label_that_is_no_text_costs_neither_the_series_nor_the_page() -> None:
    registry = Registry((names.RPC_RETRIES,), "w\udc80")
    odd: Any = 3
    registry.cell(names.RPC_RETRIES, odd)[0] += 1
    registry.cell(names.RPC_RETRIES, "3")[0] += 1
    registry.cell(names.RPC_RETRIES, "\udcff")[0] += 1
    registry.cell(names.RPC_RETRIES, "\udcfe")[0] += 1
    (family,) = parse_text(registry.render().encode().decode())
    assert {s.labels["service"]: s.value for s in family.samples} == {"3": 2, "?": 2}
    assert family.samples[0].labels["worker_id"] == "w?"


def test_a_series_needs_all_of_its_labels() -> None:
    with pytest.raises(ValueError, match="labels"):
        Registry(names.METRICS, "0").cell(names.RPC_CALLS, "renderer")


def test_one_value_that_cannot_be_read_does_not_cost_the_page(faults_are_hidden: None) -> None:
    registry = Registry(names.METRICS, "0")
    registry.cell(names.ROLLOUTS, "completed")[0] = 7

    def broken() -> None:
        raise OSError("gone")

    registry.before_render(broken)
    assert 'status="completed"} 7' in registry.render()


def test_openmetrics_names_counters_without_total_and_says_units(
    parsed: Callable[..., dict[object, float]],
) -> None:
    registry = Registry(names.METRICS, "0")
    registry.cell(names.LOOP_IDLE)[0] = 1.5
    text = registry.render(openmetrics=True)
    assert "# TYPE alpasim_event_loop_idle_seconds counter\n" in text
    assert "# UNIT alpasim_event_loop_idle_seconds seconds\n" in text
    assert text.endswith("# EOF\n")
    assert parsed(text, openmetrics=True) == parsed(registry.render())
    assert "_created" not in text
