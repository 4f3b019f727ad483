"""What is to be done in the child of a fork, for as long as somebody lives who wants it done.

A child has one thread, the one that forked, and a copy of everything else: of locks that no thread
will ever release, of sockets that are its parent's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

from rolltop_instrument._guest import fault

T = TypeVar("T")

_OWNERS: dict[ref[Any], Callable[[Any], None]] = {}


def in_forked_child(owner: T, then: Callable[[T], None]) -> None:
    """Call ``then(owner)`` in each child that is forked from now, if ``owner`` still lives."""
    _OWNERS[ref(owner, _OWNERS.pop)] = then


def _in_child() -> None:
    for reference, then in list(_OWNERS.items()):
        owner = reference()
        try:
            if owner is not None:
                then(owner)
        except Exception as problem:  # noqa: BLE001 - the host's child goes on
            fault("a forked child", problem)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
