"""Merge groups and overrides with Hydra's compose API."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.config import complaints, descriptions, simulators, translate
from rolltop.config.overrides import GROUPS, SIM_OF_FILE
from rolltop.config.schema import RunConfig
from rolltop.config.schema.paths import has_path
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omegaconf import DictConfig

    from rolltop.config.overrides import Request

CONF = Path(__file__).with_name("conf")
_PRIMARY = "__rolltop__"
"""What Hydra starts from; its search path then begins with folders of our choice."""
_one_at_a_time = threading.Lock()  # Hydra's state is global


@dataclass(frozen=True)
class Merged:
    """What Hydra made of a request.

    Attributes:
        cfg: The configuration, interpolations unresolved.
        choices: Group -> the option taken.
        sim_dir: The folder of the simulator's description.
        notes: What was taken that the user may not expect.
    """

    cfg: DictConfig
    choices: Mapping[str, str]
    sim_dir: Path | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Folders:
    """Where options are looked for, in this order."""

    own: Path | None
    """Has the topologies of the simulator itself."""
    others: tuple[Path, ...]
    """Whole configuration folders: rolltop's, then those of simulators."""

    def searchpath(self) -> list[str]:
        """Return them as Hydra's addresses."""
        from rolltop.config import sources

        own = [] if self.own is None else [sources.address(sources.OwnTopologies, self.own)]
        return own + [sources.address(sources.BoundedFiles, folder) for folder in self.others]

    def options(self) -> dict[str, set[str]]:
        """Return the options of each group."""
        own = () if self.own is None else (self.own,)
        return {
            group: {
                file.stem
                for folder in (*self.others, *(own if group == "topology" else ()))
                for file in folder.glob(f"{group}/*.yaml")
                if file.is_file()
            }
            for group in GROUPS
        }

    def file_of(self, option: str) -> Path | None:
        """Return the file of ``topology/2gpu``, None where there is none."""
        own = (self.own,) if self.own is not None and option.startswith("topology/") else ()
        files = (Path(folder, f"{option}.yaml") for folder in (*own, *self.others))
        return next((file for file in files if file.is_file()), None)


def merge(request: Request, installed: Mapping[str, Path]) -> Merged:
    """Return what Hydra makes of the request.

    A topology of the simulator's own goes before one of rolltop's of the same name.

    Args:
        request: What the user asked for.
        installed: Configuration folders of simulators.

    Raises:
        ConfigError: A group, an option or a key is unknown, or a file cannot be used.
    """
    if request.sim_file is None:
        sim = next(text for text in reversed(request.groups) if text.startswith("sim="))
        sim_dir = simulators.folder_of(sim.removeprefix("sim="), installed)
        own = sim_dir if sim_dir is not None and (sim_dir / "topology").is_dir() else None
    else:
        sim_dir = simulators.home_of(request.sim_file)
        own = simulators.topologies_of(request.sim_file)
    folders = _Folders(own, (CONF, *installed.values()))
    with _one_at_a_time, _hydra_put_aside(), _stored(request.sim_file):
        cfg = _merged(request, folders)
    choices = {group: str(cfg.hydra.runtime.choices[group]) for group in GROUPS}
    del cfg["hydra"]
    return Merged(cfg, choices, sim_dir, tuple(_notes(choices["topology"], own)))


def _notes(topology: str, own: Path | None) -> Iterator[str]:
    """Say that a topology of rolltop's is not the one of its name that was taken."""
    file = Path("topology", f"{topology.removesuffix('.yaml')}.yaml")
    if own is not None and (own / file).is_file() and (CONF / file).is_file():
        yield f"topology={topology} is {own / file}, not rolltop's own of that name"


def _merged(request: Request, folders: _Folders) -> DictConfig:
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
                raise translate.from_hydra(error, known=known, options=folders.options()) from None
            values[at] = f"++{values[at]}"


def _override_of(values: Sequence[str], key: str) -> int | None:
    return next((at for at, text in enumerate(values) if text.startswith(f"{key}=")), None)


def _hydra(overrides: Sequence[str], folders: _Folders) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize
    from omegaconf import OmegaConf

    searchpath = f"hydra.searchpath=[{','.join(map(_quoted, folders.searchpath()))}]"
    with initialize(None, job_name="rolltop", version_base="1.3"):
        try:
            cfg = hydra_compose(_PRIMARY, [searchpath, *overrides], return_hydra_config=True)
        except RecursionError as error:
            loop = _loop_of_defaults(error)
            if loop is None:
                raise
            raise _goes_round(loop, folders) from None
    OmegaConf.set_struct(cfg, value=False)
    return cfg


def _loop_of_defaults(error: RecursionError) -> list[str] | None:
    """Return the options whose ``defaults`` lead back to the first; None if it was another thing.

    Hydra goes through them one within the other, and each knows which one took it in.
    """
    node = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_name == "_create_defaults_tree_impl":
            node = at.tb_frame.f_locals["root"].parent
        at = at.tb_next
    path: list[str] = []
    while node is not None and node.parent is not None:
        path.insert(0, node.node.get_config_path())
        node = node.parent
    first = next((at for at, name in enumerate(path) if name in path[at + 1 :]), None)
    return None if first is None else path[first : path.index(path[first], first + 1) + 1]


def _goes_round(loop: Sequence[str], folders: _Folders) -> ConfigError:
    """Return the complaint about ``defaults`` that lead back to where they started."""
    names = ["sim.file" if name == f"sim/{SIM_OF_FILE}" else name for name in loop]
    group, _, option = names[0].rpartition("/")
    file = folders.file_of(loop[0])
    place = f"{group}={option}" if group else option
    return ConfigError(
        f"{place}{'' if file is None else f': {file}'}: its defaults lead back to itself: "
        + " -> ".join(names),
        hint=f"take {names[1]} out of the defaults of {names[0]}",
    )


def _quoted(text: str) -> str:
    """Return it as Hydra's grammar quotes it: backslashes are doubled only before a quote."""
    inner = re.sub(r"(\\*)('|\Z)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text)
    return f"'{inner}'"


def _known_paths(request: Request, folders: _Folders) -> list[str]:
    """Return all dotted paths without the user's values; none if the groups do not fit."""
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        cfg = _hydra(request.groups, folders)
    except (HydraException, OmegaConfBaseException, ValueError):
        return []
    del cfg["hydra"]
    tree = OmegaConf.to_container(cfg)
    return [*GROUPS, *(path for path in complaints.paths_of(tree) if path not in GROUPS)]


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
def _stored(sim_file: Path | None) -> Iterator[None]:
    """Let Hydra know of what it starts from, and of the description that is ``sim=__file__``."""
    from hydra.core.config_store import ConfigStore

    description = None if sim_file is None else descriptions.load(sim_file)
    store = ConfigStore.instance()
    store.store(name=_PRIMARY, node=descriptions.load(CONF / "config.yaml"))
    if description is not None:
        store.store(group="sim", name=SIM_OF_FILE, node=description)
    try:
        yield
    finally:
        del store.repo[f"{_PRIMARY}.yaml"]
        if description is not None:
            del store.repo["sim"][f"{SIM_OF_FILE}.yaml"]
