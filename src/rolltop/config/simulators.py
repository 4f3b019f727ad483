"""Where simulators are found: in packages with an entry point in ``rolltop.simulators``."""

from __future__ import annotations

import importlib.util
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = "rolltop.simulators"
PREFERRED = "driving"


def installed_folders() -> dict[str, Path]:
    """Return the configuration folder of each installed simulator, by its entry point's name.

    The packages are looked up, not imported: their imports may be heavy. One without a
    ``conf/sim`` is left out.
    """
    folders = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        folder = _package_folder(entry.value)
        if folder is not None and (folder / "conf" / "sim").is_dir():
            folders[entry.name] = folder / "conf"
    return folders


def _package_folder(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def names_of(folders: Mapping[str, Path]) -> tuple[str, ...]:
    """Return what ``sim=`` can be: every description in the folders, sorted."""
    return tuple(
        sorted({file.stem for folder in folders.values() for file in folder.glob("sim/*.yaml")})
    )


def folder_of(name: str, folders: Mapping[str, Path]) -> Path | None:
    """Return the first of the folders that has the description of ``sim=name``."""
    file = Path("sim", f"{name.removesuffix('.yaml')}.yaml")
    return next((folder for folder in folders.values() if (folder / file).is_file()), None)


def home_of(description: Path) -> Path:
    """Return the folder of the description at ``sim.file`` that its programs are named from.

    That is the one it lies in; in a package, ``conf`` above ``sim/``, as when it is installed.
    """
    folder = description.parent
    return folder.parent if folder.parts[-2:] == ("conf", "sim") else folder


def topologies_of(description: Path) -> Path | None:
    """Return what has ``topology/`` for a ``sim.file``: its own folder, or that above ``sim/``."""
    folder = description.parent
    folders = (folder, folder.parent) if folder.name == "sim" else (folder,)
    return next((each for each in folders if (each / "topology").is_dir()), None)


def default_name(names: tuple[str, ...]) -> str:
    """Return the simulator of a run that names none.

    Raises:
        ConfigError: There is none, or more than one to choose from.
    """
    if PREFERRED in names:
        return PREFERRED
    if len(names) == 1:
        return names[0]
    if not names:
        raise ConfigError(
            "no simulator is installed",
            hint="install one, such as rolltop-refsim, or describe yours with sim.file=PATH",
        )
    raise ConfigError("which simulator?", hint=f"sim={names[0]}; there are: {', '.join(names)}")
