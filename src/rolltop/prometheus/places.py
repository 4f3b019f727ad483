"""Where rolltop keeps what it fetched for a user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_dir(env: Mapping[str, str] | None = None) -> Path:
    """Return the user's cache folder of rolltop; it may not exist yet.

    ``ROLLTOP_CACHE_DIR``, else ``rolltop`` under ``XDG_CACHE_HOME``, else ``~/.cache/rolltop``. As
    the XDG rules say, a relative ``XDG_CACHE_HOME`` is passed over.

    Args:
        env: The environment, ``os.environ`` by default.
    """
    env = os.environ if env is None else env
    own = env.get("ROLLTOP_CACHE_DIR", "")
    if own:
        return Path(own).expanduser().absolute()
    xdg = env.get("XDG_CACHE_HOME", "")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "rolltop"
    home = env.get("HOME", "")
    return (Path(home) if home else Path("~").expanduser()) / ".cache" / "rolltop"


def debian_dir(env: Mapping[str, str] | None = None) -> Path:
    """Return the folder of unpacked Debian packages, one ``<name>-<version>`` folder for each."""
    return cache_dir(env) / "debian"
