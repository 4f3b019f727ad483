"""What is said of a name that nobody knows: the nearest known one, or all there are."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_YET: dict[str, str] = {
    "slurm": "deploy=local is the only deployment of this version",
    "runtime.stagger": "all rollouts start as soon as there is a slot",
    "telemetry.file_sd_dir": "this version publishes nothing outside the run directory",
    "sim.devices": "devices are the node's own, or none",
    "sim.launch": "simulators are started by rolltop",
}
"""Paths of the shared vocabulary that this version knows of but does not have."""

_OPEN = re.compile(
    r"(defines|services|runtime\.endpoints|sim\.services\.[^.]+\.env|sim\.worker\.env)\.[^.]+$"
)
"""Keys of the user's own, which ``+`` adds."""


def is_at_or_below(path: str, root: str) -> bool:
    """Return whether a dotted path is ``root`` or lies below it."""
    return path == root or path.startswith(f"{root}.")


def paths_of(tree: object, prefix: str = "") -> list[str]:
    """Return the dotted path of every section and value of a tree of mappings."""
    if not isinstance(tree, dict):
        return []
    paths = []
    for key, value in tree.items():
        path = f"{prefix}{key}"
        paths += [path, *paths_of(value, f"{path}.")]
    return paths


def unknown_key(path: str, known: Iterable[str]) -> ConfigError:
    """Return the complaint about a path that is not there, naming the nearest that is.

    Args:
        path: Dotted, as the user wrote it.
        known: All dotted paths, sections and values.
    """
    for root, reason in NOT_YET.items():
        if is_at_or_below(path, root):
            return ConfigError(f"{path} is not supported by this version: {reason}")
    names = list(known)
    near = _nearest(path, names)
    also = f"; did you mean {near}?" if near else ""
    if _OPEN.match(path):
        return ConfigError(f"unknown key {path}{also}", hint=f"+{path}=... adds it")
    return ConfigError(f"unknown key {path}{also}", hint=None if near else _listed(path, names))


def _listed(path: str, names: list[str]) -> str:
    """Return the keys of the nearest section above ``path`` that there is."""
    parent = path.rpartition(".")[0]
    while parent and not any(name.startswith(f"{parent}.") for name in names):
        parent = parent.rpartition(".")[0]
    below = f"{parent}." if parent else ""
    siblings = sorted({n[len(below) :].split(".")[0] for n in names if n.startswith(below)})
    where = f"in {parent}" if parent else "at the top"
    return f"{where} there are: {', '.join(siblings)}"


def _nearest(path: str, names: list[str]) -> str | None:
    """Return the path most like it: under the same parent, else a misspelt or forgotten parent."""
    parent, _, leaf = path.rpartition(".")
    siblings = [name for name in names if name.rpartition(".")[0] == parent]
    near = get_close_matches(path, siblings, n=1, cutoff=0.6)
    leaves = {name.rpartition(".")[2] for name in names}
    alike = get_close_matches(leaf, leaves, n=9, cutoff=0.6)
    if near and near[0].rpartition(".")[2] in alike:
        return near[0]
    elsewhere = [name for name in names if name.rpartition(".")[2] == leaf]
    if not parent and elsewhere:
        return elsewhere[0]
    cousins = [
        name
        for name in names
        if name.count(".") == path.count(".") and name.rpartition(".")[2] in alike
    ]
    return next(iter(get_close_matches(path, cousins, n=1, cutoff=0.7)), None)


def unknown_option(group: str, option: str, options: Iterable[str]) -> ConfigError:
    """Return the complaint about a group's option that is not there, naming the nearest and all."""
    names = sorted(options)
    near = get_close_matches(option, names, n=1, cutoff=0.5)
    also = f"; did you mean {group}={near[0]}?" if near else ""
    return ConfigError(f"there is no {group}={option}{also}", hint=f"there are: {', '.join(names)}")
