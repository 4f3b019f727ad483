"""Merge groups and overrides with Hydra's compose API."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.config import complaints, descriptions, translate
from rolltop.config.overrides import GROUPS, SIM_OF_FILE
from rolltop.config.schema import RunConfig
from rolltop.config.schema.paths import has_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omegaconf import DictConfig

    from rolltop.config.overrides import Request

CONF = Path(__file__).with_name("conf")
_one_at_a_time = threading.Lock()  # Hydra's state is global


def merge(request: Request, folders: Mapping[str, Path]) -> tuple[DictConfig, dict[str, str]]:
    """Return what Hydra makes of the request, and which option of each group it took.

    Args:
        request: What the user asked for.
        folders: Configuration folders of simulators, which are searched after rolltop's own; the
            one of ``sim.file`` joins them.

    Raises:
        ConfigError: A group, an option or a key is unknown, or a file is not YAML.
    """
    import yaml

    folders = {**folders, **_folder_of(request.sim_file)}
    with _one_at_a_time, _hydra_put_aside(), _sim_of_file(request.sim_file):
        try:
            cfg = _merged(request, folders)
        except yaml.YAMLError as error:
            raise translate.from_yaml(error) from None
    choices = {group: str(cfg.hydra.runtime.choices[group]) for group in GROUPS}
    del cfg["hydra"]
    return cfg, choices


def _folder_of(sim_file: Path | None) -> dict[str, Path]:
    """Where the topologies lie that come with a description: beside it, or beside its ``sim/``."""
    if sim_file is None:
        return {}
    folder = sim_file.parent.parent if sim_file.parent.name == "sim" else sim_file.parent
    return {SIM_OF_FILE: folder} if (folder / "topology").is_dir() else {}


def _merged(request: Request, folders: Mapping[str, Path]) -> DictConfig:
    """Hydra refuses to set a key that no file sets; one that the schema has a place for is added.

    Without that, a default could be changed only by ``+``, which is for keys of the user's own.
    """
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    values = list(request.values)
    known: list[str] = []
    while True:
        try:
            return _hydra((*request.groups, *values), folders)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            known = known or _known_paths(request, folders)
            key = translate.key_not_there(error)
            at = _override_of(values, key) if key and has_path(RunConfig, key, known) else None
            if at is None:
                raise translate.from_hydra(error, known=known, options=_options(folders)) from None
            values[at] = f"++{values[at]}"


def _override_of(values: Sequence[str], key: str) -> int | None:
    return next((at for at, text in enumerate(values) if text.startswith(f"{key}=")), None)


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


def _known_paths(request: Request, folders: Mapping[str, Path]) -> list[str]:
    """Return all dotted paths without the user's values; none if the groups do not fit."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    try:
        cfg = _hydra(request.groups, folders)
    except HydraException:
        return []
    del cfg["hydra"]
    tree = OmegaConf.to_container(cfg)
    return [*GROUPS, *(path for path in complaints.paths_of(tree) if path not in GROUPS)]


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
def _hydra_put_aside() -> Iterator[None]:
    """Put a Hydra of our caller's aside, and back at the end: there can be only one."""
    from hydra.core.global_hydra import GlobalHydra

    before = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = before


@contextmanager
def _sim_of_file(path: Path | None) -> Iterator[None]:
    """Let ``sim=__file__`` be the description at ``path``."""
    if path is None:
        yield
        return
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(group="sim", name=SIM_OF_FILE, node=descriptions.load(path))
    try:
        yield
    finally:
        store.repo["sim"].pop(f"{SIM_OF_FILE}.yaml")
