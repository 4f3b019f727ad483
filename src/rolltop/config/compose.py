"""From what the user wrote to a `RunConfig`: Hydra's groups and overrides, then the schema.

The only module that knows Hydra, which is imported when it is used: it takes longer than all the
rest.
"""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rolltop.config import devices, simulators, translate
from rolltop.config.schema import RunConfig
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

CONF = Path(__file__).with_name("conf")
GROUPS = ("deploy", "topology", "sim", "site")
_SIM_OF_FILE = "__file__"
_GRAMMAR = (
    "key=value, +key=value or ~key; quote a value that holds any of , = [ ] { } as in key='a,b'"
)
_one_at_a_time = threading.Lock()  # Hydra's state is global


@dataclass(frozen=True)
class _Request:
    """Overrides that Hydra can take, those on groups apart; the simulator's file, if any."""

    groups: tuple[str, ...]
    values: tuple[str, ...]
    sim_file: Path | None


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
    found = simulators.installed_folders() if folders is None else dict(folders)
    request = _read(overrides, cwd, simulators.names_of(found))
    cfg, choices = _composed(request, found)
    _settle_run(cfg, choices, cwd, run_uuid or str(uuid.uuid4()), started or datetime.now(UTC))
    n_gpus = _settle_device(cfg, count_gpus)
    if request.sim_file is not None:
        cfg.sim.file = str(request.sim_file)
    for group in ("deploy", "topology", "site"):
        cfg[group] = choices[group]
    config = _validated(_plain(cfg))
    if config.device == "nvidia":
        _check_gpus(config, n_gpus)
    return config


def _read(overrides: Sequence[str], cwd: Path, known_sims: tuple[str, ...]) -> _Request:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    groups, values = [], []
    sim_file: Path | None = None
    for text in overrides:
        try:
            parsed = parser.parse_override(text)
        except HydraException:
            what = "cannot be read" if "=" in text else "has no value"
            raise ConfigError(f"override {text!r} {what}", hint=_GRAMMAR) from None
        _refuse_what_is_not_ours(text, parsed)
        key = str(parsed.key_or_group)
        if key in GROUPS:
            groups.append(_group_override(text, parsed))
        elif key == "sim.file" and not parsed.is_delete():
            sim_file = (cwd / str(parsed.value())).resolve()
        else:
            values.append(_value_override(text, key))
    chosen = any(text.startswith("sim=") for text in groups)
    if sim_file is not None and chosen:
        raise ConfigError("sim=... and sim.file=... both name the simulator", hint="leave one out")
    if sim_file is not None:
        groups.append(f"sim={_SIM_OF_FILE}")
    elif not chosen:
        groups.append(f"sim={simulators.default_name(known_sims)}")
    return _Request(tuple(groups), tuple(values), sim_file)


def _refuse_what_is_not_ours(text: str, parsed: Override) -> None:
    key = str(parsed.key_or_group)
    if not key:
        raise ConfigError(f"override {text!r} has no key", hint=_GRAMMAR)
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        raise ConfigError(f"override {text!r}: settings of Hydra itself have no effect here")
    if parsed.package is not None:
        raise ConfigError(f"override {text!r}: groups cannot be moved", hint=f"write {key}=...")
    if parsed.is_sweep_override():
        raise ConfigError(
            f"override {text!r} has several values, a run has one",
            hint=f"a list is written {key}=[1,2], text with a comma {key}='1,2'",
        )
    if key == "wizard" or (key.startswith("wizard.") and key != "wizard.log_dir"):
        raise ConfigError(
            f"unknown key {key}", hint="of the wizard's keys there is only wizard.log_dir: run.dir"
        )


def _group_override(text: str, parsed: Override) -> str:
    group, value = parsed.key_or_group, parsed.value()
    if parsed.is_delete() or parsed.is_add() or not isinstance(value, str | int) or value == "":
        raise ConfigError(
            f"override {text!r}: {group} is always one of its options", hint=f"write {group}=NAME"
        )
    return f"{group}={value}"


def _value_override(text: str, key: str) -> str:
    sign, rest = (
        (text[: -len(text.lstrip("+~"))], text.lstrip("+~")) if text[0] in "+~" else ("", text)
    )
    if key == "wizard.log_dir":
        return f"{sign}run.dir{rest.removeprefix(key)}"
    if translate.is_at_or_below(key, "sim.faults") and sign != "~":
        return f"++{rest}"  # every service can have a fault, none is listed before it has one
    return text


def _composed(request: _Request, folders: Mapping[str, Path]) -> tuple[DictConfig, dict[str, str]]:
    """Return what Hydra makes of the request, and which option of each group it took."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    with _one_at_a_time, _sim_of_file(request.sim_file):
        try:
            cfg = _hydra((*request.groups, *request.values), folders)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            known = _known_paths(request, folders)
            raise translate.from_hydra(error, known=known, options=_options(folders)) from None
    choices = {group: str(cfg.hydra.runtime.choices[group]) for group in GROUPS}
    del cfg["hydra"]
    return cfg, choices


def _hydra(overrides: Sequence[str], folders: Mapping[str, Path]) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    quoted = (f"file://{folder}".replace("'", "\\'") for folder in folders.values())
    searchpath = "hydra.searchpath=[" + ",".join(f"'{path}'" for path in quoted) + "]"
    with initialize_config_dir(str(CONF), job_name="rolltop", version_base="1.3"):
        cfg = hydra_compose("config", [searchpath, *overrides], return_hydra_config=True)
    OmegaConf.set_struct(cfg, value=False)
    return cfg


def _known_paths(request: _Request, folders: Mapping[str, Path]) -> list[str]:
    """Return all dotted paths without the user's values; none if the groups do not fit."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    try:
        cfg = _hydra(request.groups, folders)
    except HydraException:
        return []
    del cfg["hydra"]
    return translate.paths_of({**dict.fromkeys(GROUPS), **_as_dict(OmegaConf.to_container(cfg))})


def _as_dict(tree: object) -> dict[str, Any]:
    return {str(key): value for key, value in tree.items()} if isinstance(tree, dict) else {}


def _options(folders: Mapping[str, Path]) -> dict[str, set[str]]:
    return {
        group: {
            file.stem
            for folder in (CONF, *folders.values())
            for file in folder.glob(f"{group}/*.yaml")
        }
        for group in GROUPS
    }


@contextmanager
def _sim_of_file(path: Path | None) -> Iterator[None]:
    """Let ``sim=__file__`` be the description at ``path``."""
    if path is None:
        yield
        return
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(group="sim", name=_SIM_OF_FILE, node=_load(path))
    try:
        yield
    finally:
        store.repo["sim"].pop(f"{_SIM_OF_FILE}.yaml")


def _load(path: Path) -> dict[str, Any]:
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        loaded = OmegaConf.to_container(OmegaConf.load(path))
    except OSError as error:
        raise ConfigError(f"sim.file: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"sim.file: {path} is not text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"sim.file: {path}{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"sim.file: {path}: {translate.one_line(str(error))}") from None
    if not isinstance(loaded, dict) or not loaded:
        raise ConfigError(f"sim.file: {path} does not describe a simulator: no keys at its top")
    return _as_dict(loaded)


def _settle_run(
    cfg: DictConfig, choices: Mapping[str, str], cwd: Path, run_uuid: str, started: datetime
) -> None:
    """Fill in what depends on machine and time, before interpolations are resolved."""
    from omegaconf import DictConfig

    for section in ("run", "runtime", "defines", "sim"):
        if not isinstance(cfg.get(section), DictConfig):
            raise ConfigError(f"{section}: must be a section with keys, not {cfg.get(section)!r}")
    try:
        _settle_names(cfg, choices, run_uuid)
        stamp = f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        run = cfg.run
        if run.get("dir") is None:
            run.dir = f"runs/{stamp}-{run.name}-{run.uuid[:8]}"
        run.dir = str(cwd / str(run.dir))
        cfg.defines.filesystem = str(cwd / str(cfg.defines.get("filesystem", "data")))
        if cfg.runtime.get("steps_per_rollout") is None:
            steps = cfg.sim.get("steps_per_rollout")
            cfg.runtime.steps_per_rollout = (
                steps.get("max") if isinstance(steps, DictConfig) else steps
            )
    except _omegaconf_error() as error:
        raise translate.from_omegaconf(error) from None


def _settle_names(cfg: DictConfig, choices: Mapping[str, str], run_uuid: str) -> None:
    run = cfg.run
    if run.get("name") is None:
        run.name = f"{cfg.sim.get('name')}-{choices['topology']}"
    run.name = str(run.name)  # run.name=7 is a name
    run.uuid = run_uuid if run.get("uuid") is None else str(run.uuid)


def _omegaconf_error() -> type[Exception]:
    from omegaconf.errors import OmegaConfBaseException

    return OmegaConfBaseException


def _settle_device(cfg: DictConfig, count_gpus: Callable[[], int]) -> int:
    """Decide ``device=auto``; return how many GPUs there are where they are used."""
    try:
        device = cfg.get("device")
    except _omegaconf_error() as error:
        raise translate.from_omegaconf(error) from None
    if device == "emulated":
        raise ConfigError("device=emulated is not supported by this version", hint="device=none")
    if device not in ("auto", "none", "nvidia"):
        raise translate.unknown_option("device", str(device), ("auto", "none", "nvidia"))
    n_gpus = 0 if device == "none" else count_gpus()
    if device == "nvidia" and n_gpus == 0:
        raise ConfigError(
            "device=nvidia: this node has no NVIDIA GPU, or no driver for it",
            hint="device=none: an index in gpus is then a slot",
        )
    if device == "auto":
        cfg.device = "nvidia" if n_gpus else "none"
    return n_gpus


def _plain(cfg: DictConfig) -> dict[str, Any]:
    from omegaconf import OmegaConf

    try:
        return _as_dict(OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True))
    except _omegaconf_error() as error:
        raise translate.from_omegaconf(error) from None


def _validated(data: dict[str, Any]) -> RunConfig:
    try:
        text = json.dumps(data)
    except TypeError as error:
        raise ConfigError(f"the configuration holds what JSON has not: {error}") from None
    try:
        return RunConfig.model_validate_json(text)
    except ValidationError as error:
        raise translate.from_pydantic(error, RunConfig) from None


def _check_gpus(config: RunConfig, n_gpus: int) -> None:
    highest = config.highest_gpu()
    if highest is not None and highest[1] >= n_gpus:
        service, index = highest
        there = "one GPU, 0" if n_gpus == 1 else f"{n_gpus} GPUs, 0 to {n_gpus - 1}"
        raise ConfigError(
            f"services.{service}.gpus: there is no GPU {index}, this node has {there}",
            hint="a smaller topology, or device=none: an index in gpus is then a slot",
        )
