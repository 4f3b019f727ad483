"""From what the user wrote to a `RunConfig`: Hydra's groups and overrides, then the schema.

Hydra is imported when it is used: it takes longer than all the rest.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rolltop.config import (
    complaints,
    devices,
    hydra_groups,
    resolving,
    simulators,
    texts,
    translate,
)
from rolltop.config.overrides import read
from rolltop.config.schema import RunConfig
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from omegaconf import DictConfig

DEVICES = ("auto", "none", "nvidia")


def compose(
    overrides: Sequence[str],
    *,
    cwd: Path,
    run_uuid: str | None = None,
    started: datetime | None = None,
    count_gpus: Callable[[], int] = devices.count_gpus,
    folders: Mapping[str, Path] | None = None,
) -> RunConfig:
    """Return the configuration that the overrides ask for.

    Args:
        overrides: In Hydra's grammar: ``topology=2gpu``, ``runtime.nr_workers=4``,
            ``+defines.x=[1,2]``, ``~defines.x``.
        cwd: The directory that relative paths start from.
        run_uuid: The run's uuid, unless an override sets one; a new one where not given.
        started: The time in the name of the default run directory; now where not given.
        count_gpus: Says how many GPUs this node has.
        folders: Configuration folders of simulators by package; the installed ones where not given.

    Raises:
        ConfigError: Naming the place, the nearest known one and the cure.
    """
    from omegaconf.errors import OmegaConfBaseException

    _check_here(cwd)
    found = simulators.installed_folders() if folders is None else dict(folders)
    request = read(overrides, cwd, simulators.names_of(found))
    run_uuid, started = run_uuid or str(uuid.uuid4()), started or datetime.now(UTC)
    try:
        with resolving.bounded():
            merged = hydra_groups.merge(request, found)
            cfg = merged.cfg
            for group in ("deploy", "topology", "site"):
                cfg[group] = merged.choices[group]
            _settle_run(cfg, merged.choices, cwd, run_uuid, started)
            n_gpus = _settle_device(cfg, count_gpus)
            _refuse_an_origin(cfg)
            data = _plain(cfg)
    except OmegaConfBaseException as error:
        raise translate.from_omegaconf(error) from None
    data["sim"] |= {"file": _text_of(request.sim_file), "dir": _text_of(merged.sim_dir)}
    config = validate(data).noting(*merged.notes)
    if config.device == "nvidia":
        _check_gpus(config, n_gpus)
    return config


def validate(data: Mapping[str, Any]) -> RunConfig:
    """Return a configuration from plain data, such as ``config.yaml`` of a run holds.

    Raises:
        ConfigError: Naming the first thing that does not fit.
    """
    texts.check(data)
    try:
        text = json.dumps(data)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the configuration holds what JSON has not: {error}") from None
    try:
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        known = complaints.paths_of(dict(data))
        raise translate.from_pydantic(error, RunConfig, known) from None


def _check_here(cwd: Path) -> None:
    """Relative paths start from here, and what a run writes about itself is text."""
    if texts.fault_of(str(cwd)) is not None:
        raise ConfigError(
            f"the current folder {str(cwd)!r}: its name is not text in UTF-8",
            hint="rename it, or run rolltop from another folder",
        )


def _settle_run(
    cfg: DictConfig, choices: Mapping[str, str], cwd: Path, run_uuid: str, started: datetime
) -> None:
    """Fill in what depends on machine and time, before interpolations are resolved."""
    from omegaconf import DictConfig

    for section in ("run", "runtime", "defines", "sim"):
        if not isinstance(cfg.get(section), DictConfig):
            raise ConfigError(f"{section}: must be a section with keys, not {cfg.get(section)!r}")
    run = cfg.run
    run.name = _text(cfg, "run", "name", f"{cfg.sim.get('name')}-{choices['topology']}")
    run.uuid = _text(cfg, "run", "uuid", run_uuid)
    stamp = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    run.dir = _literal(cwd / _text(cfg, "run", "dir", f"runs/{stamp}-{run.name}-{run.uuid[:8]}"))
    cfg.defines.filesystem = _literal(cwd / _text(cfg, "defines", "filesystem", "data"))
    if cfg.runtime.get("steps_per_rollout") is None:
        steps = cfg.sim.get("steps_per_rollout")
        most = steps.get("max") if isinstance(steps, DictConfig) else steps
        cfg.runtime.steps_per_rollout = most


def _literal(path: Path) -> str:
    """Return a path as OmegaConf writes one in which ``${`` stands for itself."""
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", str(path))


def _text_of(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _refuse_an_origin(cfg: DictConfig) -> None:
    """Where a simulator came from is nobody's to say but ours."""
    for key in ("file", "dir"):
        if cfg.sim.get(key) is not None:
            raise ConfigError(
                f"sim.{key}: is filled in by rolltop, from where the description lies",
                hint="leave it out",
            )


def _text(cfg: DictConfig, section: str, key: str, default: str) -> str:
    """Return a value as text, ``run.name=7`` is a name; the default where it is null or absent."""
    from omegaconf.errors import OmegaConfBaseException

    place = f"{section}.{key}"
    try:
        value = cfg[section].get(key)
    except OmegaConfBaseException as error:
        raise translate.from_omegaconf(error, place) from None
    if value is None:
        return default
    if not isinstance(value, str | int | float):
        raise ConfigError(f"{place}: must be text, not {value}", hint=f"in quotes: {place}='...'")
    return str(value)


def _settle_device(cfg: DictConfig, count_gpus: Callable[[], int]) -> int:
    """Decide ``device=auto``; return how many GPUs there are where they are used."""
    device = cfg.get("device")
    if device == "emulated":
        raise ConfigError("device=emulated is not supported by this version", hint="device=none")
    if device not in DEVICES:
        raise complaints.unknown_option("device", str(device), DEVICES)
    n_gpus = 0 if device == "none" else count_gpus()
    if device == "nvidia" and n_gpus == 0:
        raise ConfigError(
            "device=nvidia: this node has no NVIDIA GPU, or no driver for it",
            hint="device=none: an index in gpus is then a slot",
        )
    cfg.device = "nvidia" if n_gpus else "none"
    return n_gpus


def _plain(cfg: DictConfig) -> dict[str, Any]:
    from omegaconf import OmegaConf

    tree = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    return {str(key): value for key, value in tree.items()} if isinstance(tree, dict) else {}


def _check_gpus(config: RunConfig, n_gpus: int) -> None:
    highest = config.highest_gpu()
    if highest is not None and highest[1] >= n_gpus:
        service, index = highest
        there = "one GPU, 0" if n_gpus == 1 else f"{n_gpus} GPUs, 0 to {n_gpus - 1}"
        raise ConfigError(
            f"services.{service}.gpus: there is no GPU {index}, this node has {there}",
            hint="a smaller topology, or device=none: an index in gpus is then a slot",
        )
