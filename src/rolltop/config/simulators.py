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
