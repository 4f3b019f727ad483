"""Workers whose page never answered: the run says which, where it was expected and what helps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rolltop.catalogue.panel import WORKER
from rolltop.catalogue.panels import PANELS_BY_KEY
from rolltop.model.run import RolloutCounts, RunIdentity
from rolltop.model.series import Series
from rolltop.report.evidence import ScrapeQuality
from rolltop.report.reader import Window
from rolltop.report.run_report import RunReport, make_report
from rolltop.report.worker_pages import WorkerPage, silent_pages, told_of_pages

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = "127.0.0.1:24534", "127.0.0.1:24533"
STEPS = PANELS_BY_KEY["step_rate"]
CURE = "use WorkerTelemetry.from_environment(), or pass {metrics_port} to the worker"
REASON = f"worker-0's page was expected at {FIRST} and nothing of this run answered there: {CURE}"


class Scraped:
    """A Prometheus that knows of its targets alone: address -> whether it answered."""

    def __init__(self, targets: dict[str, bool]) -> None:
        self._targets = targets

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        if not promql.startswith("up"):
            return []
        return [
            Series(
                {"job": WORKER.job, "instance": address},
                np.arange(10.0),
                np.full(10, float(answered)),
            )
            for address, answered in self._targets.items()
        ]

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        return []


def report_of(targets: dict[str, bool], folder: Path, **known: Any) -> RunReport:
    defaults: dict[str, Any] = {
        "counts": RolloutCounts(3, 3),
        "pages": {FIRST: WorkerPage("worker-0"), SECOND: WorkerPage("worker-1")},
    }
    return make_report(
        Scraped(targets),
        identity=RunIdentity("u", "silent", "somebody", datetime.fromtimestamp(0, UTC)),
        plot=folder / "metrics_plot.png",
        n_workers=len(targets),
        window=Window(0, 10, 1, 9),
        panels=[STEPS],
        **(defaults | known),
    )


def test_a_page_that_never_answered_is_not_a_worker_without_steps(tmp_path: Path) -> None:
    report = report_of({FIRST: False}, tmp_path)
    assert report.missing[f"runtime worker {FIRST}"] == REASON
    assert report.panels.empty == {STEPS.title: REASON}
    assert report.missing["bottleneck"] == "no worker's page answered"
    assert report.throughput.reason == "no worker's page answered"
    assert f"runtime worker {FIRST}" in report.lost


def test_a_worker_that_may_never_have_been_there_gets_no_advice(tmp_path: Path) -> None:
    report = report_of({FIRST: False}, tmp_path, counts=RolloutCounts(3, 0), reached_end=False)
    never = "never answered a scrape (job alpasim-runtime-worker)"
    assert report.missing[f"runtime worker {FIRST}"] == never
    assert report.panels.empty == {STEPS.title: f"the runtime worker {never}"}
    assert not told_of_pages(report.missing)

    cut_short = report_of({FIRST: False}, tmp_path, counts=RolloutCounts(3, 1), reached_end=False)
    assert told_of_pages(cut_short.missing) == [REASON]


def test_of_several_pages_the_first_worker_is_named_in_the_panels(tmp_path: Path) -> None:
    report = report_of({SECOND: False, FIRST: False}, tmp_path)
    assert report.panels.empty == {STEPS.title: f"{REASON} (and so for 1 more worker)"}
    assert "worker-1" in report.missing[f"runtime worker {SECOND}"]


def test_one_silent_worker_among_others_is_named_and_costs_no_panel(tmp_path: Path) -> None:
    report = report_of({FIRST: True, SECOND: False}, tmp_path)
    assert "worker-1's page" in report.missing[f"runtime worker {SECOND}"]
    assert f"runtime worker {FIRST}" not in report.missing
    assert report.panels.empty[STEPS.title].startswith("no worker recorded a step")
    assert report.throughput.reason == "no worker recorded a step"


@pytest.mark.parametrize("at", [FIRST, "127.0.0.1:9001"])
def test_the_line_of_the_log_is_shown(at: str, tmp_path: Path) -> None:
    log = tmp_path / "worker-0.log"
    line = f"no telemetry page at {at}: [Errno 98] Address already in use"
    log.write_text(f"hello\nWARNING {line}\x1b[0m\nbye\n")
    scrapes = ScrapeQuality(1.0, silent=((WORKER.job, FIRST), ("alpasim-node", "n:1")))
    said = silent_pages(scrapes, {FIRST: WorkerPage("worker-0", log)})
    cure = "" if at == FIRST else f"; {CURE}"
    assert said == {
        FIRST: f"worker-0's page was expected at {FIRST} and nothing of this run answered there:"
        f' its log says "{line}?[0m"{cure}'
    }


def test_without_a_log_or_a_name_it_is_said_all_the_same(tmp_path: Path) -> None:
    scrapes = ScrapeQuality(1.0, silent=((WORKER.job, FIRST),))
    gone = {FIRST: WorkerPage("worker-0", tmp_path / "absent.log")}
    assert silent_pages(scrapes, gone) == {FIRST: REASON}
    assert silent_pages(scrapes) == {FIRST: REASON.replace("worker-0", "a worker")}
