"""The whole configuration of a run, validated and resolved."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import yaml
from pydantic import ConfigDict, Field, JsonValue, PrivateAttr, field_validator, model_validator

from rolltop.config.schema.base import Interval, Model, Positive, Word
from rolltop.config.schema.sim import Simulator
from rolltop.errors import ConfigError
from rolltop.model.redact import redact_mapping
from rolltop.model.topology import ServicePlacement, Topology

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_PORT, LAST_PORT = 1024, 65535
INSTANCES_MAX = 4096
"""Of all services of a run together, each a process of its own."""


class Run(Model):
    """Who the run is, and where its files lie."""

    dir: Path
    """Absolute. `wizard.log_dir` is its other name."""
    name: Word
    """For people; the simulator's and the topology's names where not given."""
    uuid: str
    """A new one where not given."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Same seed, same rollouts."""

    @field_validator("uuid")
    @classmethod
    def _is_a_uuid(cls, text: str) -> str:
        try:
            return str(UUID(text))
        except ValueError:
            raise ValueError(f"{text!r} is no uuid") from None


class Endpoint(Model):
    """How the workers use one service."""

    n_concurrent_rollouts: Annotated[int, Field(ge=1, le=100_000)]
    """Rollouts that one instance takes at once."""
    skip: bool = False
    """The service is neither started nor called."""


class Runtime(Model):
    """What the workers do."""

    rollouts: Annotated[int, Field(ge=1, le=1_000_000)] = 12
    """How many are driven in all."""
    steps_per_rollout: Positive
    """The simulator's own where not given."""
    max_rollout_retries: Annotated[int, Field(ge=0, le=1000)] = 2
    """How often a failed rollout is tried again before it is abandoned."""
    nr_workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Worker processes, which share the rollouts."""
    endpoints: dict[Word, Endpoint] = Field(min_length=1)


class Placement(Model):
    """Where one service sits."""

    gpus: tuple[Annotated[int, Field(ge=0, lt=INSTANCES_MAX)], ...] | None = Field(
        default=None, min_length=1, max_length=INSTANCES_MAX
    )
    """One container per entry, a repeated index: several on that GPU; null: one on the CPU."""
    replicas_per_container: Annotated[int, Field(ge=1, le=INSTANCES_MAX)] = 1
    """Instances per container, on the same GPU."""


class Telemetry(Model):
    """What is measured, and how often."""

    enabled: bool = True
    """Off, nothing is measured, and the run has no plot."""
    strict: bool = False
    """Telemetry that the run started, or that every run has, fails the run if it fails itself, with
    exit status 7. An exporter that this run does not have is not counted."""
    worker_interval_s: Interval = 1.0
    """Between two scrapes of a worker's page."""
    exporter_interval_s: Interval = 5.0
    """Between two scrapes of an exporter."""
    rule_interval_s: Interval = 5.0
    """Between two evaluations of the recording rules."""


class Ports(Model):
    """Ports that the run may use."""

    range: str | None = None
    """First and last, `20000-29999`; where not given, ports that the kernel does not give away."""

    @field_validator("range")
    @classmethod
    def _is_a_range(cls, text: str | None) -> str | None:
        found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text) if text else None
        if text is not None and not (
            found and FIRST_PORT <= int(found[1]) <= int(found[2]) <= LAST_PORT
        ):
            raise ValueError(
                f"{text!r} is no range of ports: two numbers between {FIRST_PORT} and {LAST_PORT}, "
                "such as 20000-29999"
            )
        return text

    def allowed(self) -> builtins.range | None:
        """Return the ports of the range, both ends included; None where it is not given."""
        if self.range is None:
            return None
        first, last = self.range.split("-")
        return builtins.range(int(first), int(last) + 1)


class Fault(Model):
    """What goes wrong in every instance of one service."""

    delay_ms: float = Field(default=0.0, ge=0)
    """Held in the service's slot without burning CPU."""
    fail_ratio: float = Field(default=0.0, ge=0, le=1)
    """The part of the calls that fail."""
    fail_method: str | None = None
    """The method that fails; every one where not given."""
    crash_after: Positive | None = None
    """Calls served, after which the process exits with status 3."""


class ChosenSimulator(Simulator):
    """The simulator of the run, with what the user asks of it."""

    file: Path | None = None
    """Where its description was read from, if not from an installed package."""
    dir: Path | None = None
    """What `{sim_dir}` stands for. Nobody sets it: it follows from `sim.file` or the package."""
    faults: dict[Word, Fault] = Field(default_factory=dict)


class RunConfig(Model):
    """The whole configuration of a run; `compose` is the way to make one.

    Invariants: every service of the simulator has a placement and an endpoint, the others are
    skipped; every capacity is above zero; all paths are absolute; `device` is decided.
    """

    model_config = ConfigDict(populate_by_name=True)

    run: Run
    runtime: Runtime
    services: dict[Word, Placement]
    sim: ChosenSimulator
    telemetry: Telemetry = Telemetry()
    ports: Ports = Ports()
    device: Literal["none", "nvidia"] = "none"
    """What an index in `gpus` is: a slot, or a GPU of this node. `auto` is decided for one of them
    when the run is composed."""
    defines: dict[str, JsonValue] = Field(default_factory=dict)
    """Values for interpolations and knobs; `filesystem` is where data live that outlast runs."""
    deploy: str = "local"
    topology_name: str = Field(default="", alias="topology")
    site: str = "default"
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _parts_fit(self) -> RunConfig:
        for complaint in _complaints(self):
            raise complaint
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided that the user may not expect. Said once, and not part of the file."""
        return self._notes

    def noting(self, *notes: str) -> RunConfig:
        """Return the same configuration with such notes."""
        noted = self.model_copy()
        noted._notes = notes
        return noted

    def lookup(self, path: str) -> Any:
        """Return the value at a dotted path such as ``runtime.endpoints.driver.skip``.

        Raises:
            KeyError: There is nothing at it.
        """
        value: Any = self.model_dump(mode="json", by_alias=True)
        for part in path.split("."):
            if not isinstance(value, dict):
                raise KeyError(path)
            value = value[part]
        return value

    def cache_size(self, service: str) -> int | None:
        """Return the cache size of a service by the simulator's knobs, None if it is not mapped."""
        path = self.sim.knobs.get(f"cache_size.{service}")
        return None if path is None else int(self.lookup(path))

    def topology(self) -> Topology:
        """Return the placement of all services, the skipped ones too."""
        return Topology(
            services=tuple(self._placement(service) for service in self.services),
            nr_workers=self.runtime.nr_workers,
        )

    def _placement(self, service: str) -> ServicePlacement:
        place, endpoint = self.services[service], self.runtime.endpoints[service]
        return ServicePlacement(
            service=service,
            gpus=(None,) if place.gpus is None else place.gpus,
            replicas_per_container=place.replicas_per_container,
            n_concurrent_rollouts=endpoint.n_concurrent_rollouts,
            skip=endpoint.skip,
            cache_size=self.cache_size(service),
        )

    def highest_gpu(self) -> tuple[str, int] | None:
        """Return the service with the highest GPU index, and the index; None on CPUs alone."""
        used = [
            (max(place.gpus), name)
            for name, place in self.services.items()
            if place.gpus is not None and not self.runtime.endpoints[name].skip
        ]
        return (max(used)[1], max(used)[0]) if used else None

    def redacted_yaml(self) -> str:
        """Return the text of ``config.yaml``: every default and interpolation, but no secret."""
        data = redact_mapping(self.model_dump(mode="json", by_alias=True))
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


def _complaints(config: RunConfig) -> Iterator[ConfigError]:
    yield from _services_without_endpoint(config)
    yield from _services_that_differ(config)
    yield from _replicas_refused(config)
    yield from _too_many_instances(config)
    yield from _faults_without_service(config)
    yield from _knobs_that_lead_nowhere(config)
    for service in config.sim.skip:
        if service not in config.services and service not in config.sim.services:
            yield ConfigError(
                f"sim.skip.{service}: neither the topology nor the simulator has that service",
                hint=f"the simulator has: {', '.join(config.sim.services)}",
            )
    if all(endpoint.skip for endpoint in config.runtime.endpoints.values()):
        yield ConfigError(
            "runtime.endpoints: every service is skipped, a run without capacity",
            hint="set skip=false on at least one",
        )


def _services_without_endpoint(config: RunConfig) -> Iterator[ConfigError]:
    for service in sorted(config.services.keys() - config.runtime.endpoints.keys()):
        path = f"runtime.endpoints.{service}"
        yield ConfigError(
            f"{path} is missing: services.{service} is placed, "
            "but nothing says how many rollouts it takes",
            hint=f"+{path}.n_concurrent_rollouts=4",
        )
    for service in sorted(config.runtime.endpoints.keys() - config.services.keys()):
        yield ConfigError(
            f"services.{service} is missing: runtime.endpoints.{service} says how it is used, "
            "but nothing where it sits",
            hint=f"+services.{service}.gpus=[0], or ~runtime.endpoints.{service}",
        )


def _services_that_differ(config: RunConfig) -> Iterator[ConfigError]:
    name = config.sim.name
    known = config.sim.services
    endpoints = config.runtime.endpoints
    strangers = [other for other in endpoints if other not in known and not endpoints[other].skip]
    if strangers:
        yield ConfigError(
            f"{', '.join(f'services.{service}' for service in strangers)}: "
            f"the simulator {name!r} has no such service, it has {', '.join(known)}",
            hint=" ".join(f"runtime.endpoints.{service}.skip=true" for service in strangers),
        )
    for service in known:
        if service not in config.services:
            yield ConfigError(
                f"services.{service} is missing in topology={config.topology_name}: "
                f"the simulator {name!r} has that service",
                hint=f"+services.{service}.gpus=[0] "
                f"+runtime.endpoints.{service}.n_concurrent_rollouts=4",
            )


def _replicas_refused(config: RunConfig) -> Iterator[ConfigError]:
    for name, place in config.services.items():
        service = config.sim.services.get(name)
        if service and place.replicas_per_container > 1 and not service.supports_replicas:
            gpu = 0 if place.gpus is None else place.gpus[0]
            yield ConfigError(
                f"services.{name}.replicas_per_container is {place.replicas_per_container}, "
                f"but {name} of {config.sim.name!r} does not support replicas",
                hint=f"repeat its entry instead: services.{name}.gpus=[{gpu},{gpu}]",
            )


def _too_many_instances(config: RunConfig) -> Iterator[ConfigError]:
    counts = {
        name: place.replicas_per_container * len(place.gpus or (None,))
        for name, place in config.services.items()
        if not config.runtime.endpoints[name].skip
    }
    if sum(counts.values()) > INSTANCES_MAX:
        most = max(counts, key=lambda name: counts[name])
        yield ConfigError(
            f"services: {sum(counts.values()):,} instances in all, "
            f"{counts[most]:,} of them of {most}: must be at most {INSTANCES_MAX:,}",
            hint=f"a smaller services.{most}.replicas_per_container, or fewer entries in its gpus",
        )


def _faults_without_service(config: RunConfig) -> Iterator[ConfigError]:
    for service in config.sim.faults:
        if service not in config.sim.services:
            yield ConfigError(
                f"sim.faults.{service}: the simulator {config.sim.name!r} has no such service",
                hint=f"there are: {', '.join(config.sim.services)}",
            )


def _knobs_that_lead_nowhere(config: RunConfig) -> Iterator[ConfigError]:
    for knob, path in config.sim.knobs.items():
        try:
            value = config.lookup(path)
        except KeyError:
            yield ConfigError(
                f"sim.knobs.{knob}: {path} is no path of this configuration",
                hint=f"+{path}=... adds it",
            )
            continue
        whole = isinstance(value, int) and not isinstance(value, bool)
        if knob.startswith("cache_size.") and not (whole and value >= 1):
            yield ConfigError(f"{path}: a cache size must be a whole number above 0, not {value!r}")
