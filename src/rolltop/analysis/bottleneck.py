"""Which service limits a run, by its series alone.

An instance serves one call at a time, so the share of time that it serves is its utilisation. The
service whose instances are busiest limits the run; where two are equally busy, the one that calls
wait for. Where no service is known to be busy and the workers are at work nearly all the time, the
workers limit it. Where nobody is busy the run is bound by latency, and the service that takes the
largest part of a step is named, or the workers where the calls take less than half of it. Without
times from the servers only the duration of the calls is left, which holds waiting and serving in
one: that is a weak sign, and said to be one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rolltop.analysis.steps import MethodLoad, seconds_by_service, step_shares
from rolltop.model.estimate import Bottleneck

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUSY = 0.5
"""Utilisation from which a service can be what limits the run."""
WAITING = 0.5
"""Seconds of waiting per second of serving from which calls are in each other's way."""
CLOSE = 0.05
"""Difference of utilisation within which the waiting decides."""
MOSTLY = 0.7
"""Share of the serving that has to be CPU for the CPU to be the resource."""
SLOW = 1.5
"""How many times the median instance's serving makes an instance a slow one."""
LOOP_FULL = 0.9
"""Share of time at work from which the workers themselves can be the limit."""
SMALL = 0.5
"""Share of a step below which the calls are too small a part of it for a service to be named."""
RUNTIME = "runtime"
"""What the workers are called where they are the limit."""

_BUSY_QUERY = "rate(rolltop_rpc_endpoint_service_seconds_total) per instance"
_WAIT_QUERY = "rolltop_rpc_endpoint_queue_seconds_total / rolltop_rpc_calls_total"
_CALL_QUERY = "alpasim_rpc_duration_seconds_sum / alpasim_step_duration_seconds_count"
_STEP_QUERY = "alpasim_step_duration_seconds_sum / alpasim_step_duration_seconds_count"
_LOOP_QUERY = "rate(alpasim_event_loop_work_seconds_total)"
_CPU_QUERY = "rate(namedprocess_namegroup_cpu_seconds_total)"
_NOT_TOLD = "no service says how long calls wait: waiting cannot be told from serving"


@dataclass(frozen=True)
class InstanceLoad:
    """What all workers recorded of one instance in the window. None: the server does not say."""

    service: str
    instance: str
    calls: float
    seconds: float
    queue_s: float | None = None
    service_s: float | None = None


@dataclass(frozen=True)
class RunLoad:
    """What the series say of a window of the run in which it was busy.

    ``worker_work`` is the share of time that the workers' event loops are at work, the mean of the
    workers; ``cpu`` the cores that each service's processes used; ``step_s`` the mean duration of
    a step. All may be unknown.
    """

    duration_s: float
    n_steps: float
    instances: Sequence[InstanceLoad] = ()
    methods: Sequence[MethodLoad] = ()
    worker_work: float | None = None
    cpu: Mapping[str, float] = field(default_factory=dict)
    step_s: float | None = None

    @property
    def calls_s(self) -> float:
        """Seconds of calls per step; calls that run side by side count each."""
        return sum(m.seconds for m in self.methods) / self.n_steps

    @property
    def calls_are_small(self) -> bool:
        """Whether the calls are known to take less than half of a step."""
        known = bool(self.methods) and self.step_s is not None
        return known and self.calls_s < SMALL * (self.step_s or 0.0)


@dataclass(frozen=True)
class BottleneckFinding:
    """The bottleneck, or the reason for which there is none to name."""

    bottleneck: Bottleneck | None
    reason: str | None = None


@dataclass(frozen=True)
class _Service:
    """One service in the window; ``busy`` is the mean utilisation of its instances."""

    name: str
    n_instances: int
    calls: float
    queue_s: float
    service_s: float
    busy: float
    instances: tuple[InstanceLoad, ...]

    @property
    def seconds(self) -> float:
        return self.queue_s + self.service_s

    @property
    def waiting(self) -> float:
        """Seconds of waiting per second of serving."""
        return self.queue_s / self.service_s if self.service_s > 0 else 0.0


def find_bottleneck(load: RunLoad) -> BottleneckFinding:
    """Return what limits the run, with its evidence and how certain it is.

    It is a service, or the workers: ``RUNTIME``.
    """
    if load.duration_s <= 0 or load.n_steps <= 0:
        return BottleneckFinding(None, "no worker recorded a step")
    services = _services(load)
    if _workers_are_full(load) and all(s.busy < BUSY for s in services):
        return BottleneckFinding(_full_workers(load, services))
    if not services:
        return _by_duration(load)
    ranked = sorted(services, key=lambda s: s.busy, reverse=True)
    close = [s for s in ranked if s.busy >= ranked[0].busy - CLOSE]
    busiest = max(close, key=lambda s: s.queue_s)
    if busiest.busy >= BUSY or (busiest.waiting >= WAITING and not load.calls_are_small):
        found = _saturated(load, busiest, services)
    elif load.calls_are_small:
        return BottleneckFinding(_own_time(load))
    else:
        found = _latency(load, services)
    return BottleneckFinding(_less_certain(load, found, {s.name for s in services}))


def _less_certain(load: RunLoad, found: Bottleneck, known: set[str]) -> Bottleneck:
    """Return the finding with a word on services that might be slower and do not say so."""
    seconds = seconds_by_service(step_shares(load.methods, load.n_steps))
    silent = [
        name
        for name, spent in seconds.items()
        if name not in known and spent > seconds.get(found.service, 0.0)
    ]
    if not silent:
        return found
    lines = tuple(
        f"{name} does not say how long its calls wait; they take {_ms(seconds[name])} a step,"
        f" more than {found.service}'s [{_CALL_QUERY}]"
        for name in silent
    )
    return replace(found, evidence=found.evidence + lines, certainty="low")


def _services(load: RunLoad) -> list[_Service]:
    """Return the services whose servers say their times."""
    names = list(dict.fromkeys(i.service for i in load.instances))
    services = []
    for name in names:
        instances = tuple(i for i in load.instances if i.service == name)
        if any(i.service_s is None for i in instances):
            continue
        served = sum(i.service_s or 0.0 for i in instances)
        services.append(
            _Service(
                name=name,
                n_instances=len(instances),
                calls=sum(i.calls for i in instances),
                queue_s=sum(i.queue_s or 0.0 for i in instances),
                service_s=served,
                busy=served / (len(instances) * load.duration_s),
                instances=instances,
            )
        )
    return [s for s in services if s.calls > 0]


def _saturated(load: RunLoad, service: _Service, services: Sequence[_Service]) -> Bottleneck:
    """Return a service whose instances are busy, or are waited for."""
    others = sorted((s for s in services if s is not service), key=lambda s: s.busy, reverse=True)
    margin = service.busy - others[0].busy if others else service.busy
    instances = "instance was" if service.n_instances == 1 else "instances were"
    lines = [
        f"its {service.n_instances} {instances} busy {_percent(service.busy)} of"
        f" {load.duration_s:.0f} s{_next(others)} [{_BUSY_QUERY}]",
        _wait_line(service),
        *_slow_instance(service),
        *_surroundings(load, service.name),
    ]
    if service.busy >= 0.8 and margin >= 0.2:  # noqa: PLR2004 - clearly busy, clearly ahead
        certainty = "high"
    else:
        certainty = "medium" if margin >= 0.1 else "low"  # noqa: PLR2004
    return Bottleneck(service.name, _resource(load, service), tuple(lines), certainty)


def _latency(load: RunLoad, services: Sequence[_Service]) -> Bottleneck:
    """Return the service that takes most of a step where no service is busy."""
    ranked = sorted(services, key=lambda s: s.seconds, reverse=True)
    first = ranked[0]
    everything = sum(s.seconds for s in services)
    share = first.seconds / everything if everything > 0 else 0.0
    second = ranked[1].seconds / everything if len(ranked) > 1 and everything > 0 else 0.0
    lines = [
        f"no service is busy; it takes {_percent(share)} of the time in services:"
        f" {_ms(first.seconds / load.n_steps)} a step [{_BUSY_QUERY}]",
        f"its instances were busy {_percent(first.busy)} of {load.duration_s:.0f} s"
        f" [{_BUSY_QUERY}]",
        _wait_line(first),
        *_surroundings(load, first.name),
    ]
    certainty = "medium" if share >= 2 * second else "low"
    return Bottleneck(first.name, "latency", tuple(lines), certainty)


def _workers_are_full(load: RunLoad) -> bool:
    return load.worker_work is not None and load.worker_work >= LOOP_FULL


def _full_workers(load: RunLoad, services: Sequence[_Service]) -> Bottleneck:
    """Return the workers as the limit: their event loops are full and no service is busy."""
    lines = [
        f"the workers' event loops were at work {_percent(load.worker_work or 0.0)} of"
        f" {load.duration_s:.0f} s [{_LOOP_QUERY}]",
        *_calls_in_step(load),
    ]
    if services:
        first = max(services, key=lambda s: s.busy)
        lines.append(
            f"the busiest service, {first.name}, was busy {_percent(first.busy)} [{_BUSY_QUERY}]"
        )
    elif load.methods:
        lines.append(_NOT_TOLD)
    small = bool(services) or not load.methods or load.calls_are_small
    return Bottleneck(RUNTIME, "worker", tuple(lines), "medium" if small else "low")


def _own_time(load: RunLoad) -> Bottleneck:
    """Return the workers as what takes most of a step, although their loops are not full."""
    lines = (*_calls_in_step(load), *_surroundings(load, RUNTIME))
    return Bottleneck(RUNTIME, "worker", lines, "low")


def _calls_in_step(load: RunLoad) -> list[str]:
    """Return a line on what part of a step the calls take, where both are known."""
    if load.step_s is None or load.step_s <= 0 or not load.methods:
        return []
    if load.calls_s > load.step_s:
        return [f"calls overlap: {_ms(load.calls_s)} of them in a step of {_ms(load.step_s)}"
                f" [{_CALL_QUERY}]"]  # fmt: skip
    return [
        f"calls take {_ms(load.calls_s)} of a step of {_ms(load.step_s)}, the rest passes in the"
        f" worker [{_CALL_QUERY}, {_STEP_QUERY}]"
    ]


def _by_duration(load: RunLoad) -> BottleneckFinding:
    """Return the service with the longest calls, where no server says its times."""
    seconds = seconds_by_service(step_shares(load.methods, load.n_steps))
    if not seconds:
        return BottleneckFinding(None, "no worker recorded a call to a service")
    if load.calls_are_small:
        return BottleneckFinding(_own_time(load))
    name, longest = next(iter(seconds.items()))
    share = longest / sum(seconds.values())
    lines = (
        f"it takes {_percent(share)} of the time of all calls: {_ms(longest)} a step"
        f" [{_CALL_QUERY}]",
        _NOT_TOLD,
        *_surroundings(load, name),
    )
    return BottleneckFinding(Bottleneck(name, "unknown", lines, "low"))


def _resource(load: RunLoad, service: _Service) -> str:
    """Return what the instances are busy with: their CPU where that is known, else their slots."""
    cores = load.cpu.get(service.name)
    served_at_once = service.service_s / load.duration_s
    if cores is not None and cores >= MOSTLY * served_at_once:
        return "cpu"
    return "slots"


def _wait_line(service: _Service) -> str:
    return (
        f"a call waited {_ms(service.queue_s / service.calls)} to be served for"
        f" {_ms(service.service_s / service.calls)} [{_WAIT_QUERY}]"
    )


def _slow_instance(service: _Service) -> list[str]:
    """Return a line on an instance that is at least half as slow again as the median one."""
    means = sorted(
        ((i.service_s or 0.0) / i.calls, i.instance) for i in service.instances if i.calls > 0
    )
    if len(means) < 2:  # noqa: PLR2004 - nothing to compare with
        return []
    slowest, name = means[-1]
    usual = means[(len(means) - 1) // 2][0]
    if slowest < SLOW * usual:
        return []
    return [f"{name} serves a call in {_ms(slowest)}, the others in {_ms(usual)} [{_BUSY_QUERY}]"]


def _surroundings(load: RunLoad, service: str) -> list[str]:
    """Return lines on the CPU of the service and on the workers, where known."""
    lines = []
    if service in load.cpu:
        lines.append(f"its processes used {load.cpu[service]:.1f} cores [{_CPU_QUERY}]")
    if load.worker_work is not None:
        lines.append(
            f"the workers' event loops were at work {_percent(load.worker_work)} of the time"
            f" [{_LOOP_QUERY}]"
        )
    return lines


def _next(others: Sequence[_Service]) -> str:
    return f", {others[0].name} {_percent(others[0].busy)}" if others else ""


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
