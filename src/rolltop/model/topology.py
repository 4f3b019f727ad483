"""A topology: which service sits where, and how many rollouts it takes at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServicePlacement:
    """One service; ``gpus`` has an entry per container, a GPU index or None for a CPU container."""

    service: str
    gpus: tuple[int | None, ...]
    replicas_per_container: int
    n_concurrent_rollouts: int
    skip: bool = False
    cache_size: int | None = None

    @property
    def n_instances(self) -> int:
        """Processes that serve, 0 where the service is skipped."""
        return 0 if self.skip else len(self.gpus) * self.replicas_per_container

    @property
    def capacity(self) -> int:
        """Rollouts that the service takes at once."""
        return self.n_instances * self.n_concurrent_rollouts


@dataclass(frozen=True)
class Topology:
    """All services and the number of runtime workers."""

    services: tuple[ServicePlacement, ...]
    nr_workers: int

    @property
    def capacity(self) -> int:
        """Rollouts at once: the least over the services that are not skipped."""
        return min((s.capacity for s in self.services if not s.skip), default=0)
