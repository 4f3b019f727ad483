"""Metrics, recording rules and panels, from the objects that make them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rolltop_instrument.names import METRICS, WORKER_LABEL

from rolltop.catalogue.panels import PANELS
from rolltop.catalogue.rules import RULES
from scripts.pages.markdown import code, sentence, table

if TYPE_CHECKING:
    from rolltop_instrument.names import Metric

_APPEARS = {
    "start": "from the start",
    "use": "at the first use",
    "service": "once a service is known",
    "call": "at the first call",
    "server": "once a server says its times",
}


def metrics() -> str:
    """Return the table of a worker's metrics, and their buckets."""
    head = ("metric", "type", "labels", "meaning", "exists")
    rows = [
        (
            code(metric.name),
            metric.kind,
            ", ".join(map(code, metric.labels)),
            metric.help,
            _APPEARS[metric.appears],
        )
        for metric in METRICS
    ]
    intro = f"Every series carries `{WORKER_LABEL}` besides the labels given here."
    return "\n\n".join((intro, table(head, rows), "## Buckets", _buckets()))


def _buckets() -> str:
    histograms = [metric for metric in METRICS if metric.kind == "histogram"]
    rows = [(code(m.name), m.unit or "count", _bounds(m)) for m in histograms]
    return table(("histogram", "unit", "upper bounds, besides +Inf"), rows)


def _bounds(metric: Metric) -> str:
    return ", ".join(f"{bound:g}" for bound in metric.buckets)


def rules() -> str:
    """Return every recording rule with its expression."""
    parts = []
    for rule in RULES:
        every = "every second" if rule.fast else "every `telemetry.rule_interval_s`"
        parts.append(
            f"## `{rule.record}`\n\n{rule.description} Evaluated {every}.\n\n"
            f"```text\n{rule.expr}\n```"
        )
    return "\n\n".join(parts)


def panels() -> str:
    """Return every panel, by the heading under which the picture has it."""
    parts = []
    for section, group in groupby(PANELS, key=lambda panel: panel.section):
        rows = [
            (
                panel.title,
                panel.unit,
                sentence(panel.description),
                ", ".join(map(code, panel.series)),
                panel.source.title,
            )
            for panel in group
        ]
        head = ("panel", "unit", "what it shows", "series that it needs", "from")
        parts.append(f"## {section.value}\n\n{table(head, rows)}")
    return "\n\n".join(parts)
