"""What a user writes, from the schema and the groups that ship."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.config import compose
from rolltop.config.schema import RunConfig, Simulator
from rolltop.config.schema import templates as known_templates
from scripts.pages import schema
from scripts.pages.markdown import code, sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolltop.model.topology import ServicePlacement, Topology

_OF_THE_CONTRACT = tuple(f"sim.{name}" for name in Simulator.model_fields)
_FILLED_IN = {
    "run.dir": "runs/<UTC stamp>-<name>-<first 8 of the uuid>",
    "run.name": "<simulator>-<topology>",
    "run.uuid": "a new one",
    "runtime.steps_per_rollout": "the simulator's own",
    "topology": "1gpu",
    "device": "nvidia where there is a GPU, else none",
}
"""Defaults that depend on the rest; the schema describes what comes out."""
_SHIPPED = ("1gpu", "2gpu", "8gpu_12rollouts", "8gpu_64rollouts")
_ORDER = ("renderer", "driver", "physics", "controller", "trafficsim")


def config() -> str:
    """Return the override paths of a run; the simulator's own are on the contract's page."""
    leaves = schema.rows(RunConfig.model_json_schema(by_alias=True))
    return _table(row for row in leaves if not row.path.startswith(_OF_THE_CONTRACT))


def simulator() -> str:
    """Return the keys of ``sim/<name>.yaml``."""
    return _table(schema.rows(Simulator.model_json_schema()))


def _table(leaves: Iterable[schema.Row]) -> str:
    rows = [(code(row.path), row.type, _default(row), sentence(row.meaning)) for row in leaves]
    return table(("path", "type", "default", "meaning"), rows)


def _default(row: schema.Row) -> str:
    if row.default == "required":
        return _FILLED_IN.get(row.path, "required")
    return _FILLED_IN.get(row.path) or code(row.default)


def templates() -> str:
    """Return the templates of commands, and where each may stand."""
    places = (
        ("everywhere", known_templates.EVERYWHERE),
        ("services", known_templates.OF_SERVICES),
        ("the scheduler", known_templates.OF_THE_SCHEDULER),
        ("workers", known_templates.OF_WORKERS),
    )
    rows = [
        (code(f"{{{name}}}"), place, meaning)
        for place, known in places
        for name, meaning in known.items()
    ]
    return table(("template", "in", "stands for"), rows)


def topologies() -> str:
    """Return the topologies that ship: gpus x replicas, n = n_concurrent_rollouts."""
    rows = []
    for name in _SHIPPED:
        topology = compose([f"topology={name}", "sim=driving"], cwd=Path("/")).topology()
        placed = {service.service: service for service in topology.services}
        cells = [_placement(placed[service]) for service in _ORDER]
        rows.append((code(name), *cells, str(topology.nr_workers), _capacity(topology)))
    return table(("name", *_ORDER, "workers", "rollouts at once"), rows)


def _placement(service: ServicePlacement) -> str:
    gpus = "CPU" if service.gpus == (None,) else f"[{','.join(map(str, service.gpus))}]"
    return f"{gpus} x{service.replicas_per_container}, n {service.n_concurrent_rollouts}"


def _capacity(topology: Topology) -> str:
    return str(topology.capacity)
