"""What the telemetry of a whole run costs: during it, and at its end.

The run is fixed: the reference simulation, ``topology=2gpu``, 4 workers, 36 rollouts of 60 steps.
Counted over the CPU-seconds of all processes of the run, from the first worker's start to the last
rollout:

- Prometheus, as its process shows;
- the launcher, beyond the share that it takes in the same run without telemetry;
- where nothing can be told apart from outside, in the workers and the services: the starts of the
  workers, the scrapes and the calls made, times what each costs more than without telemetry; a
  call on both sides, with the server's stamps, their way home in trailing metadata and the client's
  reading of them.

A machine that others use too is half as fast from one minute to the next. So these are measured
before and after each run, as disturbed as it is, and the median of three runs counts.

A step's own clock is left out (two readings). A run of which Prometheus does not say how many calls
and scrapes it had is no measurement: the bench fails.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from bench.cpu import Process, TreeSampler
from bench.rows import BenchRow
from bench.worker_cost import call_cpu_s, scrape_cpu_s, start_cpu_s
from rolltop.errors import RolltopError
from rolltop.prometheus.query import Prometheus

RUNS = 3
WORKERS = 4
ROLLOUTS = 36
OVERRIDES = (
    "deploy=local",
    "sim=driving",
    "topology=2gpu",
    f"runtime.nr_workers={WORKERS}",
    f"runtime.rollouts={ROLLOUTS}",
    "runtime.steps_per_rollout=60",
    "run.name=bench",
)
_CALLS = "sum(max_over_time(rolltop_rpc_calls_total[1d]))"
_SCRAPES = 'sum(count_over_time(up{job="alpasim-runtime-worker"}[1d]))'
_RESULTS = "rollouts/*/*/result.json"
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Measured:
    """A run that is over: its processes, and the times that divide it (unix seconds)."""

    launcher: Process
    prometheus: Process
    processes: tuple[Process, ...]
    first_worker_s: float
    last_rollout_s: float
    ended_s: float
    calls: float
    scrapes: float

    def cpu_s(self) -> float:
        """CPU-seconds of all processes while the workers drove."""
        window = self.first_worker_s, self.last_rollout_s
        return sum(process.between(*window) for process in self.processes)

    def telemetry_cpu_s(self, costs: Costs, launcher_share: float) -> float:
        """CPU-seconds of telemetry in that time, beyond the share of a launcher without any."""
        window = self.first_worker_s, self.last_rollout_s
        launcher_s = self.launcher.between(*window) - launcher_share * self.cpu_s()
        outside = self.prometheus.between(*window) + launcher_s
        calls_s = self.calls * costs.call_share * costs.bare_call_s
        return outside + calls_s + self.scrapes * costs.scrape_s + WORKERS * costs.start_s

    def end_cpu_s(self) -> float:
        """CPU-seconds of launcher and Prometheus from the last rollout to the launcher's end."""
        window = self.last_rollout_s, self.ended_s
        return self.launcher.between(*window) + self.prometheus.between(*window)


@dataclass(frozen=True)
class Costs:
    """What telemetry costs inside processes; of a call as a share of a call without any."""

    call_share: float
    bare_call_s: float
    scrape_s: float
    start_s: float

    @classmethod
    def here_and_now(cls) -> Costs:
        """Measure all of them."""
        return cls(*call_cpu_s(), scrape_cpu_s(), start_cpu_s())

    @classmethod
    def mean(cls, *costs: Costs) -> Costs:
        """The mean of each."""
        return cls(*map(statistics.mean, zip(*map(astuple, costs), strict=True)))


def run() -> list[BenchRow]:
    """Drive the run a few times; the medians."""
    ratios, ends = [], []
    launcher_share = _launcher_share()
    before = Costs.here_and_now()
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            measured = _drive(Path(folder) / "run")
        after = Costs.here_and_now()
        telemetry_s = measured.telemetry_cpu_s(Costs.mean(before, after), launcher_share)
        ratios.append(telemetry_s / measured.cpu_s())
        ends.append(measured.end_cpu_s())
        before = after
    return [
        BenchRow.at_most("telemetry_cpu_ratio", statistics.median(ratios), "ratio", bound=0.03),
        BenchRow.at_most("end_of_run_cpu", statistics.median(ends), "s", bound=6.0),
    ]


def _drive(run_dir: Path) -> Measured:
    """Drive the run and watch it from outside.

    Raises:
        RuntimeError: it did not end well, or does not say what it did: nothing to measure.
    """
    with _Run(run_dir) as run:
        calls, scrapes = run.until_ended()
    if not calls or not scrapes:
        raise RuntimeError(f"Prometheus told of {calls:g} calls and {scrapes:g} scrapes of the run")
    processes = tuple(run.processes.values())
    first_worker_s, last_rollout_s = _window(run_dir)
    return Measured(
        launcher=run.launcher,
        prometheus=next(p for p in processes if any("storage.tsdb.path" in a for a in p.argv)),
        processes=processes,
        first_worker_s=first_worker_s,
        last_rollout_s=last_rollout_s,
        ended_s=run.ended_s,
        calls=calls,
        scrapes=scrapes,
    )


def _launcher_share() -> float:
    """The launcher's part of the CPU while the workers drive the same run without telemetry."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run_dir = Path(folder) / "run"
        with _Run(run_dir, "telemetry.enabled=false") as run:
            run.wait()
        window = _window(run_dir)
        everything_s = sum(process.between(*window) for process in run.processes.values())
        return run.launcher.between(*window) / everything_s


def _window(run_dir: Path) -> tuple[float, float]:
    """Unix times of the first worker's start and of the last rollout's result."""
    results = run_dir.glob(_RESULTS)
    return _first_worker_s(run_dir / "events.jsonl"), max(p.stat().st_mtime for p in results)


class _Run:
    """The run's launcher, and all of its processes, watched until it ends.

    Raises:
        RuntimeError: at the end, if it did not end well.
    """

    def __init__(self, run_dir: Path, *overrides: str) -> None:
        rolltop = Path(sys.executable).with_name("rolltop")
        self._run_dir = run_dir
        self._command = [str(rolltop), "run", *OVERRIDES, *overrides, f"run.dir={run_dir}"]
        self.ended_s = 0.0

    def __enter__(self) -> Self:
        self._launcher = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._sampler = TreeSampler(self._launcher.pid).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._sampler.__exit__(*error)
        self.ended_s = time.time()
        with self._launcher as launcher:
            if launcher.poll() is None:
                launcher.terminate()
            elif launcher.returncode:
                said = launcher.stderr.read().decode() if launcher.stderr else ""
                raise RuntimeError(f"the run ended with status {launcher.returncode}:\n{said}")

    @property
    def processes(self) -> dict[int, Process]:
        """All processes, by their id."""
        return self._sampler.processes

    @property
    def launcher(self) -> Process:
        """The launcher."""
        return self.processes[self._launcher.pid]

    def wait(self) -> None:
        """Wait for the run's end."""
        self._launcher.wait()

    def until_ended(self) -> tuple[float, float]:
        """Wait for the run's end; return its calls and the scrapes of its workers.

        Prometheus is asked only after the last rollout, so that the questions are not measured.
        """
        calls = scrapes = 0.0
        while self._launcher.poll() is None:
            time.sleep(_LOOK_EVERY_S)
            if not (calls and scrapes) and len(list(self._run_dir.glob(_RESULTS))) == ROLLOUTS:
                calls, scrapes = _ask(self._run_dir, _CALLS), _ask(self._run_dir, _SCRAPES)
        return calls, scrapes


def _ask(run_dir: Path, promql: str) -> float:
    """Return one value from the run's Prometheus, 0 while it does not answer."""
    with suppress(OSError, RolltopError, ValueError):
        plan = json.loads((run_dir / "plan.json").read_text(encoding="utf-8"))
        with Prometheus(f"http://127.0.0.1:{plan['prometheus_port']}", timeout_s=2.0) as client:
            return sum(float(series.values[-1]) for series in client.query(promql))
    return 0.0


def _first_worker_s(events: Path) -> float:
    """Return the unix time at which the first worker was started."""
    for line in events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "process_started" and event["process"].startswith("worker"):
            return datetime.fromisoformat(event["t"]).timestamp()
    raise RuntimeError(f"{events} has no start of a worker")
