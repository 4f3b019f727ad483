"""Pages that a run expects, and whose they are: by its plan, or by what it wrote of that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rolltop.files import read_file
from rolltop.launch.plan import HOST
from rolltop.report.worker_pages import WorkerPage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolltop.model.run import RunPaths

_PLAN_BYTES_MAX = 64 << 20


def worker_pages(
    paths: RunPaths, processes: Iterable[tuple[str, int | None]]
) -> dict[str, WorkerPage]:
    """Return the addresses of pages and whose they are.

    Args:
        paths: Where the logs are.
        processes: Name and page's port of each process; those without a page have none.
    """
    return {
        f"{HOST}:{port}": WorkerPage(name, paths.log_of(name))
        for name, port in processes
        if port is not None
    }


def planned_pages(paths: RunPaths) -> dict[str, WorkerPage]:
    """Return the same by a run's ``plan.json``; nothing where that does not say."""
    try:
        plan: Any = json.loads(read_file(paths.plan, max_bytes=_PLAN_BYTES_MAX))
        said = [(p["name"], p["metrics_port"]) for p in plan["processes"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
    # The name becomes part of a path: one that could leave the logs' folder is none of ours.
    good = [(n, p) for n, p in said if isinstance(n, str) and type(p) is int and "/" not in n]
    return worker_pages(paths, good)
