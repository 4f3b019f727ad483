"""What analysis says of a run. None is an unknown, never a zero."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ThroughputEstimate:
    """Seconds per completed rollout, three ways; ``reason`` says why ``steady`` is None."""

    full_run: float | None
    last_5m: float | None
    steady: float | None
    half_width: float | None
    confidence: float
    steady_since_s: float | None
    reason: str | None


@dataclass(frozen=True)
class Bottleneck:
    """The service that limits the run, by the evidence of its series."""

    service: str
    resource: str
    evidence: tuple[str, ...] = field(default=())
    certainty: str = "low"
