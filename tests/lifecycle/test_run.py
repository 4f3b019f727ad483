"""However a run ends that has a directory: it has a true summary, and its events come to an end."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rolltop.config import compose
from rolltop.launch import guard_client
from rolltop.lifecycle.drive import RunDriver
from rolltop.lifecycle.prepare import PreparedRun, prepare
from rolltop.lifecycle.progress import make_progress
from rolltop.lifecycle.run import RunResult, execute


class AskedToEndError(BaseException):
    """What a signal raises before the run heeds it."""


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """A run ignores them from its end on; the tests after it must not."""
    heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in heeded]
    yield
    for number, handler in zip(heeded, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[PreparedRun]:
    words = ["sim=tiny", "topology=1gpu", f"run.dir={tmp_path / 'x'}"]
    run = prepare(compose(words, cwd=tmp_path, count_gpus=lambda: 0), ["rolltop"], cwd=tmp_path)
    yield run
    run.leases.release()


def _execute(run: PreparedRun) -> RunResult:
    return execute(run, make_progress(io.StringIO()), runs_root=run.paths.run_dir.parent / "runs")


def _summary(run: PreparedRun) -> dict[str, Any]:
    return json.loads(run.paths.summary.read_text())


def _last_event(run: PreparedRun) -> tuple[str, str, int]:
    event = json.loads(run.paths.events.read_text().splitlines()[-1])
    return event["event"], event["outcome"], event["exit_status"]


def test_a_guard_that_cannot_start_is_how_the_run_ended(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["sh", "-c", "echo out of luck >&2; exit 1"]
    monkeypatch.setattr(guard_client, "guard_command", lambda *_: argv)
    result = _execute(prepared)
    assert result.exit_status == 3
    summary = _summary(prepared)
    assert summary["outcome"] == "failed"
    failure = summary["failure"]
    assert failure["process"] == "guard"
    assert failure["reason"] == "the guard of the run's processes did not start"
    assert failure["log_tail"] == ["out of luck"]
    assert summary["rollouts"]["completed"] == 0
    assert summary["telemetry"]["missing"]["prometheus"]
    assert _last_event(prepared) == ("run_ended", "failed", 3)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyError("x"), ("failed", 70, "KeyError: 'x'")),
        (AskedToEndError(), ("cancelled", 5, None)),
    ],
)
def test_a_run_that_is_broken_off_says_so(
    prepared: PreparedRun,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    expected: tuple[str, int, str | None],
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(RunDriver, "drive", fail)
    with pytest.raises(type(error)):
        _execute(prepared)
    outcome, status, reason = expected
    summary = _summary(prepared)
    assert summary["outcome"] == outcome
    assert (summary["failure"] or {}).get("reason") == reason
    assert "broken off" in summary["telemetry"]["missing"]["report"]
    assert _last_event(prepared) == ("run_ended", outcome, status)


def test_a_signal_before_the_loop_runs_leaves_a_summary_too(
    prepared: PreparedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object, **__: object) -> None:
        raise AskedToEndError

    monkeypatch.setattr("rolltop.lifecycle.run.point_latest", asked)
    with pytest.raises(AskedToEndError):
        _execute(prepared)
    assert _summary(prepared)["outcome"] == "cancelled"
    assert _last_event(prepared) == ("run_ended", "cancelled", 5)
