"""Whole runs from the command line: real processes, a real Prometheus, the tiny simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rolltop.prometheus.install import find_or_install

ROLLTOP = Path(sys.executable).with_name("rolltop")
TINY = ("sim=tiny", "topology=1gpu", "runtime.rollouts=4", "runtime.nr_workers=2")
TIMEOUT_S = 150


@dataclass(frozen=True)
class Finished:
    """A run that is over."""

    status: int
    out: str
    err: str
    run_dir: Path

    @property
    def summary(self) -> dict[str, Any]:
        """``summary.json``."""
        return json.loads((self.run_dir / "summary.json").read_text())

    @property
    def events(self) -> list[dict[str, Any]]:
        """``events.jsonl``."""
        return read_events(self.run_dir)


@dataclass
class Running:
    """A run that goes on."""

    process: subprocess.Popen[str]
    run_dir: Path

    def wait_for(self, ready: Callable[[], bool], what: str) -> None:
        """Return once ``ready`` says so."""
        until = time.monotonic() + TIMEOUT_S
        while not ready():
            assert self.process.poll() is None, f"ended before {what}"
            assert time.monotonic() < until, f"no {what}"
            time.sleep(0.05)

    def wait_for_event(self, event: str, process: str = "") -> dict[str, Any]:
        """Return the first event of that kind, of a process whose name begins so."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = [
                e
                for e in read_events(self.run_dir)
                if e["event"] == event and e.get("process", "").startswith(process)
            ]
            return bool(found)

        self.wait_for(look, event)
        return found[0]

    def finish(self) -> Finished:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return Finished(self.process.returncode, out, err, self.run_dir)


def read_events(run_dir: Path) -> list[dict[str, Any]]:
    """Return the events so far, whole lines only."""
    try:
        text = (run_dir / "events.jsonl").read_text()
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def start(
    arguments: Sequence[str], run_dir: Path, cwd: Path, env: dict[str, str] | None = None
) -> Running:
    """Start ``rolltop run`` in ``cwd``, the run in ``run_dir``, no terminal."""
    process = subprocess.Popen(
        [ROLLTOP, "run", *arguments, f'run.dir="{run_dir}"'],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )
    return Running(process, run_dir)


@pytest.fixture(scope="session", autouse=True)
def prometheus_binary():
    """Every run here finds a Prometheus."""
    return find_or_install()


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start runs that are over when the test is."""
    running: list[Running] = []

    def run(*arguments: str, env: dict[str, str] | None = None, name: str = "run") -> Running:
        running.append(start(arguments, tmp_path / name, tmp_path, env))
        return running[-1]

    yield run
    for each in running:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory, prometheus_binary: object) -> Finished:
    """One healthy run of the tiny simulator, with telemetry, shared by those who only look.

    To who takes its path for a pattern, it is the path of another folder.
    """
    folder = tmp_path_factory.mktemp("healthy")
    (folder / "runs").mkdir()
    arguments = ("sim=tiny", "topology=2gpu", "runtime.rollouts=24", "runtime.nr_workers=3")
    return start(arguments, folder / "runs" / "x [1]", folder).finish()


def processes_of(run_dir: Path) -> list[int]:
    """Return the pids of all processes that were started for a run, whoever is their parent now."""
    mark = str(run_dir).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            cwd = str((entry / "cwd").readlink())
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and (mark in words or cwd.startswith(str(run_dir))):
            found.append(int(entry.name))
    return found
