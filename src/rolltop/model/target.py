"""What Prometheus scrapes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TargetGroup:
    """Targets (``host:port``) with the labels that are attached to each."""

    targets: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
