"""Label values that the host names are bounded: each new one makes series for ever."""

from __future__ import annotations

from collections.abc import Hashable

from rolltop_instrument._guest import warn

OTHER = "other"
"""What everything beyond a bound is recorded as."""


class Bound:
    """Who gets series of their own: the first so many. For one thread at a time.

    Args:
        most: How many do.
        what: What they are, in the plural, for the one warning.
    """

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._admitted: set[Hashable] = set()
        self._warned = False

    def admits(self, key: Hashable) -> bool:
        """Whether ``key`` is one of them; once it is, it stays one."""
        if key in self._admitted:
            return True
        if len(self._admitted) < self._most:
            self._admitted.add(key)
            return True
        if not self._warned:
            self._warned = True
            warn(
                "more than %d %s: further ones are recorded as '%s'", self._most, self._what, OTHER
            )
        return False
