"""The files that a launch writes for its processes. Pure, and the same for the same seed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rolltop.config import RunConfig
    from rolltop.model.plan import ProcessPlan
    from rolltop.model.topology import Topology

_NAMESPACE = UUID("6f1a7f43-5b1c-5c0a-9a58-2f6f7a7e2c11")
_SEEDS = 2**31


def render_rollouts(config: RunConfig) -> str:
    """Return the rollouts to drive as JSON lines of uuid, scene, seed and first_wave.

    Scenes are drawn by the run's seed, none twice before all have been drawn.
    """
    seed, runtime = config.run.seed, config.runtime
    scenes = _draw(seed, config.sim.scenes.count)
    lines = []
    for index in range(runtime.rollouts):
        rollout = {
            "uuid": str(uuid5(_NAMESPACE, f"{seed}/{index}")),
            "scene": config.sim.scenes.name.format(index=next(scenes)),
            "seed": _stable(f"rollout/{seed}/{index}") % _SEEDS,
            "first_wave": False,
        }
        lines.append(json.dumps(rollout) + "\n")
    return "".join(lines)


def _draw(seed: int, count: int) -> Iterator[int]:
    """Yield scene indices for ever: rounds through all of them, each round in another order."""
    drawn: set[int] = set()
    attempt = 0
    while True:
        index = _stable(f"scene/{seed}/{attempt}") % count
        attempt += 1
        if index in drawn:
            continue
        drawn.add(index)
        yield index
        if len(drawn) == count:
            drawn.clear()


def _stable(text: str) -> int:
    """Return a number that is the same in every process and version, unlike ``hash``."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def render_endpoints(services: Sequence[ProcessPlan], topology: Topology) -> str:
    """Return JSON, service -> list of its instances; services that are skipped are absent."""
    n_concurrent = {place.service: place.n_concurrent_rollouts for place in topology.services}
    endpoints: dict[str, list[dict[str, object]]] = {}
    for process in services:
        service = process.service or process.name
        endpoints.setdefault(service, []).append(
            {
                "instance": process.name,
                "address": f"127.0.0.1:{process.port}",
                "node": process.node,
                "gpu": process.gpu,
                "n_concurrent": n_concurrent[service],
            }
        )
    return json.dumps(endpoints, indent=2) + "\n"


def render_faults(config: RunConfig) -> str:
    """Return ``sim.faults`` as JSON, ``{}`` where there are none."""
    faults = {service: fault.model_dump() for service, fault in config.sim.faults.items()}
    return json.dumps(faults, indent=2) + "\n"


def digest_of(topology: Topology) -> str:
    """Return 12 hexadecimal digits that are equal for equal topologies, whatever their name."""
    services = {
        s.service: [s.gpus, s.replicas_per_container, s.n_concurrent_rollouts, s.cache_size]
        for s in topology.services
        if not s.skip
    }
    text = json.dumps([services, topology.nr_workers], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
