"""From a configuration to all that a launch starts, writes and scrapes. Nothing is started here.

Pure: ports, identity and the interpreter are given, so that the same arguments make the same plan.
Prometheus itself is not among the processes, only its port: the run goes on without it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rolltop.catalogue.panel import WORKER
from rolltop.config.schema import templates
from rolltop.launch import plan_files
from rolltop.model.plan import HealthCheck, LaunchPlan, ProcessPlan, Role
from rolltop.model.target import TargetGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rolltop.config import RunConfig
    from rolltop.config.schema import Process
    from rolltop.model.run import RunIdentity, RunPaths
    from rolltop.model.topology import ServicePlacement, Topology

HOST = "127.0.0.1"
SCHEDULER = "scheduler"
SERVICE_JOB = "rolltop-service"
"""The job of a page that a service or the scheduler has of its own."""


def ports_needed(config: RunConfig) -> int:
    """Return how many ports `plan` takes."""
    services = (
        place.n_instances * (1 + config.sim.services[place.service].metrics)
        for place in config.topology().services
        if not place.skip
    )
    scheduler = 0 if config.sim.scheduler is None else 1 + config.sim.scheduler.metrics
    return config.telemetry.enabled + scheduler + sum(services) + config.runtime.nr_workers


def plan(
    config: RunConfig,
    *,
    identity: RunIdentity,
    paths: RunPaths,
    ports: Sequence[int],
    node: str = "localhost",
    python: str = sys.executable,
) -> LaunchPlan:
    """Return what a launch starts, in the order of its start: services, scheduler, workers.

    Args:
        config: What the user asked for.
        identity: Who the run is.
        paths: Where its files lie.
        ports: As many free ports as `ports_needed` says. Where a process could not bind one, call
            again with another in its place.
        node: This node's name, for labels.
        python: The interpreter that ``python`` as the first word of a command stands for.
    """
    topology = config.topology()
    digest = plan_files.digest_of(topology)
    free = iter(ports)
    prometheus_port = next(free) if config.telemetry.enabled else None
    drafts = _drafts(config, topology, free)
    writer = _Writer(config, identity, paths, digest, node, python, _address_of_scheduler(drafts))
    processes = tuple(writer.process(draft) for draft in drafts)
    services = tuple(process for process in processes if process.role is Role.SERVICE)
    return LaunchPlan(
        processes=processes,
        files={
            paths.endpoints_file.name: plan_files.render_endpoints(services, topology),
            paths.rollouts_file.name: plan_files.render_rollouts(config),
            paths.faults_file.name: plan_files.render_faults(config),
        },
        warnings=tuple(_warnings(config, topology)),
        targets=tuple(writer.targets(processes)) if config.telemetry.enabled else (),
        prometheus_port=prometheus_port,
        topology_digest=digest,
    )


@dataclass(frozen=True)
class _Draft:
    """A process before its templates are filled: ``values`` are those of this process alone."""

    name: str
    role: Role
    program: Process
    service: str | None = None
    gpu: int | None = None
    port: int | None = None
    metrics_port: int | None = None
    values: dict[str, str] = field(default_factory=dict)


def _drafts(config: RunConfig, topology: Topology, ports: Iterator[int]) -> list[_Draft]:
    drafts: list[_Draft] = []
    for place in topology.services:
        if not place.skip:
            drafts += _instances(config, place, ports)
    program = config.sim.scheduler
    if program is not None:
        port, page = next(ports), next(ports) if program.metrics else None
        drafts.append(_Draft(SCHEDULER, Role.SCHEDULER, program, port=port, metrics_port=page))
    for number in range(topology.nr_workers):
        drafts.append(
            _Draft(
                f"worker-{number}",
                Role.WORKER,
                config.sim.worker,
                metrics_port=next(ports),
                values={"worker_id": str(number)},
            )
        )
    return drafts


def _instances(
    config: RunConfig, place: ServicePlacement, ports: Iterator[int]
) -> Iterator[_Draft]:
    """Yield ``renderer-0``, ``renderer-1`` ...: container by container, replica by replica."""
    program = config.sim.services[place.service]
    n_concurrent = place.n_concurrent_rollouts
    cache_size = n_concurrent + 1 if place.cache_size is None else place.cache_size
    for number in range(place.n_instances):
        yield _Draft(
            f"{place.service}-{number}",
            Role.SERVICE,
            program,
            service=place.service,
            gpu=place.gpus[number // place.replicas_per_container],
            port=next(ports),
            metrics_port=next(ports) if program.metrics else None,
            values={"n_concurrent": str(n_concurrent), "cache_size": str(cache_size)},
        )


def _address_of_scheduler(drafts: Sequence[_Draft]) -> str:
    return next((f"{HOST}:{d.port}" for d in drafts if d.role is Role.SCHEDULER), "")


@dataclass(frozen=True)
class _Writer:
    """Fills in the templates."""

    config: RunConfig
    identity: RunIdentity
    paths: RunPaths
    digest: str
    node: str
    python: str
    scheduler: str

    def process(self, draft: _Draft) -> ProcessPlan:
        program = draft.program
        values = self._values(draft)
        argv = [templates.expand(word, values) for word in program.command]
        if argv[0] == "python":
            argv[0] = self.python
        env = {name: templates.expand(text, values) for name, text in program.env.items()}
        return ProcessPlan(
            name=draft.name,
            role=draft.role,
            argv=tuple(argv),
            env={**self._devices(draft), **env, **self._environment(draft)},
            service=draft.service,
            node=self.node,
            gpu=draft.gpu,
            port=draft.port,
            metrics_port=draft.metrics_port,
            health=HealthCheck(program.health.kind, program.health.path, program.start_timeout_s),
            group=program.group or draft.service or draft.name,
            oom_patterns=program.oom_patterns,
        )

    def _values(self, draft: _Draft) -> dict[str, str]:
        runtime = self.config.runtime
        return {
            "run_dir": str(self.paths.run_dir),
            "sim_dir": str(self.config.sim.dir or ""),
            "run_uuid": self.identity.run_uuid,
            "seed": str(self.config.run.seed),
            "nr_workers": str(runtime.nr_workers),
            "steps_per_rollout": str(runtime.steps_per_rollout),
            "max_retries": str(runtime.max_rollout_retries),
            "stagger": "0",
            "device_socket": "",
            "endpoints_file": str(self.paths.endpoints_file),
            "rollouts_file": str(self.paths.rollouts_file),
            "faults_file": str(self.paths.faults_file),
            "scheduler": self.scheduler,
            "instance": draft.name,
            "gpu": "" if draft.gpu is None else str(draft.gpu),
            "port": str(draft.port),
            "metrics_port": str(draft.metrics_port),
            **draft.values,
        }

    def _environment(self, draft: _Draft) -> dict[str, str]:
        """Return what `rolltop_instrument` reads, so that a worker need not be told twice."""
        telemetry = self.config.telemetry
        worker: dict[str, str] = {}
        if draft.role is Role.WORKER:
            worker["ROLLTOP_WORKER_ID"] = draft.values["worker_id"]
            worker["ROLLTOP_METRICS_PORT"] = str(draft.metrics_port)
        return {
            "ROLLTOP_RUN_UUID": self.identity.run_uuid,
            "ROLLTOP_RUN_NAME": self.identity.run_name,
            "ROLLTOP_TOPOLOGY_DIGEST": self.digest,
            "ROLLTOP_SCRAPE_INTERVAL_S": f"{telemetry.worker_interval_s:g}",
            "ROLLTOP_TELEMETRY": "1" if telemetry.enabled else "0",
            **worker,
        }

    def _devices(self, draft: _Draft) -> dict[str, str]:
        """Show a service its own GPU alone, by the number that ``nvidia-smi`` gives it."""
        if self.config.device != "nvidia" or draft.role is not Role.SERVICE:
            return {}
        shown = "" if draft.gpu is None else str(draft.gpu)
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": shown}

    def targets(self, processes: Sequence[ProcessPlan]) -> Iterator[TargetGroup]:
        """Yield the workers' pages as one group, other processes' pages by their group."""
        pages = [process for process in processes if process.metrics_port is not None]
        workers = [page for page in pages if page.role is Role.WORKER]
        yield self._target_group(workers, WORKER.job, "runtime")
        for component in dict.fromkeys(p.group for p in pages if p.role is not Role.WORKER):
            members = [p for p in pages if p.role is not Role.WORKER and p.group == component]
            yield self._target_group(members, SERVICE_JOB, component or "")

    def _target_group(self, pages: Sequence[ProcessPlan], job: str, component: str) -> TargetGroup:
        return TargetGroup(
            targets=tuple(f"{HOST}:{page.metrics_port}" for page in pages),
            labels={
                "run_uuid": self.identity.run_uuid,
                "run_name": self.identity.run_name,
                "user": self.identity.user,
                "node": self.node,
                "slurm_job_id": self.identity.slurm_job_id,
                "job": job,
                "component": component,
                "__param_run": self.identity.run_uuid,
            },
        )


def _warnings(config: RunConfig, topology: Topology) -> Iterator[str]:
    yield from config.notes
    slots = sorted({g for s in topology.services if not s.skip for g in s.gpus if g is not None})
    if config.device == "none" and slots:
        named = ", ".join(map(str, slots))
        yield f"no GPU is used: an index in gpus ({named}) is a slot for one container"
    if topology.nr_workers > topology.capacity:
        yield (
            f"runtime.nr_workers is {topology.nr_workers}, but the services take only "
            f"{topology.capacity} rollouts at once: some workers will have nothing to do"
        )
