"""The files that a launch writes for its processes. Pure, and the same for the same seed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from uuid import UUID

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
    seed = config.run.seed
    name = config.sim.scenes.name.format
    scenes = _draw(seed, config.sim.scenes.count)
    line = (  # json.dumps of each would take as long as all the rest
        '{{"uuid": "{}", "scene": {}, "seed": {}, "first_wave": false}}\n'
    ).format
    return "".join(
        line(
            _uuid(f"{seed}/{index}"),
            json.dumps(name(index=next(scenes))),
            _stable(f"rollout/{seed}/{index}") % _SEEDS,
        )
        for index in range(config.runtime.rollouts)
    )


def _uuid(text: str) -> str:
    """Return ``uuid5`` of a text in our namespace, in a fraction of that function's time."""
    digits = hashlib.sha1(_NAMESPACE.bytes + text.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _draw(seed: int, count: int) -> Iterator[int]:
    """Yield scene indices for ever: rounds through all of them, each round in another order.

    A round is a shuffle done as far as it is asked for: ``moved`` holds the places where another
    scene lies than its own, so that a million scenes cost nothing until they are drawn.
    """
    draw = 0
    while True:
        moved: dict[int, int] = {}
        for left in range(count, 0, -1):
            place = _stable(f"scene/{seed}/{draw}") % left
            draw += 1
            last = moved.pop(left - 1, left - 1)
            if place == left - 1:
                yield last
            else:
                yield moved.get(place, place)
                moved[place] = last


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
