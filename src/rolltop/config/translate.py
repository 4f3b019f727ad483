"""Complaints of Hydra, OmegaConf and pydantic in the user's words: the place and the cure."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

from rolltop.config.schema.base import WORD
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LONGEST_SHOWN = 60
NOT_YET: dict[str, str] = {
    "slurm": "deploy=local is the only deployment of this version",
    "runtime.stagger": "all rollouts start as soon as there is a slot",
    "telemetry.file_sd_dir": "this version publishes nothing outside the run directory",
    "sim.devices": "devices are the node's own, or none",
    "sim.launch": "simulators are started by rolltop",
}
"""Paths of the shared vocabulary that this version knows of but does not have."""


def is_at_or_below(path: str, root: str) -> bool:
    """Return whether a dotted path is ``root`` or lies below it."""
    return path == root or path.startswith(f"{root}.")


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
    if near is not None:
        return ConfigError(f"unknown key {path}; did you mean {near}?")
    parent = path.rpartition(".")[0]
    while parent and not any(name.startswith(f"{parent}.") for name in names):
        parent = parent.rpartition(".")[0]
    below = f"{parent}." if parent else ""
    siblings = sorted({n[len(below) :].split(".")[0] for n in names if n.startswith(below)})
    where = f"in {parent}" if parent else "at the top"
    return ConfigError(f"unknown key {path}", hint=f"{where} there are: {', '.join(siblings)}")


def _nearest(path: str, names: list[str]) -> str | None:
    parent, _, leaf = path.rpartition(".")
    same_leaf = [name for name in names if "." in name and name.rpartition(".")[2] == leaf]
    if not parent and same_leaf:
        return same_leaf[0]
    siblings = {n.rpartition(".")[2]: n for n in names if n.rpartition(".")[0] == parent}
    for near in get_close_matches(leaf, siblings, n=1, cutoff=0.6):
        return siblings[near]
    others = [name for name in names if not is_at_or_below(path, name)]
    for near in get_close_matches(path, others, n=1, cutoff=0.7):
        return near
    return None


def unknown_option(group: str, option: str, options: Iterable[str]) -> ConfigError:
    """Return the complaint about a group's option that is not there, naming the nearest and all."""
    names = sorted(options)
    near = get_close_matches(option, names, n=1, cutoff=0.5)
    also = f"; did you mean {group}={near[0]}?" if near else ""
    return ConfigError(f"there is no {group}={option}{also}", hint=f"there are: {', '.join(names)}")


def paths_of(tree: object, prefix: str = "") -> list[str]:
    """Return the dotted path of every section and value of a tree of mappings."""
    if not isinstance(tree, dict):
        return []
    paths = []
    for key, value in tree.items():
        path = f"{prefix}{key}"
        paths += [path, *paths_of(value, f"{path}.")]
    return paths


_MISSING_OPTION = re.compile(r"Could not (?:find|load) '([^'/]+)/([^']+)'")
_NO_SUCH_KEY = re.compile(
    r"Could not override '([^']+)'|Could not delete from config\. '([^']+)' does not exist"
)
_TAKEN = re.compile(r"An item is already at '([^']+)'")


def from_hydra(
    error: Exception, *, known: Iterable[str], options: Mapping[str, Iterable[str]]
) -> ConfigError:
    """Return Hydra's complaint in our words.

    Args:
        error: What composing raised.
        known: All dotted paths of the configuration without the overrides.
        options: Group -> its options.
    """
    text = str(error)
    if found := _MISSING_OPTION.search(text):
        group, option = found.groups()
        return unknown_option(group, option, options.get(group, ()))
    if found := _NO_SUCH_KEY.search(text):
        return unknown_key(found[1] or found[2], known)
    if found := _TAKEN.search(text):
        return ConfigError(
            f"+{found[1]}: the key is there already", hint=f"{found[1]}=... changes it"
        )
    return ConfigError(one_line(text))


def from_omegaconf(error: Exception) -> ConfigError:
    """Return OmegaConf's complaint about an interpolation that cannot be resolved."""
    text = str(error)
    place = re.search(r"full_key: (\S+)", text)
    reason = re.sub(r"^\w+ raised while resolving interpolation: ", "", one_line(text))
    missing = re.fullmatch(r"Interpolation key '([^']+)' not found", reason)
    if missing:
        reason = f"${{{missing[1]}}} names no key of the configuration"
    where = f"{place[1]}: " if place else ""
    return ConfigError(where + reason.strip('"'))


def one_line(text: str) -> str:
    """Return the first line of a message."""
    return text.strip().split("\n", 1)[0].strip()


def from_pydantic(error: ValidationError, model: type[BaseModel], place: str = "") -> ConfigError:
    """Return the first of pydantic's complaints, and how many more there are.

    Args:
        error: What validating raised.
        model: The model validated against, for the names of its keys.
        place: What to put before the path, such as ``sim.``.
    """
    details = error.errors()
    first = _complaint(details[0], model, place)
    if len(details) > 1:
        first = ConfigError(f"{first.message} (and {len(details) - 1} more)", hint=first.hint)
    return first


def _complaint(detail: ErrorDetails, model: type[BaseModel], place: str) -> ConfigError:
    location = detail["loc"]
    path = place + _dotted(location)
    if detail["type"] == "extra_forbidden":
        parent = _dotted(location[:-1])
        below = place + (f"{parent}." if parent else "")
        return unknown_key(path, [f"{below}{name}" for name in _keys_at(model, location[:-1])])
    if detail["type"] == "missing":
        return ConfigError(f"{path} is missing")
    names = [part for part in location if isinstance(part, str)]
    return ConfigError(f"{path}: {_words(detail)}", hint=_CURES.get(names[-1] if names else ""))


def _words(detail: ErrorDetails) -> str:
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    if context.get("pattern") == WORD:
        return f"must be made of letters, digits, '.', '_' and '-', not {_shown(value)}"
    wanted = _WANTED.get(kind)
    if wanted is not None:
        return f"must be {wanted.format(**context)}, not {_shown(value)}"
    return detail["msg"].removeprefix("Value error, ")


_CURES: dict[str, str] = {
    "n_concurrent_rollouts": "0 would be a capacity of zero; skip=true leaves the service out",
    "replicas_per_container": "0 would be a capacity of zero; "
    "runtime.endpoints.<s>.skip=true leaves the service out",
    "gpus": "no entry would be a capacity of zero; null is one CPU container, [0,0] two on GPU 0",
}

_WANTED: dict[str, str] = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text (in quotes, if it looks like a number)",
    "path_type": "a path",
    "tuple_type": "a list, [a,b]",
    "dict_type": "a section with keys",
    "model_type": "a section with keys",
    "model_attributes_type": "a section with keys",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "too_short": "at least {min_length} long",
    "too_long": "at most {max_length} long",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "string_pattern_mismatch": "of the form {pattern}",
    "string_too_long": "at most {max_length} characters long",
}


def _shown(value: object) -> str:
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _dotted(location: tuple[int | str, ...]) -> str:
    parts: list[str] = []
    for part in location:
        if isinstance(part, int):
            parts[-1] += f"[{part}]"
        elif part != "[key]":
            parts.append(part)
    return ".".join(parts)


def _keys_at(model: Any, location: tuple[int | str, ...]) -> list[str]:
    """Return the names of the fields that a section at ``location`` may have."""
    current = model
    for part in location:
        current = _below(current, part)
    found = next((m for m in _models_in(current)), None)
    if found is None:
        return []
    return [field.alias or name for name, field in found.model_fields.items()]


def _below(annotation: Any, part: int | str) -> Any:
    for found in _models_in(annotation):
        for name, field in found.model_fields.items():
            if part in (name, field.alias):
                return field.annotation
    arguments = get_args(annotation)
    return arguments[-1] if arguments else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if getattr(annotation, "__origin__", None) in (dict, tuple):
        return []
    return [found for argument in get_args(annotation) for found in _models_in(argument)]
