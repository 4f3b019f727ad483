"""Complaints of Hydra, OmegaConf, YAML and pydantic in the user's words: the place, the cure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from yaml import MarkedYAMLError

from rolltop.config import complaints, resolving
from rolltop.config.schema.base import WORD
from rolltop.config.schema.paths import fields_at
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails
    from yaml import YAMLError

LONGEST_SHOWN = 60

_MISSING_OPTION = re.compile(r"Could not (?:find|load) '([^'/]+)/([^']+)'")
_NO_SUCH_KEY = re.compile(r"Could not override '([^']+)'")
_NOTHING_TO_DELETE = re.compile(r"Could not delete from config\. '([^']+)' does not exist")
_TAKEN = re.compile(r"An item is already at '([^']+)'")
_FULL_KEY = re.compile(r"full_key: (\S+)")
_INTERPOLATION = (
    "${run.seed} stands for the value of another key, which must not need this one; "
    "a $ that stands for itself is written \\$"
)


def key_not_there(error: Exception) -> str | None:
    """Return the path that Hydra could not override; None for another complaint."""
    found = _NO_SUCH_KEY.search(str(error))
    return found[1] if found else None


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
        return complaints.unknown_option(group, option, options.get(group, ()))
    if found := _NO_SUCH_KEY.search(text) or _NOTHING_TO_DELETE.search(text):
        return complaints.unknown_key(found[1], known)
    if found := _TAKEN.search(text):
        key = found[1]
        return ConfigError(f"+{key}: the key is there already", hint=f"{key}=... changes it")
    cause = error.__cause__
    return ConfigError(one_line(text)) if cause is None else from_omegaconf(cause)


def from_yaml(error: YAMLError, place: str | None = None) -> ConfigError:
    """Return the complaint about a file that is not YAML, with the line.

    Args:
        error: What loading raised.
        place: What to name instead of the file that the error names.
    """
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return ConfigError(f"{place or 'a configuration file'} is not YAML: {one_line(str(error))}")
    mark = error.problem_mark
    return ConfigError(f"{place or mark.name}, line {mark.line + 1}: {error.problem}")


def from_omegaconf(error: BaseException, place: str | None = None) -> ConfigError:
    """Return OmegaConf's complaint about a value that cannot be merged or resolved.

    Args:
        error: What was raised.
        place: The path of the value, for where the error does not name it.
    """
    text = str(error)
    found = _FULL_KEY.search(text)
    path = found[1] if found else place
    where = f"{path}: " if path else ""
    reason = re.sub(r"^\w+ raised while resolving interpolation: ", "", one_line(text))
    if missing := re.fullmatch(r"Interpolation key '([^']+)' not found", reason):
        return ConfigError(f"{where}${{{missing[1]}}} names no key of the configuration")
    if reason.startswith("Recursive interpolation"):
        return ConfigError(f"{where}its ${{...}} leads back to itself", hint=_INTERPOLATION)
    if "maximum recursion depth" in reason:
        reason = resolving.TOO_DEEP
    if reason in (resolving.TOO_MUCH, resolving.TOO_DEEP):
        return ConfigError(f"{where}{reason}", hint=resolving.HINT)
    if type(error).__name__ == "GrammarParseError":
        return ConfigError(f"{where}its ${{...}} cannot be read", hint=_INTERPOLATION)
    if reason == "Cannot merge DictConfig with ListConfig":
        return ConfigError(
            f"{where}must be a section with keys, not a list",
            hint=f"{path or 'section'}.KEY=... sets one of its keys",
        )
    return ConfigError(where + reason.strip('"'))


def one_line(text: str) -> str:
    """Return the first line of a message."""
    return text.strip().split("\n", 1)[0].strip()


def from_pydantic(
    error: ValidationError, model: type[BaseModel], known: Iterable[str]
) -> ConfigError:
    """Return the first of pydantic's complaints, and how many more there are.

    Unknown keys come before what they leave missing.

    Args:
        error: What validating raised.
        model: The model validated against.
        known: All dotted paths of what was validated.
    """
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    first = _complaint(details[0], model, known)
    if len(details) > 1:
        first = ConfigError(f"{first.message} (and {len(details) - 1} more)", hint=first.hint)
    return first


def _complaint(detail: ErrorDetails, model: type[BaseModel], known: Iterable[str]) -> ConfigError:
    location = detail["loc"]
    path = _dotted(location)
    if detail["type"] == "extra_forbidden":
        above = path.rpartition(".")[0]
        fields = fields_at(model, location[:-1])
        others = [name for name in known if not complaints.is_at_or_below(name, path)]
        return complaints.unknown_key(
            path, [*(f"{above}.{name}" if above else name for name in fields), *others]
        )
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
        bounds = {name: _bound(limit) for name, limit in context.items()}
        return f"must be {wanted.format(**bounds)}, not {_shown(value)}"
    return detail["msg"].removeprefix("Value error, ")


_CURES: dict[str, str] = {
    "n_concurrent_rollouts": "0 would be a capacity of zero; skip=true leaves the service out",
    "replicas_per_container": "0 would be a capacity of zero; "
    "runtime.endpoints.<s>.skip=true leaves the service out",
    "env": "leave the variable out, or choose another name",
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
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
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


def _bound(limit: object) -> object:
    """Return a limit as people write it: 1,000,000 and 0.001."""
    if isinstance(limit, int):
        return f"{limit:,}"
    return f"{limit:g}" if isinstance(limit, float) else limit


def _dotted(location: tuple[int | str, ...]) -> str:
    parts: list[str] = []
    for part in location:
        if isinstance(part, int):
            parts[-1] += f"[{part}]"
        elif part != "[key]":
            parts.append(part)
    return ".".join(parts)
