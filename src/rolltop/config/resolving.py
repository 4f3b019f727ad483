"""Bound what ``${...}`` may stand for.

OmegaConf keeps no result: of a chain of values, each the one before it twice, forty stand for more
than a machine holds. It has no limit of its own, so its evaluations are counted as they happen,
which also counts the names that only an evaluation tells (``${a.${b}}``, resolvers).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHARACTERS_MAX = 1024 * 1024
CHARACTERS_OF_ONE = 500
"""What each ``${...}`` counts as besides, so that those for empty texts come to an end too."""
CHARACTERS_OF_A_VALUE = 50
"""What each value counts as in a section or list, which OmegaConf copies one by one."""
TOO_MUCH = (
    "its ${...} stand for too much: "
    f"those of a configuration for {CHARACTERS_MAX:,} characters at most"
)
TOO_DEEP = "its ${...} leads through too many others"
HINT = "name a value once, or leave what is this large to the simulator's own files"
_METHODS = ("_resolve_node_interpolation", "_evaluate_custom_resolver")
"""Of OmegaConf's containers: each ``${...}`` is evaluated by one of the two."""
_one_at_a_time = threading.RLock()


@contextmanager
def bounded() -> Iterator[None]:
    """Let this thread resolve so much and no more.

    Raises:
        ConfigError: It was too much, or led too deep; OmegaConf wraps it to name the key.
    """
    from omegaconf import Container

    meter = _Meter()
    with _one_at_a_time:
        before = {name: getattr(Container, name) for name in _METHODS}
        for name, method in before.items():
            setattr(Container, name, meter.counting(method))
        try:
            yield
        except RecursionError:
            raise ConfigError(f"the configuration: {TOO_DEEP}", hint=HINT) from None
        finally:
            for name, method in before.items():
                setattr(Container, name, method)
    if meter.is_beyond:  # and OmegaConf went on with a default
        raise ConfigError(f"the configuration: {TOO_MUCH}", hint=HINT)


class _Meter:
    """Counts the characters that one thread's interpolations stood for."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.characters = 0

    def counting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with its results counted."""

        def counted(container: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self.thread:
                return method(container, *args, **kwargs)
            self._check()
            result = method(container, *args, **kwargs)
            self.characters += CHARACTERS_OF_ONE + _size_of(result)
            self._check()
            return result

        return counted

    @property
    def is_beyond(self) -> bool:
        """Whether it was too much."""
        return self.characters > CHARACTERS_MAX

    def _check(self) -> None:
        if self.is_beyond:
            raise ConfigError(TOO_MUCH, hint=HINT)


def _size_of(result: Any) -> int:
    """Return the characters of a text, or of all the texts of a section or list."""
    from omegaconf import Node, OmegaConf

    if OmegaConf.is_config(result):
        left = [OmegaConf.to_container(result)]
    else:
        left = [result._value() if isinstance(result, Node) else result]
    size = 0
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        size += len(value) if isinstance(value, str) else CHARACTERS_OF_A_VALUE
    return size
