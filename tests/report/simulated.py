"""A run without processes: rollouts pinned to instances that serve in turn, as OpenMetrics text.

The text is what a run's Prometheus would have scraped each second; promtool makes a database of it.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from dataclasses import dataclass, field

from rolltop_instrument import names

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SimulatedService:
    """``seconds`` is the mean of one call; ``methods`` are called one after the other in a step."""

    name: str
    n_instances: int
    seconds: float
    methods: tuple[str, ...]


@dataclass
class SimulatedRun:
    """What is simulated; ``fail_ratio`` of the driver's calls fail, and with them their attempt."""

    run_uuid: str = "0f3a92c1-0000-4000-8000-000000000001"
    start_s: float = 1_750_000_000.0
    services: tuple[SimulatedService, ...] = ()
    n_workers: int = 4
    n_slots: int = 12
    n_rollouts: int = 60
    steps: int = 40
    warm_up_s: float = 0.0
    fail_ratio: float = 0.0
    server_times: bool = True
    seed: int = 7
    counters: dict[tuple[str, Labels], list[tuple[float, float]]] = field(default_factory=dict)
    end_s: float = 0.0
    completed: int = 0
    failed: int = 0


DRIVING = (
    SimulatedService("renderer", 2, 0.060, ("batch_render_rgb",)),
    SimulatedService("driver", 3, 0.018, ("submit_image_observation", "submit_route", "drive")),
    SimulatedService("physics", 2, 0.012, ("ground_intersection",)),
    SimulatedService("controller", 6, 0.009, ("run_controller_and_vehicle",)),
    SimulatedService("trafficsim", 2, 0.009, ("simulate",)),
)


class Simulator:
    """Runs a :class:`SimulatedRun` and keeps its events: (time, series, labels, increment)."""

    def __init__(self, run: SimulatedRun) -> None:
        self.run = run
        self.random = random.Random(run.seed)
        self.free_at: dict[str, float] = defaultdict(float)
        self.events: list[tuple[float, str | names.Metric, Labels, float]] = []

    def simulate(self) -> SimulatedRun:
        run = self.run
        todo = run.n_rollouts
        heap: list[tuple[float, int]] = [(0.3 + 0.01 * s, s) for s in range(run.n_slots)]
        state: dict[int, list[float]] = {}
        heapq.heapify(heap)
        while heap:
            t, slot = heapq.heappop(heap)
            if slot not in state:
                if todo == 0:
                    continue
                todo -= 1
                state[slot] = [t, 0]
                self.count(t, "alpasim_renderer_active_rollouts", slot, (), 1)
                self.observe(t, names.RENDERER_WAIT, slot, (("kind", "fifo"),), 0.02)
            end, failed = self.step(t, slot)
            state[slot][1] += 1
            if failed or state[slot][1] == run.steps:
                todo += failed
                self.finish(end, slot, end - state.pop(slot)[0], failed)
            heapq.heappush(heap, (end, slot))
            run.end_s = max(run.end_s, end)
        return self.scraped()

    def step(self, t: float, slot: int) -> tuple[float, bool]:
        start, failed = t, False
        for service in self.run.services:
            for method in service.methods:
                t = self.call(t, slot, service, method)
                if service.name == "driver" and self.random.random() < self.run.fail_ratio:
                    labels = (("service", "driver"), ("code", "UNAVAILABLE"))
                    self.count(t, "rolltop_rpc_failures_total", slot, labels, 1)
                    failed = True
        self.count(t, "alpasim_event_loop_work_seconds_total", slot, (), 0.003)
        self.observe(t, names.OBSERVATION_BARRIER, slot, (), 0.004)
        if not failed:
            self.observe(t, names.STEP_DURATION, slot, (), t - start)
        return t, failed

    def call(self, t: float, slot: int, service: SimulatedService, method: str) -> float:
        run = self.run
        instance = f"{service.name}-{slot % service.n_instances}"
        slow = 1 + 2 * (t < run.warm_up_s)
        began = max(t, self.free_at[instance])
        served = service.seconds * slow * self.random.gammavariate(16, 1 / 16)
        self.free_at[instance] = began + served
        end = began + served + 0.0008
        by_service = (("service", service.name),)
        by_endpoint = (*by_service, ("endpoint", instance))
        by_method = (*by_service, ("method", method))
        self.observe(end, names.RPC_DURATION, slot, by_method, end - t)
        self.observe(end, names.RPC_BLOCKING, slot, by_method, 0.0002)
        self.count(end, "rolltop_rpc_calls_total", slot, by_endpoint, 1)
        self.count(end, "rolltop_rpc_endpoint_seconds_total", slot, by_endpoint, end - t)
        self.count(t, "alpasim_rpc_queue_depth_at_start_latest", slot, by_service, 1)
        self.count(end, "alpasim_rpc_queue_depth_at_start_latest", slot, by_service, -1)
        if run.server_times:
            waited = began - t
            endpoint = "rolltop_rpc_endpoint_{}_seconds_total"
            self.count(end, endpoint.format("queue"), slot, by_endpoint, waited)
            self.count(end, endpoint.format("service"), slot, by_endpoint, served)
            self.observe(end, names.RPC_SERVER_QUEUE, slot, by_service, waited)
            self.observe(end, names.RPC_SERVER_SERVICE, slot, by_service, served)
        return end

    def finish(self, t: float, slot: int, seconds: float, failed: bool) -> None:
        status = "failed" if failed else "completed"
        self.run.completed += not failed
        self.run.failed += failed
        self.count(t, "alpasim_renderer_active_rollouts", slot, (), -1)
        self.count(t, "alpasim_rollouts_total", slot, (("status", status),), 1)
        if not failed:
            self.observe(t, names.ROLLOUT_DURATION, slot, (), seconds)

    def count(self, t: float, name: str, slot: int, labels: Labels, by: float) -> None:
        worker = (("worker_id", str(slot % self.run.n_workers)),)
        self.events.append((t, name, worker + labels, by))

    def observe(
        self, t: float, metric: names.Metric, slot: int, labels: Labels, value: float
    ) -> None:
        worker = (("worker_id", str(slot % self.run.n_workers)),)
        self.events.append((t, metric, worker + labels, value))

    def scraped(self) -> SimulatedRun:
        """Turn events into samples, one a second, as long as the run lasts and two more."""
        self.born()
        self.events.sort(key=lambda e: e[0])
        values: dict[tuple[str, Labels], float] = {}
        seen: dict[tuple[names.Metric, Labels], list[float]] = defaultdict(list)
        samples = self.run.counters
        i = 0
        for second in range(int(self.run.end_s) + 3):
            while i < len(self.events) and self.events[i][0] <= second:
                _, name, labels, by = self.events[i]
                if isinstance(name, names.Metric):
                    seen[name, labels].append(by)
                else:
                    values[name, labels] = values.get((name, labels), 0.0) + by
                i += 1
            for (metric, labels), new in seen.items():
                _observe(values, metric, labels, new)
                new.clear()
            self.clocks(second, values)
            for key, value in values.items():
                samples.setdefault(key, []).append((self.run.start_s + second, value))
        return self.run

    def born(self) -> None:
        """Have every counter that a worker has from its start begin at 0."""
        for worker in range(self.run.n_workers):
            for status in ("completed", "failed"):
                labels = (("status", status),)
                self.count(0, "alpasim_rollouts_total", worker, labels, 0)
            for result, n in (("hit", 5), ("miss", 3)):
                labels = (("result", result),)
                self.count(1, "rolltop_scene_cache_requests_total", worker, labels, n)
            self.count(0, "rolltop_rollouts_abandoned_total", worker, (), 0)
            self.observe(1, names.SCENE_LOAD, worker, (), 0.3)

    def clocks(self, second: int, values: dict[tuple[str, Labels], float]) -> None:
        """Set what moves with the time alone."""
        for worker in range(self.run.n_workers):
            own = (("worker_id", str(worker)),)
            values["alpasim_simulation_elapsed_seconds", own] = second
            work = values.get(("alpasim_event_loop_work_seconds_total", own), 0.0)
            values["alpasim_event_loop_poll_seconds_total", own] = 0.05 * second
            values["alpasim_event_loop_idle_seconds_total", own] = 0.95 * second - work
            values["alpasim_gc_total_duration_seconds", own] = 0.001 * second
        values["alpasim_job_queue_depth", (("worker_id", "0"),)] = max(0, 30 - second)


def _observe(
    values: dict[tuple[str, Labels], float],
    metric: names.Metric,
    labels: Labels,
    new: list[float],
) -> None:
    """Add observations to the sum, the count and the cumulative buckets of a histogram."""
    for part, by in (("sum", sum(new)), ("count", len(new))):
        key = (f"{metric.name}_{part}", labels)
        values[key] = values.get(key, 0.0) + by
    for bound in (*metric.buckets, float("inf")):
        key = (f"{metric.name}_bucket", (*labels, ("le", f"{bound:g}".replace("inf", "+Inf"))))
        values[key] = values.get(key, 0.0) + sum(value <= bound for value in new)


def simulate(run: SimulatedRun) -> SimulatedRun:
    """Return the run with the samples of all its counters."""
    if not run.services:
        run.services = DRIVING
    return Simulator(run).simulate()


def openmetrics(run: SimulatedRun) -> str:
    """Return the run's samples as OpenMetrics text, with the labels of its targets."""
    lines: list[str] = []
    for (name, labels), samples in run.counters.items():
        target = _target(run, dict(labels).get("worker_id", "0"))
        text = ",".join(f'{k}="{v}"' for k, v in (*labels, *target.items()))
        lines += [f"{name}{{{text}}} {value:.9g} {t:.3f}" for t, value in samples]
    for worker in range(run.n_workers):
        text = ",".join(f'{k}="{v}"' for k, v in _target(run, str(worker)).items())
        for second in range(int(run.end_s) + 3):
            t = run.start_s + second
            lines.append(f"up{{{text}}} 1 {t:.3f}")
            lines.append(f"scrape_duration_seconds{{{text}}} 0.004 {t:.3f}")
            lines.append(f"scrape_samples_scraped{{{text}}} 320 {t:.3f}")
    return "\n".join([*lines, "# EOF", ""])


def _target(run: SimulatedRun, worker: str) -> dict[str, str]:
    return {
        "job": "alpasim-runtime-worker",
        "instance": f"127.0.0.1:{9100 + int(worker)}",
        "run_uuid": run.run_uuid,
        "run_name": "simulated",
        "node": "node-1",
    }
