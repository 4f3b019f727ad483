"""The files of a run, from the class that knows their names."""

from __future__ import annotations

import inspect
from pathlib import Path

from rolltop.model.run import RunPaths
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
    from rolltop.report.summary import summary_schema

    rows = [(code(r.path), r.type, sentence(r.meaning)) for r in schema.rows(summary_schema())]
    return table(("field", "type", "meaning"), rows)
