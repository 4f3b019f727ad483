"""Read a file of configuration: a simulator's description or a topology, of anybody's.

YAML's aliases let a few lines stand for more than a machine holds, and both YAML and OmegaConf
recurse. So a file is bounded before it is loaded: its size, how deep it is nested, and how much
it says once every alias is written out.
"""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING, Any

from rolltop.config import translate
from rolltop.errors import ConfigError
from rolltop.files import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from omegaconf import DictConfig, ListConfig

BYTES_MAX = 256 * 1024
VALUES_MAX = 10_000
VALUES_OF_ONE_REFERENCE = 10
"""What a ``${...}`` counts as: it is parsed anew whenever it is read."""
DEPTH_MAX = 32
"""Sections and lists inside each other; the deepest of the schema is six."""


def load(path: Path) -> dict[str, Any]:
    """Return what the description at ``sim.file`` holds, interpolations unresolved.

    Raises:
        ConfigError: It cannot be read, is not YAML, has no keys, or is beyond the bounds.
    """
    from omegaconf import OmegaConf

    place, what = f"sim.file: {path}", "simulator"
    loaded = OmegaConf.to_container(load_text(read_text(path, place), place, what))
    if not isinstance(loaded, dict) or not loaded:
        raise ConfigError(no_keys(place, what))
    return {str(key): value for key, value in loaded.items()}


def read_text(path: Path, place: str) -> str:
    """Return the text of a file; a pipe is not waited for.

    Args:
        path: The file.
        place: What a complaint begins with.

    Raises:
        ConfigError: It cannot be read, is no regular file, too large, or no text.
    """
    try:
        return read_file(path, max_bytes=BYTES_MAX).decode()
    except OSError as error:
        is_socket = error.errno == errno.ENXIO
        reason = "not a regular file" if is_socket else error.strerror
        hint = None
        if is_socket or error.errno in (errno.EINVAL, errno.EISDIR, errno.EFBIG):
            hint = f"what is read is a regular file of {BYTES_MAX // 1024} KiB at most"
        raise ConfigError(f"{place} cannot be read: {reason}", hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"{place} is not text in UTF-8", hint="save it in UTF-8, the encoding of YAML"
        ) from None


def no_keys(place: str, what: str) -> str:
    """Return the complaint about a file that holds no section."""
    return f"{place} does not describe a {what}: no keys at its top"


def load_text(text: str, place: str, what: str) -> DictConfig | ListConfig:
    """Return what a file's text holds, interpolations unresolved; an empty text has no keys.

    Args:
        text: In YAML.
        place: What a complaint begins with.
        what: ``simulator``, ``topology``: what the file is to describe.

    Raises:
        ConfigError: It is not YAML, no section or list, or beyond the bounds.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        _check_bounds(text, place, what)
        loaded = OmegaConf.load(io.StringIO(text))
        _check_defaults(OmegaConf.to_container(loaded), place)
    except yaml.YAMLError as error:
        raise translate.from_yaml(error, place) from None
    except RecursionError:
        raise ConfigError(f"{place}: one of its ${{...}} is nested too deep") from None
    except (OmegaConfBaseException, OSError, ValueError) as error:
        raise ConfigError(f"{place}: {translate.one_line(str(error))}") from None
    return loaded


def _check_defaults(loaded: object, place: str) -> None:
    """Refuse what Hydra cannot read as the list of files that this one takes in."""
    defaults = loaded.get("defaults", []) if isinstance(loaded, dict) else []
    items = defaults if isinstance(defaults, list) else [defaults]
    wrong = [item for item in items if not _is_default(item)]
    if wrong or items is not defaults:
        shown = repr(wrong[0] if wrong else defaults)
        raise ConfigError(
            f"{place}: defaults is a list of files to take in, not {shown:.60}",
            hint="defaults: [NAME], or [/GROUP: NAME]",
        )


def _is_default(item: object) -> bool:
    """Whether it is a file's name, or one pair of a group and the names of files in it."""
    if isinstance(item, str):
        return bool(item.strip()) and item != "???"
    if not isinstance(item, dict) or len(item) != 1:
        return False
    (group, names), *_ = item.items()
    listed = names if isinstance(names, list) else ["null" if names is None else names]
    words = str(group).partition("@")[0].split()  # override /topology@package
    is_named = bool(words) and words[-1].strip("/") not in ("", "override", "optional")
    return is_named and all(isinstance(name, str) for name in listed)


def _check_bounds(text: str, place: str, what: str) -> None:
    """Go through the file's events, which need no recursion, and count.

    Raises:
        ConfigError: There is too much of it.
        yaml.YAMLError: It is not YAML.
    """
    import yaml

    counter = _Counter()
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if not counter.open and isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent):
            raise ConfigError(no_keys(place, what))
        complaint = _tag_complaint(event) or counter.take(event)
        if complaint:
            mark = event.start_mark
            line = "" if mark is None else f", line {mark.line + 1}"
            raise ConfigError(f"{place}{line}: {complaint[0]}", hint=complaint[1])


def _tag_complaint(event: Any) -> tuple[str, str] | None:
    """Return what is wrong with a value that says its type: a tag can make anything of it."""
    tag = getattr(event, "tag", None)
    if tag is None:
        return None
    written = str(tag).replace("tag:yaml.org,2002:", "!!")
    return (
        f"the tag {written!r:.40}: values are plain text, numbers, true, false, null, "
        "lists and sections",
        "leave the tag out; text that looks like a number is written in quotes",
    )


class _Counter:
    """Counts values and depth with every alias written out.

    Attributes:
        values: So many are there up to here.
        open: The sections and lists not yet closed: anchor, values before it, levels inside it.
        anchored: Anchor -> how many values and levels it stands for.
    """

    def __init__(self) -> None:
        self.values = 0
        self.open: list[tuple[str | None, int, int]] = []
        self.anchored: dict[str | None, tuple[int, int]] = {}

    def take(self, event: Any) -> tuple[str, str] | None:
        """Count one event; return what is wrong and its cure, None while all is well."""
        import yaml

        if isinstance(event, yaml.CollectionStartEvent):
            self.open.append((event.anchor, self.values, 0))
            self.values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before, levels = self.open.pop()
            self._close(anchor, self.values - before, levels + 1)
        elif isinstance(event, yaml.ScalarEvent):
            before = self.values
            self.values += 1 + VALUES_OF_ONE_REFERENCE * event.value.count("${")
            self._close(event.anchor, self.values - before, 0)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _, _ in self.open):
                return f"*{event.anchor} stands for what it is part of", "write out what is meant"
            values, levels = self.anchored.get(event.anchor, (0, 0))  # unknown: loading says so
            self.values += values
            self._close(None, values, levels)
        return self._beyond()

    def _close(self, anchor: str | None, values: int, levels: int) -> None:
        if anchor is not None:
            self.anchored[anchor] = (values, levels)
        if self.open:
            outer, before, deepest = self.open[-1]
            self.open[-1] = (outer, before, max(deepest, levels))

    def _beyond(self) -> tuple[str, str] | None:
        levels = self.open[-1][2] if self.open else 0
        if len(self.open) + levels > DEPTH_MAX:
            return f"more than {DEPTH_MAX} levels of sections and lists", "nest it less deep"
        if self.values > VALUES_MAX:
            return (
                f"more than {VALUES_MAX} values, those that aliases stand for included "
                f"and each ${{...}} counted as {VALUES_OF_ONE_REFERENCE}",
                "some hundred are enough: leave the rest to the simulator's own files",
            )
        return None
