"""Ports that no other run takes: a lease per port, held by an abstract unix socket.

The name of an abstract socket (``unix(7)``) belongs to the network namespace, as ports do, needs
no file, works between users, and is free again the moment its holder dies.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rolltop.errors import PortError

if TYPE_CHECKING:
    from collections.abc import Iterable

FIRST, LAST = 1024, 65535
PREFERRED = range(20_000, 30_000)
"""Below the ephemeral range of Linux, from which any outgoing connection may take a port."""
_EPHEMERAL_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def default_range(ephemeral: str | None = None) -> range:
    """Return 20000-29999, or as many ports outside the ephemeral range where that overlaps.

    Args:
        ephemeral: what ``/proc/sys/net/ipv4/ip_local_port_range`` says; read if None.
    """
    if ephemeral is None:
        try:
            ephemeral = _EPHEMERAL_FILE.read_text()
        except OSError:
            return PREFERRED
    low, high = (int(word) for word in ephemeral.split())
    if high < PREFERRED.start or low >= PREFERRED.stop:
        return PREFERRED
    gaps = (range(FIRST, low), range(high + 1, LAST + 1))
    widest = max(gaps, key=len)
    return widest[-len(PREFERRED) :] or PREFERRED


def is_free(port: int) -> bool:
    """Whether a server can bind the port on every address; sees ports that are bound but silent.

    Bound without SO_REUSEADDR, so that one with connections in their last minute counts as taken.
    """
    return _binds(socket.AF_INET, port) and _binds(socket.AF_INET6, port)


def _binds(family: socket.AddressFamily, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(("", port))
    except OSError as error:
        return family == socket.AF_INET6 and error.errno in (
            errno.EAFNOSUPPORT,
            errno.EADDRNOTAVAIL,
        )
    return True


class PortLeases:
    """The ports of one run on one node; they are given back when it is closed, or its process dies.

    ``ports`` is the range to take them from; the search starts at a random place in it, so that
    runs that start together seldom meet.
    """

    def __init__(self, ports: range | None = None, *, rng: random.Random | None = None) -> None:
        self.ports = default_range() if ports is None else ports
        self._rng = rng or random.Random()  # noqa: S311 - spread, not secrecy
        self._held: dict[int, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> tuple[int, ...]:
        """The ports that are leased now, in the order of their lease."""
        return tuple(self._held)

    def lease(self, n: int = 1) -> list[int]:
        """Return ``n`` ports that are free and that no other run has leased.

        Raises:
            PortError: if the range has not so many; none is kept then.
        """
        if not sys.platform.startswith("linux"):
            raise PortError("ports are leased through abstract unix sockets, which only Linux has")
        found: list[int] = []
        start = self._rng.randrange(len(self.ports)) if self.ports else 0
        for offset in range(len(self.ports)):
            if len(found) == n:
                break
            port = self.ports[(start + offset) % len(self.ports)]
            if self._take(port):
                found.append(port)
        if len(found) < n:
            self.release(found)
            raise PortError(
                f"of ports {self.ports.start}-{self.ports.stop - 1} only {len(found)} are free, "
                f"{n} are needed",
                hint="wait for other runs to end, or set a wider ports.range",
            )
        return found

    def replace(self, port: int) -> int:
        """Return a new port for one that a process then could not bind.

        The old one stays leased, so that it does not come back.

        Raises:
            PortError: if there is none.
        """
        if port not in self._held:
            raise PortError(f"port {port} is not leased here")
        return self.lease()[0]

    def release(self, ports: Iterable[int] | None = None) -> None:
        """Give ports back, all of them if None."""
        for port in list(self._held if ports is None else ports):
            if (lock := self._held.pop(port, None)) is not None:
                lock.close()

    def _take(self, port: int) -> bool:
        if port in self._held:
            return False
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):
            lock.bind(f"\0rolltop-port-{port}")
            if is_free(port):
                self._held[port] = lock
                return True
        lock.close()
        return False
