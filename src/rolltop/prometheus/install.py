"""Put Debian's Prometheus into the user's cache, with the files of its pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rolltop.errors import DependencyError
from rolltop.prometheus.binary import (
    HOW_TO_DOWNLOAD,
    VARIABLE,
    Binary,
    Source,
    find_prometheus,
    inspect,
)
from rolltop.prometheus.debian import unpack_debian
from rolltop.prometheus.places import debian_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

LEAST_GLIBC = (2, 34)
PACKAGE = "prometheus"
CHECKER = "promtool"
"""A package of its own in newer releases of Debian."""
PAGE_PACKAGES = (
    "fonts-glyphicons-halflings",
    "libjs-bootstrap4",
    "libjs-d3",
    "libjs-eonasdan-bootstrap-datetimepicker",
    "libjs-jquery",
    "libjs-jquery-hotkeys",
    "libjs-moment",
    "libjs-moment-timezone",
    "libjs-mustache",
    "libjs-popper.js",
    "libjs-rickshaw",
)
ROOM_BYTES = 250_000_000
"""The unpacked packages (104 MB), the packages themselves and the package lists, for a while."""
LEFT_OUT = (
    "./etc",
    "./lib",
    "./usr/lib",
    "./usr/share/bash-completion",
    "./usr/share/doc",
    "./usr/share/lintian",
    "./usr/share/man",
    "./usr/share/sass",
    "./usr/share/javascript/moment-timezone/data",
    "./var",
)
"""What neither the server nor its pages read: 214 MB of the 318 that the packages hold."""


def install(
    progress: Callable[[str], None] = lambda _: None, env: Mapping[str, str] | None = None
) -> Binary:
    """Fetch Debian's Prometheus into the user's cache, if it is not there yet, and return it.

    Args:
        progress: Told in a few words what is being done.
        env: The environment, ``os.environ`` by default.

    Raises:
        DependencyError: It cannot be had here; the hint says how else to get one.
    """
    env = os.environ if env is None else env
    try:
        _require_glibc()
        root = unpack_debian(
            (PACKAGE,),
            debian_dir(env),
            optional=(CHECKER, *PAGE_PACKAGES),
            exclude=LEFT_OUT,
            room_bytes=ROOM_BYTES,
            check=lambda root: _check(root, env),
            progress=progress,
        )
    except DependencyError as error:
        hint = "; or ".join(part for part in (error.hint, HOW_TO_DOWNLOAD) if part)
        raise DependencyError(f"cannot install Prometheus: {error.message}", hint=hint) from error
    return inspect(root / "usr/bin/prometheus", Source.CACHE, env)


def find_or_install(
    progress: Callable[[str], None] = lambda _: None, env: Mapping[str, str] | None = None
) -> Binary:
    """Return the Prometheus to use, installed first where there is none.

    Raises:
        DependencyError: The one that the user named cannot be used, or none can be had.
    """
    env = os.environ if env is None else env
    try:
        return find_prometheus(env)
    except DependencyError:
        if env.get(VARIABLE):
            raise
    return install(progress, env)


def _check(root: Path, env: Mapping[str, str]) -> None:
    inspect(root / "usr/bin/prometheus", Source.CACHE, env)


def _require_glibc() -> None:
    name = (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    numbers = tuple(int(part) for part in name.split(".")[:2] if part.isdigit())
    if numbers < LEAST_GLIBC:
        least = ".".join(str(part) for part in LEAST_GLIBC)
        has = f"glibc {name}" if name else "another C library"
        raise DependencyError(f"Debian's build needs glibc {least}, this system has {has}")
