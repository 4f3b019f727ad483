"""Where a file is to go: whether it can go there, and what helps where it cannot."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from rolltop.errors import ConfigError, describe_os_error

if TYPE_CHECKING:
    from pathlib import Path

_ROOM = "make room there, or choose another place"
_PNG = b"\x89PNG\r\n\x1a\n"
"""The first bytes of every PNG."""
_WRITABLE = "choose a place that you may write to"
_CURES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.ENOENT: "make it first, or choose another place",
    errno.ENOTDIR: "a file is not a folder: choose another place",
    errno.EISDIR: "name a file in it",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "a link there leads back to itself: choose another place",
}


def cure(error: OSError) -> str | None:
    """Return what helps against what the operating system refused, None where it depends."""
    if error.errno is None or _is_about_cwd(error):
        return None
    return _CURES.get(error.errno)


def describe(error: OSError) -> str:
    """Return what the operating system refused, in a line."""
    return (
        "the current directory no longer exists"
        if _is_about_cwd(error)
        else (describe_os_error(error))
    )


def _is_about_cwd(error: OSError) -> bool:
    if not isinstance(error, FileNotFoundError) or error.filename is not None:
        return False
    try:
        os.getcwd()  # noqa: PTH109 (a path is not wanted)
    except FileNotFoundError:
        return True
    return False


def place_for_file(option: str, named: Path) -> Path:
    """Return where a file goes that a command line names: where a link leads to.

    What is there already is replaced if it is a regular file; nothing else is.

    Args:
        option: What names it, ``--output``.
        named: The file as named.

    Raises:
        ConfigError: No file can be put there.
    """
    what = f"{option} {named}"
    try:
        return _checked(what, option, named)
    except RuntimeError as error:  # links that lead in a circle
        raise ConfigError(f"{what}: {error}", hint="choose another name") from error
    except OSError as error:
        raise refused(what, error) from error


def place_for_picture(option: str, named: Path) -> Path:
    """Return what `place_for_file` does, for a PNG, which replaces nothing but another one.

    Raises:
        ConfigError: No picture can be put there.
    """
    place = place_for_file(option, named)
    if named.suffix.lower() not in ("", ".png"):
        raise ConfigError(
            f"{option} {named}: the picture is a PNG, not {named.suffix}",
            hint=f"{option} {named.with_suffix('.png')}",
        )
    try:
        if place.exists() and not _is_png_or_empty(place):
            raise ConfigError(
                f"{option} {named} is there already, and is no PNG", hint="choose another name"
            )
    except OSError as error:
        raise refused(f"{option} {named}", error) from error
    return place


def _is_png_or_empty(place: Path) -> bool:
    with place.open("rb") as file:
        start = file.read(len(_PNG))
    return start in (_PNG, b"")


def refused(what: str, error: OSError, hint: str | None = None) -> ConfigError:
    """Return the error for a file that was not written: ``what`` names it as the user does."""
    said = error.strerror or describe_os_error(error)
    return ConfigError(f"{what}: {said}", hint=hint or cure(error) or "choose another place")


def _checked(what: str, option: str, named: Path) -> Path:
    place = named.resolve() if named.is_symlink() else named
    folder = place.parent
    if place.is_dir():
        raise ConfigError(
            f"{what} is a directory",
            hint=f"name a file in it: {option} {named / 'metrics_plot.png'}",
        )
    if not folder.exists():
        raise ConfigError(
            f"{what}: the folder {folder} is not there", hint="make it first, or choose another"
        )
    if not folder.is_dir():
        raise ConfigError(f"{what}: {folder} is a file, not a folder", hint="choose a folder")
    if place.exists() and not place.is_file():
        raise ConfigError(f"{what} is no file that can be replaced", hint="choose another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{what}: nothing can be written in {folder}", hint=_WRITABLE)
    return place
