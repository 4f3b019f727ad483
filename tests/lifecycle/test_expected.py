"""Whose page is expected where, by what a run wrote of its plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rolltop.lifecycle.expected import planned_pages
from rolltop.model.run import RunPaths
from rolltop.report.worker_pages import WorkerPage

if TYPE_CHECKING:
    from pathlib import Path


def test_a_plan_says_whose_page_is_where(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    processes = [
        {"name": "renderer-0", "metrics_port": None},
        {"name": "worker-0", "metrics_port": 24534},
        {"name": "../worker-1", "metrics_port": 24535},
        {"name": "worker-2", "metrics_port": True},
    ]
    paths.plan.write_text(json.dumps({"processes": processes}))
    assert planned_pages(paths) == {
        "127.0.0.1:24534": WorkerPage("worker-0", tmp_path / "logs" / "worker-0.log")
    }


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"processes": [1]}', "[" * 100_000])
def test_a_plan_that_says_nothing_is_no_fault(text: str | None, tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    if text is not None:
        paths.plan.write_text(text)
    assert planned_pages(paths) == {}
