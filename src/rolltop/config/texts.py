"""Texts that can be handed on: to files in UTF-8, and to the kernel, which ends one at a NUL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CURE = {
    "is not text in UTF-8": "write the character itself, or choose another name",
    "holds the character NUL": "leave it out: no argument, variable or path can hold it",
}


def fault_of(text: str) -> str | None:
    """Return why a text cannot be handed on, None if it can."""
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")  # two halves are a whole
    except UnicodeError:
        return "is not text in UTF-8"
    return "holds the character NUL" if "\0" in text else None


def check(tree: object) -> None:
    """Refuse texts, keys included, that cannot be handed on.

    Args:
        tree: Plain data: mappings, lists and values.

    Raises:
        ConfigError: With the path of the first one.
    """
    for path, text in _texts(tree, ""):
        fault = fault_of(text)
        if fault is not None:
            place = path.encode("unicode_escape").decode("ascii")
            raise ConfigError(f"{place}: {text!r:.80} {fault}", hint=_CURE[fault])


def _texts(tree: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            below = f"{path}.{key}" if path else str(key)
            yield below, str(key)
            yield from _texts(value, below)
    elif isinstance(tree, list | tuple):
        for at, value in enumerate(tree):
            yield from _texts(value, f"{path}[{at}]")
