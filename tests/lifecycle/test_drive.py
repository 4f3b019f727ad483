"""Whatever goes wrong while a run is driven is how it ended, never an error of its own."""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rolltop.config import compose
from rolltop.errors import LaunchError, PortError, QueryError
from rolltop.launch.diagnosis import ProcessExit
from rolltop.lifecycle.drive import Ending, RunDriver
from rolltop.lifecycle.events import EventLog
from rolltop.lifecycle.finish import with_attempts
from rolltop.lifecycle.prepare import PreparedRun, prepare, write_run_files
from rolltop.lifecycle.progress import make_progress
from rolltop.lifecycle.run import checked, exit_status_of
from rolltop.model.plan import ProcessPlan
from rolltop.model.run import Outcome, RolloutCounts
from rolltop.model.series import Series


class Broken:
    """A supervisor that starts nothing."""

    def __init__(self, failure: Exception) -> None:
        self.exits: asyncio.Queue[ProcessExit] = asyncio.Queue()
        self.running: tuple[str, ...] = ()
        self._failure = failure

    async def start(self, plan: ProcessPlan, log: Path) -> int:
        raise self._failure

    async def stop(self, names: object = None, *, grace_s: float = 5.0) -> None:
        """Nothing runs."""


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[PreparedRun]:
    words = ["sim=tiny", "topology=1gpu", "telemetry.enabled=false", f"run.dir={tmp_path / 'x'}"]
    config = compose(words, cwd=tmp_path, count_gpus=lambda: 0)
    run = prepare(config, ["rolltop"], cwd=tmp_path)
    write_run_files(run)
    yield run
    run.leases.release()


async def _drive(run: PreparedRun, failure: Exception) -> Ending:
    view, events = make_progress(io.StringIO()), EventLog(run.paths.events)
    async with RunDriver(run, Broken(failure), events=events, view=view) as driver:  # type: ignore[arg-type]
        return await driver.drive()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (LaunchError("the guard is not running"), "the guard is not running"),
        (PortError("no free port in 20000-20001"), "no free port in 20000-20001"),
        (OSError(28, "No space left on device", "/x"), "/x: No space left on device"),
    ],
)
async def test_a_process_that_cannot_be_started_is_named(
    prepared: PreparedRun, failure: Exception, reason: str
) -> None:
    ending = await _drive(prepared, failure)
    assert ending.outcome is Outcome.FAILED
    assert ending.failure is not None
    assert ending.failure.process in {p.name for p in prepared.plan.processes}
    assert ending.failure.reason == f"could not be started: {reason}"


async def test_any_other_error_ends_the_run_as_failed(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: object) -> None:
        raise QueryError("refused")

    monkeypatch.setattr("rolltop.lifecycle.monitoring.RunPrometheus.discovered", refuse)
    monkeypatch.setattr(RunDriver, "_start", lambda self, process: asyncio.sleep(0))
    ending = await _drive(prepared, LaunchError("never raised"))
    assert ending.failure is not None
    assert (ending.failure.process, ending.failure.reason) == ("rolltop", "refused")


async def test_a_full_disk_is_named_as_the_cause(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolltop.lifecycle.drive.is_full", lambda run_dir: True)
    ending = await _drive(prepared, LaunchError("the victim"))
    assert ending.full
    assert ending.failure is not None
    run_dir = prepared.paths.run_dir
    assert ending.failure.reason == (
        f"could not be started: the victim; no space is left on the file system of {run_dir}: "
        f"free some; until then `rolltop plot {run_dir} -o FILE` draws elsewhere what was measured"
    )
    assert exit_status_of(ending, RolloutCounts(requested=1), written=not ending.full) == 2


async def test_a_directory_that_is_gone_is_named_as_the_cause(prepared: PreparedRun) -> None:
    run_dir = prepared.paths.run_dir

    class Remover(Broken):
        async def start(self, plan: ProcessPlan, log: Path) -> int:
            if run_dir.exists():
                shutil.rmtree(run_dir)
            raise self._failure

    view, events = make_progress(io.StringIO()), EventLog(prepared.paths.events)
    supervisor = Remover(LaunchError("the victim"))
    async with RunDriver(prepared, supervisor, events=events, view=view) as driver:  # type: ignore[arg-type]
        ending = await driver.drive()
    lost = f"the run directory {run_dir} was deleted while the run went on"
    assert driver.directory_lost == lost
    assert ending.failure is not None
    assert ending.failure.reason == f"could not be started: the victim; {lost}"
    short = checked(Ending(Outcome.COMPLETED), RolloutCounts(requested=2), lost=lost)
    assert short.failure is not None
    assert short.failure.reason.endswith(f"the results of 2 of 2 rollouts are not there: {lost}")


class Told:
    """Answers one question with one value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        assert "alpasim_rollouts_total" in promql
        return [Series({}, np.array([at or 0.0]), np.array([self.value]))]

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        raise QueryError(promql)


@pytest.mark.parametrize(("seen", "attempts"), [(7.0, 7), (2.0, 3)])
def test_attempts_of_rollouts_without_an_end_are_counted(seen: float, attempts: int) -> None:
    counts = RolloutCounts(requested=9, completed=1, failed_attempts=3)
    found = with_attempts(counts, Told(seen), run_uuid="u", start_s=1000.0, end_s=1060.0)
    assert found.failed_attempts == attempts
    assert found.completed == 1


def test_attempts_are_left_where_nothing_is_answered() -> None:
    class Silent(Told):
        def query(self, promql: str, at: float | None = None) -> list[Series]:
            raise QueryError(promql)

    counts = RolloutCounts(requested=9, failed_attempts=3)
    assert with_attempts(counts, Silent(0), run_uuid="u", start_s=0.0, end_s=1.0) == counts
