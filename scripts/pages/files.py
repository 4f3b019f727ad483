"""The files of a run, from the class that knows their names."""

from __future__ import annotations

import inspect
from pathlib import Path

from rolltop.model.run import RunPaths
from rolltop.report.summary import RunSummary
from scripts.pages import schema
from scripts.pages.markdown import code, sentence, table

_FOLDERS = {"logs", "rollouts", "prometheus", "targets", "rules", "data"}


def run_directory() -> str:
    """Return every path in a run directory."""
    paths = RunPaths(Path("run"))
    rows = []
    for name, member in vars(RunPaths).items():
        if isinstance(member, property):
            relative = getattr(paths, name).relative_to("run")
            slash = "/" if name in _FOLDERS else ""
            rows.append((code(f"{relative}{slash}"), sentence(inspect.getdoc(member) or "")))
    return table(("path", "what it holds"), rows)


def summary() -> str:
    """Return the fields of ``summary.json``, from its schema."""
    leaves = schema.rows(RunSummary.model_json_schema(by_alias=True))
    rows = [(code(row.path), row.type, sentence(row.meaning)) for row in leaves]
    return table(("field", "type", "meaning"), rows)
