"""Slots of every service's instances: pure bookkeeping, no clock and no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Instance:
    """One process of a service: its name in the run, its address, how many rollouts it takes."""

    name: str
    address: str
    n_concurrent: int


@dataclass
class _Load:
    instance: Instance
    held: int = 0
    """Slots held now."""
    given: int = 0
    """Slots ever given: spreads rollouts over instances that are equally loaded."""

    def rank(self, index: int) -> tuple[float, int, int]:
        return (self.held / self.instance.n_concurrent, self.given, index)


@dataclass
class SlotTable:
    """The slots of all services; ``take`` gives one of each, or none at all."""

    instances: Mapping[str, Sequence[Instance]]
    _loads: dict[str, list[_Load]] = field(init=False)

    def __post_init__(self) -> None:
        for service, members in self.instances.items():
            if not members or any(m.n_concurrent < 1 for m in members):
                raise ValueError(f"service {service!r} has no capacity: {list(members)}")
        self._loads = {s: [_Load(i) for i in members] for s, members in self.instances.items()}

    @property
    def capacity(self) -> int:
        """How many rollouts can hold a slot of every service at once."""
        return min(sum(m.n_concurrent for m in members) for members in self.instances.values())

    def take(self) -> dict[str, Instance] | None:
        """Take one slot of every service, on its least loaded instance; None where one is full."""
        chosen: dict[str, _Load] = {}
        for service, loads in self._loads.items():
            free = [(i, ld) for i, ld in enumerate(loads) if ld.held < ld.instance.n_concurrent]
            if not free:
                return None
            chosen[service] = min(free, key=lambda pair: pair[1].rank(pair[0]))[1]
        for load in chosen.values():
            load.held += 1
            load.given += 1
        return {service: load.instance for service, load in chosen.items()}

    def give_back(self, taken: Mapping[str, Instance]) -> None:
        """Return the slots that one ``take`` gave."""
        for service, instance in taken.items():
            load = next(ld for ld in self._loads[service] if ld.instance == instance)
            if load.held < 1:
                raise ValueError(f"no slot of {instance.name} is held")
            load.held -= 1

    def held(self) -> dict[str, int]:
        """Return the slots held now, by the instance's name."""
        return {ld.instance.name: ld.held for loads in self._loads.values() for ld in loads}
