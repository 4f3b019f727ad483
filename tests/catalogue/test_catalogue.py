from __future__ import annotations

import re
from itertools import groupby, pairwise

import pytest
from rolltop_instrument import names

from rolltop.catalogue.aliases import canonical_labels, canonical_service
from rolltop.catalogue.duration import duration
from rolltop.catalogue.panel import Kind, Panel, PanelQuery, Section
from rolltop.catalogue.panels import PANELS, PANELS_BY_KEY
from rolltop.catalogue.rules import RULES

FROM_OUTSIDE = {
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_GPU_UTIL",
    "namedprocess_namegroup_cpu_seconds_total",
    "namedprocess_namegroup_memory_bytes",
    "node_cpu_seconds_total",
    "node_memory_MemAvailable_bytes",
    "node_memory_MemTotal_bytes",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "up",
}
"""Series of the exporters and of Prometheus itself."""


def known_series() -> set[str]:
    found = set(FROM_OUTSIDE)
    for metric in names.METRICS:
        histogram = [f"{metric.name}_{part}" for part in ("sum", "count", "bucket")]
        found |= set(histogram if metric.kind == "histogram" else [metric.name])
    return found


def series_of(promql: str) -> set[str]:
    return set(re.findall(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{", promql))


@pytest.mark.parametrize("panel", PANELS, ids=lambda p: p.key)
def test_a_panel_reads_series_that_somebody_exports(panel: Panel) -> None:
    read = set().union(*(series_of(query.promql) for query in panel.queries))

    assert read
    assert read <= known_series()
    assert set(panel.series) <= read


@pytest.mark.parametrize("panel", PANELS, ids=lambda p: p.key)
def test_a_panel_says_what_it_is_and_why_it_may_be_empty(panel: Panel) -> None:
    assert panel.title
    assert panel.unit
    assert panel.empty_reason
    assert panel.description.endswith(".")
    assert panel.source.title
    assert all("$run" in query.promql for query in panel.queries)
    asked = "".join(query.promql for query in panel.queries)
    assert panel.kind is not Kind.BARS or "$range" in asked


@pytest.mark.parametrize("panel", PANELS, ids=lambda p: p.key)
def test_a_panel_is_true_from_the_first_samples_of_a_series_on(panel: Panel) -> None:
    """``rate`` divides by the whole window, ``increase`` loses what a series is born with."""
    asked = "".join(query.promql for query in panel.queries)

    assert not re.search(r"\b(rate|irate|increase)\(", asked)


WITH_PERCENTILES = [p for p in PANELS if "histogram_quantile" in "".join(map(str, p.queries))]


@pytest.mark.parametrize("panel", WITH_PERCENTILES, ids=lambda p: p.key)
def test_a_panel_says_truly_how_far_its_percentile_may_be_off(panel: Panel) -> None:
    said = re.search(r"a factor of (\S+) from (\S+) (ms|s) to (\S+) (ms|s)\.$", panel.description)
    assert said
    low, high = (
        float(number) / {"ms": 1000, "s": 1}[unit]
        for number, unit in (said.group(2, 3), said.group(4, 5))
    )
    (metric,) = (m for m in names.METRICS if f"{m.name}_bucket" in panel.series)
    bounds = [bound for bound in metric.buckets if low <= bound <= high]

    assert (bounds[0], bounds[-1]) == (low, high)
    assert max(b / a for a, b in pairwise(bounds)) == pytest.approx(float(said[1]))
    assert "rough" in panel.title


def test_keys_and_titles_are_unique_and_sections_in_one_piece() -> None:
    assert len(PANELS_BY_KEY) == len(PANELS)
    assert len({panel.title for panel in PANELS}) == len(PANELS)
    assert [name for name, _ in groupby(p.section for p in PANELS)] == list(Section)


def test_at_least_twelve_panels_come_from_a_worker_alone() -> None:
    assert sum(panel.source.job == "alpasim-runtime-worker" for panel in PANELS) >= 12


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ('run_uuid="x"', 'rate(a{s="b",run_uuid="x"}[10s]) + max_over_time(c{run_uuid="x"}[90s])'),
        ("", 'rate(a{s="b"}[10s]) + max_over_time(c{}[90s])'),
    ],
)
def test_a_query_is_made_for_one_run(selector: str, expected: str) -> None:
    query = PanelQuery('rate(a{s="b",$run}[$window]) + max_over_time(c{$run}[$range])', "{s}")

    assert query.render(selector=selector, window_s=10, range_s=90) == expected


def test_a_legend_names_labels_and_what_is_not_there() -> None:
    query = PanelQuery("x{$run}", "{service} on {node}")

    assert query.legend_of({"service": "driver"}) == "driver on ?"


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1s"), (0.2, "200ms"), (12.3, "12300ms"), (5.0, "5s")]
)
def test_durations_are_prometheus(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_services_have_one_name() -> None:
    assert canonical_service("sensorsim") == "renderer"
    assert canonical_service("traffic") == "trafficsim"
    assert canonical_service("planner") == "planner"
    assert canonical_labels({"service": "traffic", "le": "1"}) == {
        "service": "trafficsim",
        "le": "1",
    }


def test_rules_read_series_that_a_worker_exports() -> None:
    recorded = {rule.record for rule in RULES}
    for rule in RULES:
        read = set(re.findall(r"\b((?:alpasim|rolltop)[_:][a-z0-9_:]+)", rule.expr))
        assert read
        assert read <= known_series() | recorded
        assert rule.description.endswith(".")


def test_rules_are_rates_of_series_and_never_of_sums() -> None:
    assert not [rule for rule in RULES if re.search(r"(rate|increase)\(\s*(sum|avg)", rule.expr)]
    assert len({rule.record for rule in RULES}) == len(RULES)


def test_new_rules_are_named_level_metric_operations() -> None:
    for rule in RULES:
        assert re.fullmatch(r"(rolltop|alpasim):[a-z0-9_]+:[a-z0-9_]+", rule.record)
