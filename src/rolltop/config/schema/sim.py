"""The contract by which a simulator is brought: what ``sim/<name>.yaml`` holds."""

from __future__ import annotations

import re
from string import Formatter
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rolltop.config.schema import templates
from rolltop.config.schema.base import WORD, Model, Positive, Seconds, Text, Word
from rolltop.model.plan import HealthKind

RESERVED = frozenset({"worker", "scheduler", "prometheus", "guard"})
"""Names of a run's own processes and of their logs."""
RUN_VARIABLES = frozenset(
    f"ROLLTOP_{name}"
    for name in (
        "GUARD",
        "METRICS_PORT",
        "PROCESS",
        "RUN_NAME",
        "RUN_UUID",
        "SCRAPE_INTERVAL_S",
        "TELEMETRY",
        "TOPOLOGY_DIGEST",
        "WORKER_ID",
    )
)
"""Variables by which a run's processes are known and know their run: it sets them itself."""
SCENE_NAME_MAX = 200
"""Characters of a scene's name, of the 255 that a file's name may have."""
_SCENE_FIELD = re.compile(r"(?:[0_.-]?>)?#?0?\d{0,3}_?[bdoxX]?")
"""Formats of a whole number in which no two are written alike: ``04d``, ``_>5``, ``x``."""
_LAST_SCENE = 999_999_999
KNOBS = ("nr_workers", "gpus", "replicas_per_container", "n_concurrent_rollouts", "cache_size")


class Health(Model):
    """How a process shows that it is ready: gRPC health, an HTTP path, an open port."""

    kind: HealthKind = HealthKind.NONE
    path: str = Field(default="/", pattern=r"^/")
    """For HTTP only."""


class Process(Model):
    """A program of the simulator. ``command`` is a list of arguments, never a shell line."""

    command: tuple[Text, ...] = Field(min_length=1)
    """With templates. `python` as the first word is the interpreter that rolltop runs on."""
    env: dict[str, Text] = Field(default_factory=dict)
    """Added to the environment, with templates."""
    image: str | None = None
    """For deployments in containers. This version has none, and does not read it."""
    health: Health = Health()
    start_timeout_s: Seconds = 60.0
    """How long it may take until it is healthy."""
    group: Word | None = None
    """The name in process metrics; the service's own where not given."""
    metrics: bool = False
    """It has a page of its own on {metrics_port}."""
    oom_patterns: tuple[str, ...] = ()
    """Regular expressions: what its log says when memory ran out."""

    @field_validator("oom_patterns")
    @classmethod
    def _patterns_compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return patterns

    @field_validator("env")
    @classmethod
    def _variables_are_free(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not name or "=" in name:
                raise ValueError(f"{name!r} cannot be the name of a variable: empty, or with a '='")
            if name in RUN_VARIABLES:
                raise ValueError(f"{name} is one of the variables that the run itself sets")
        return env

    def texts(self) -> tuple[tuple[str, str], ...]:
        """Return every text that may hold templates, as (place below the process, text)."""
        command = [("command", text) for text in self.command]
        return (*command, *((f"env.{name}", text) for name, text in self.env.items()))


class Service(Process):
    """One of the simulator's services, of which a topology starts one instance or many."""

    supports_replicas: bool = True
    """Several instances may share a container and its GPU."""
    batches: bool = False
    """It serves several calls in one go. This version does not read it."""


class Scheduler(Process):
    """The process that hands out rollouts, owns the slots per service and retries."""


class Worker(Process):
    """A process that drives rollouts. It always has a page, on {metrics_port}."""

    supports_stagger: bool = False
    """It starts its first rollouts part-way, by {stagger}. This version does not read it."""
    group: Word | None = "runtime"

    @field_validator("health")
    @classmethod
    def _is_never_asked(cls, health: Health) -> Health:
        if health.kind is not HealthKind.NONE:
            raise ValueError(
                f"kind={health.kind} needs a port, and a worker has none but that of its page: "
                "a worker is ready once it runs, kind=none"
            )
        return health


class StepsPerRollout(Model):
    """Steps of a rollout, where rollouts may end early."""

    max: Positive
    """Steps of one that does not end early: the default of `runtime.steps_per_rollout`."""
    mean: float | None = Field(default=None, gt=0)
    """Over all rollouts, where it is known."""


class Scenes(Model):
    """How many scenes there are, and how they are named."""

    count: Positive = 1000
    name: str = Field(default="scene-{index:04d}", max_length=SCENE_NAME_MAX)
    """A format with {index}, a whole number from 0 to count - 1; part of a path."""

    @field_validator("name")
    @classmethod
    def _is_a_format(cls, name: str) -> str:
        n_fields = _count_fields(name)
        if n_fields is None:
            raise ValueError(
                f"{name!r} cannot be filled with {{index}}, a whole number as in {{index:04d}}"
            )
        if n_fields == 0:
            raise ValueError(f"{name!r} has no {{index}}: all scenes would have one name")
        first, last = name.format(index=0), name.format(index=_LAST_SCENE)
        if len(last) > SCENE_NAME_MAX:
            raise ValueError(
                f"{name!r} makes names of {len(last):,} characters: "
                f"must be at most {SCENE_NAME_MAX} characters long"
            )
        if not re.fullmatch(WORD, first):
            raise ValueError(f"{first!r} cannot be the name of a directory")
        return name


def _count_fields(name: str) -> int | None:
    """Return how often a scene's name has {index}, None where it cannot be filled with it.

    Nothing is formatted before this is known: a few characters can ask for more than a machine
    holds.
    """
    try:
        parts = list(Formatter().parse(name))
    except ValueError:
        return None
    fields = [(field, how or "", change) for _, field, how, change in parts if field is not None]
    if any(
        field != "index" or change or not _SCENE_FIELD.fullmatch(how)
        for field, how, change in fields
    ):
        return None
    return len(fields)


def _steps(value: object) -> object:
    return {"max": value} if not isinstance(value, dict) else value


class Simulator(Model):
    """``sim/<name>.yaml``: all that rolltop knows of a simulator."""

    name: Word
    services: dict[Word, Service] = Field(min_length=1)
    worker: Worker
    scheduler: Scheduler | None = None
    """Without one, each worker takes its share of the rollouts file."""
    steps_per_rollout: Annotated[
        StepsPerRollout, BeforeValidator(_steps, json_schema_input_type=Positive | StepsPerRollout)
    ]
    scenes: Scenes = Scenes()
    knobs: dict[str, str] = Field(default_factory=dict)
    """Topology knob -> the override path that this simulator understands for it:
    `cache_size.renderer: defines.nre_cache_size`. A knob that is not mapped is not tuned."""
    skip: dict[Word, bool] = Field(default_factory=dict)
    """What the shipped topologies skip: `trafficsim: false` turns traffic on, which is off in
    them; `physics: true` leaves out a service that this simulator does not have. A topology of
    the simulator's own says it in `runtime.endpoints.<s>.skip`."""

    @field_validator("services")
    @classmethod
    def _names_are_free(cls, services: dict[str, Service]) -> dict[str, Service]:
        for name in RESERVED & services.keys():
            raise ValueError(f"{name!r} cannot be the name of a service: a run has its own")
        return services

    @field_validator("knobs")
    @classmethod
    def _knobs_are_known(cls, knobs: dict[str, str]) -> dict[str, str]:
        for knob in knobs:
            kind, _, service = knob.partition(".")
            if kind not in KNOBS or bool(service) == (kind == "nr_workers"):
                raise ValueError(
                    f"{knob!r} is no knob: there are nr_workers and "
                    + ", ".join(f"{name}.<service>" for name in KNOBS[1:])
                )
        return knobs

    @model_validator(mode="after")
    def _templates_are_known(self) -> Simulator:
        everywhere = set(templates.EVERYWHERE)
        if self.scheduler is None:
            everywhere.discard("scheduler")
        for name, service in self.services.items():
            _check(f"sim.services.{name}", service, everywhere | set(templates.OF_SERVICES))
        if self.scheduler is not None:
            known = everywhere | set(templates.OF_THE_SCHEDULER)
            _check("sim.scheduler", self.scheduler, known)
        _check("sim.worker", self.worker, everywhere | set(templates.OF_WORKERS), page=True)
        return self


def _check(place: str, process: Process, known: set[str], *, page: bool = False) -> None:
    if not (page or process.metrics):
        known = known - {"metrics_port"}
    for below, text in process.texts():
        templates.check(f"{place}.{below}", (text,), known)
