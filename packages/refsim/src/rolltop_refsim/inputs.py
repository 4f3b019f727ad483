"""The files that a launcher hands over: which rollouts to run, and where the services are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rolltop_refsim.scheduler.ledger import Rollout
from rolltop_refsim.scheduler.slots import Instance

if TYPE_CHECKING:
    from pathlib import Path

REQUIRED = ("renderer", "driver", "controller")
OPTIONAL = ("physics", "trafficsim")


class InputError(ValueError):
    """A file that cannot be used; the message names the file, the place and what is wanted."""


def read_rollouts(path: Path) -> list[Rollout]:
    """Read JSON lines of ``{"uuid", "scene", "seed", "first_wave"}``."""
    rollouts = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            rollouts.append(_rollout(line, f"{path}:{number}"))
    return rollouts


def _rollout(line: str, where: str) -> Rollout:
    try:
        raw = json.loads(line)
        rollout = Rollout(
            uuid=str(raw["uuid"]),
            scene=str(raw["scene"]),
            seed=int(raw["seed"]),
            first_wave=bool(raw.get("first_wave", False)),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{where}: uuid, scene and seed are wanted: {error!r}") from error
    for name in (rollout.uuid, rollout.scene):
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise InputError(f"{where}: {name!r} cannot name a folder")
    if not 0 <= rollout.seed < 1 << 64:
        raise InputError(f"{where}: the seed must be from 0 to 2^64 - 1, not {rollout.seed}")
    return rollout


def read_endpoints(path: Path) -> dict[str, list[Instance]]:
    """Read ``{service: [{"instance", "address", "n_concurrent"}]}``; skipped ones are absent."""
    try:
        raw: Any = json.loads(_text(path))
        endpoints = {
            str(service): [
                Instance(str(i["instance"]), str(i["address"]), int(i["n_concurrent"]))
                for i in members
            ]
            for service, members in raw.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: instances by service are wanted: {error!r}") from error
    unknown = sorted(set(endpoints) - {*REQUIRED, *OPTIONAL})
    missing = [s for s in REQUIRED if not endpoints.get(s)]
    if unknown or missing:
        raise InputError(
            f"{path}: the services are {', '.join(REQUIRED)} and, if wanted, "
            f"{', '.join(OPTIONAL)}; unknown: {unknown}, missing: {missing}"
        )
    return {service: members for service, members in endpoints.items() if members}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
