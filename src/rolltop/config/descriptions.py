"""Read the description of a simulator at ``sim.file``, which can be any file of anybody's.

YAML's aliases let a few lines stand for more than a machine holds, and both YAML and OmegaConf
recurse. So the file is bounded before it is loaded: its size, how deep it is nested, and how much
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

NO_KEYS = "does not describe a simulator: no keys at its top"
BYTES_MAX = 256 * 1024
VALUES_MAX = 10_000
DEPTH_MAX = 32
"""Sections and lists inside each other; the deepest of the schema is six."""


def load(path: Path) -> dict[str, Any]:
    """Return what a description holds, interpolations unresolved.

    Raises:
        ConfigError: It cannot be read, is not YAML, has no keys, or is beyond the bounds.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    place = f"sim.file: {path}"
    text = _read(path, place)
    try:
        _check_bounds(text, place)
        loaded = OmegaConf.to_container(OmegaConf.load(io.StringIO(text)))
    except yaml.YAMLError as error:
        raise translate.from_yaml(error, place) from None
    except (OmegaConfBaseException, OSError, ValueError) as error:
        raise ConfigError(f"{place}: {translate.one_line(str(error))}") from None
    if not isinstance(loaded, dict) or not loaded:
        raise ConfigError(f"{place} {NO_KEYS}")
    return {str(key): value for key, value in loaded.items()}


def _read(path: Path, place: str) -> str:
    try:
        return read_file(path, max_bytes=BYTES_MAX).decode()
    except OSError as error:
        hint = None
        if error.errno in (errno.EFBIG, errno.EINVAL):
            hint = f"a description is a regular file of {BYTES_MAX // 1024} KiB at most"
        raise ConfigError(f"{place} cannot be read: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{place} is not text in UTF-8") from None


def _check_bounds(text: str, place: str) -> None:
    """Go through the file's events, which need no recursion, and count.

    Raises:
        ConfigError: There is too much of it.
        yaml.YAMLError: It is not YAML.
    """
    import yaml

    counter = _Counter()
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if not counter.open and isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent):
            raise ConfigError(f"{place} {NO_KEYS}")
        complaint = counter.take(event)
        if complaint:
            mark = event.start_mark
            line = "" if mark is None else f", line {mark.line + 1}"
            raise ConfigError(f"{place}{line}: {complaint[0]}", hint=complaint[1])


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
            self.values += 1
            self._close(event.anchor, 1, 0)
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
                f"more than {VALUES_MAX} values, those that aliases stand for included",
                "a description needs some hundred: leave the rest to the simulator's own files",
            )
        return None
