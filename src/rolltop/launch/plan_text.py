"""A plan as text: the file ``plan.json`` and the tables of ``--dry-run``."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rolltop.model.plan import HealthKind, Role
from rolltop.model.redact import redact_argv, redact_mapping

if TYPE_CHECKING:
    from rolltop.model.plan import LaunchPlan, ProcessPlan

SCHEMA = 1


def render_plan(plan: LaunchPlan) -> str:
    """Return the plan as JSON, secrets redacted. Files are named; their text lies beside it."""
    data = asdict(plan)
    data["files"] = sorted(plan.files)
    return json.dumps(redact_mapping({"schema": SCHEMA, **data}), indent=2) + "\n"


@dataclass(frozen=True)
class Table:
    """One table for people: every row has as many cells as there are columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def describe_plan(plan: LaunchPlan) -> tuple[Table, ...]:
    """Return the plan's processes, files and targets for ``--dry-run``, secrets redacted."""
    return (
        Table(
            "Processes, in the order of their start",
            ("name", "role", "gpu", "port", "page", "health", "command"),
            (*_prometheus_row(plan), *(_process_row(process) for process in plan.processes)),
        ),
        Table(
            "Files in the run directory",
            ("file", "lines"),
            tuple((name, str(text.count("\n"))) for name, text in sorted(plan.files.items())),
        ),
        Table(
            "Scrape targets",
            ("job", "component", "addresses"),
            tuple(
                (group.labels["job"], group.labels["component"], " ".join(group.targets))
                for group in plan.targets
            ),
        ),
    )


def _prometheus_row(plan: LaunchPlan) -> tuple[tuple[str, ...], ...]:
    """Prometheus is found when the run starts: its command is not part of the plan."""
    if plan.prometheus_port is None:
        return ()
    port = str(plan.prometheus_port)
    return ((Role.PROMETHEUS, Role.PROMETHEUS, "", port, port, HealthKind.HTTP, ""),)


def _process_row(process: ProcessPlan) -> tuple[str, ...]:
    return (
        process.name,
        process.role,
        _cell(process.gpu),
        _cell(process.port),
        _cell(process.metrics_port),
        process.health.kind,
        shlex.join(redact_argv(process.argv)),
    )


def _cell(value: int | None) -> str:
    return "" if value is None else str(value)
