"""``summary.json``: what came of a run, for programs to read.

An unknown is null, with an entry in ``telemetry.missing`` that says why; it is never 0.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rolltop.files import read_file, replace_file
from rolltop.model.redact import redact
from rolltop.model.run import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.model.estimate import Bottleneck, ThroughputEstimate
    from rolltop.model.run import Failure, RolloutCounts, RunIdentity
    from rolltop.model.topology import ServicePlacement, Topology

SCHEMA: Literal[1] = 1

_BYTES_MAX = 64 << 20


class _Record(BaseModel):
    """A part of the summary: nothing but what is named, and fixed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FailureRecord(_Record):
    """The process that ended the run."""

    process: str
    exit_status: int | None = Field(description="null: it could not even start")
    reason: str
    log_tail: list[str]


class AttemptRecord(_Record):
    """One start of the run; a requeued job has several."""

    slurm_job_id: str | None
    started: datetime
    ended: datetime | None
    outcome: Outcome


class ServiceRecord(_Record):
    """Where a service sits and how many rollouts it takes."""

    gpus: list[int | None] = Field(description="one entry per container; null: a CPU container")
    replicas_per_container: int
    n_concurrent_rollouts: int
    skip: bool
    cache_size: int | None


class TopologyRecord(_Record):
    """All services, the number of workers, and the rollouts that they take at once."""

    name: str | None
    digest: str | None
    nr_workers: int
    capacity: int
    services: dict[str, ServiceRecord]


class RolloutsRecord(_Record):
    """Rollouts of the run; an attempt that failed is not a rollout."""

    requested: int
    completed: int
    abandoned: int
    failed_attempts: int
    first_wave: int
    scenes_failed: dict[str, int]


class ThroughputRecord(_Record):
    """Seconds per completed rollout; ``reason`` says why ``steady`` is null."""

    full_run: float | None
    last_5m: float | None
    steady: float | None
    half_width: float | None
    confidence: float
    steady_since_s: float | None
    reason: str | None


class BottleneckRecord(_Record):
    """The service that limits the run, by its series."""

    service: str
    resource: str
    evidence: list[str]
    certainty: Literal["low", "medium", "high"]


class PanelsRecord(_Record):
    """How many panels of the plot show something, and why the others do not."""

    drawn: int
    empty: dict[str, str]


class TelemetryRecord(_Record):
    """What the telemetry lacks, and what it cost."""

    missing: dict[str, str] = Field(description="series, exporter or figure: why it is unknown")
    gaps_s: float | None
    scrapes_lost: int | None
    cpu_seconds_ratio: float | None = Field(
        description="CPU of Prometheus over that of all processes of the run"
    )


class TimesRecord(_Record):
    """When the run started, when its first rollout did, when it ended; UTC."""

    started: datetime
    first_rollout: datetime | None
    ended: datetime


class VersionsRecord(_Record):
    """What made the run."""

    rolltop: str
    prometheus: str | None


class RunSummary(_Record):
    """The whole of ``summary.json``."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    run_uuid: str
    run_name: str
    outcome: Outcome
    failure: FailureRecord | None
    attempts: list[AttemptRecord]
    nodes: list[str]
    topology: TopologyRecord
    rollouts: RolloutsRecord
    seconds_per_rollout: ThroughputRecord
    bottleneck: BottleneckRecord | None
    panels: PanelsRecord
    telemetry: TelemetryRecord
    times: TimesRecord
    versions: VersionsRecord


def topology_record(
    topology: Topology, *, name: str | None = None, digest: str | None = None
) -> TopologyRecord:
    """Return a topology as the summary has it."""
    return TopologyRecord(
        name=name,
        digest=digest,
        nr_workers=topology.nr_workers,
        capacity=topology.capacity,
        services={s.service: _service_record(s) for s in topology.services},
    )


def _service_record(placement: ServicePlacement) -> ServiceRecord:
    return ServiceRecord(
        gpus=list(placement.gpus),
        replicas_per_container=placement.replicas_per_container,
        n_concurrent_rollouts=placement.n_concurrent_rollouts,
        skip=placement.skip,
        cache_size=placement.cache_size,
    )


def build_summary(
    *,
    identity: RunIdentity,
    outcome: Outcome,
    failure: Failure | None,
    nodes: list[str],
    topology: TopologyRecord,
    counts: RolloutCounts,
    throughput: ThroughputEstimate,
    bottleneck: Bottleneck | None,
    panels: PanelsRecord,
    telemetry: TelemetryRecord,
    first_rollout: datetime | None,
    ended: datetime,
    versions: VersionsRecord,
    attempts: list[AttemptRecord] | None = None,
) -> RunSummary:
    """Return the summary of a run; by default it was attempted once.

    An unknown that ``telemetry.missing`` does not name yet is named there.
    """
    once = AttemptRecord(
        slurm_job_id=identity.slurm_job_id or None,
        started=identity.started,
        ended=ended,
        outcome=outcome,
    )
    unknown = {
        "telemetry.cpu_seconds_ratio": telemetry.cpu_seconds_ratio,
        "telemetry.scrapes_lost": telemetry.scrapes_lost,
        "telemetry.gaps_s": telemetry.gaps_s,
        "bottleneck": bottleneck,
        "times.first_rollout": first_rollout,
        "versions.prometheus": versions.prometheus,
        "seconds_per_rollout.full_run": throughput.full_run,
        "seconds_per_rollout.last_5m": throughput.last_5m,
    }
    missing = {k: "not measured in this run" for k, value in unknown.items() if value is None}
    if counts.completed == 0:
        missing |= dict.fromkeys(
            missing.keys() & {"seconds_per_rollout.full_run", "seconds_per_rollout.last_5m"},
            "no rollout was completed",
        )
    return RunSummary(
        schema=SCHEMA,
        run_uuid=identity.run_uuid,
        run_name=identity.run_name,
        outcome=outcome,
        failure=_failure_record(failure),
        attempts=attempts if attempts is not None else [once],
        nodes=nodes,
        topology=topology,
        rollouts=_rollouts_record(counts),
        seconds_per_rollout=ThroughputRecord(**vars(throughput)),
        bottleneck=_bottleneck_record(bottleneck),
        panels=panels,
        telemetry=telemetry.model_copy(update={"missing": missing | telemetry.missing}),
        times=TimesRecord(started=identity.started, first_rollout=first_rollout, ended=ended),
        versions=versions,
    )


def _failure_record(failure: Failure | None) -> FailureRecord | None:
    if failure is None:
        return None
    return FailureRecord(
        process=failure.process,
        exit_status=failure.exit_status,
        reason=redact(failure.reason),
        log_tail=[redact(line) for line in failure.log_tail],
    )


def _rollouts_record(counts: RolloutCounts) -> RolloutsRecord:
    return RolloutsRecord(
        requested=counts.requested,
        completed=counts.completed,
        abandoned=counts.abandoned,
        failed_attempts=counts.failed_attempts,
        first_wave=counts.first_wave,
        scenes_failed=dict(counts.scenes_failed),
    )


def _bottleneck_record(bottleneck: Bottleneck | None) -> BottleneckRecord | None:
    if bottleneck is None:
        return None
    return BottleneckRecord.model_validate(
        {**vars(bottleneck), "evidence": list(bottleneck.evidence)}
    )


def render_summary(summary: RunSummary) -> str:
    """Return the summary as JSON text: times in UTC with ``Z``, numbers in six figures."""
    document = _plain(summary.model_dump(by_alias=True))
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a number that is none is an unknown."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Outcome):
        return value.value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write_summary(path: Path, summary: RunSummary) -> None:
    """Write ``summary.json`` in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    replace_file(path, render_summary(summary))


def read_summary(path: Path) -> RunSummary:
    """Read a ``summary.json``.

    Raises:
        OSError: it cannot be read.
        pydantic.ValidationError: it is not one of this schema; a ``ValueError``.
    """
    return RunSummary.model_validate_json(read_file(path, max_bytes=_BYTES_MAX))


def summary_schema() -> dict[str, Any]:
    """Return the JSON schema of ``summary.json``."""
    schema = RunSummary.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def render_schema() -> str:
    """Return the JSON schema as text, as it is published in ``schema/``."""
    return json.dumps(summary_schema(), indent=2) + "\n"
