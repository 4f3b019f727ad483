"""Gets OSMesa without root: Debian's packages, downloaded by apt and unpacked into a folder.

Apt runs on a state of its own (lists, cache, status), so that it works for an ordinary user, with
empty system lists, and leaves the system as it is. Signatures and checksums are apt's business.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

PACKAGE = "libosmesa6"
_ON_EVERY_SYSTEM = frozenset({"libc6", "libgcc-s1", "libcrypt1"})
_APT_TIMEOUT_S = 300.0

Notify = Callable[[str], None]


class InstallError(RuntimeError):
    """The packages could not be had."""


def install(target: Path, notify: Notify) -> None:
    """Downloads OSMesa and what it needs, and unpacks it.

    Args:
        target: Folder that holds the libraries afterwards; what was there is replaced.
        notify: Told what is being done, a line each.

    Raises:
        InstallError: A tool is missing, or apt fails; the message carries its last line.
        OSError: The folder cannot be written.
    """
    for tool in ("apt-get", "dpkg", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise InstallError(f"{tool} is not on the PATH: this needs Debian or Ubuntu")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".gl-") as scratch:
        work = Path(scratch)
        options = _private_apt(work / "apt")
        notify("reading the package lists")
        _run(["apt-get", *options, "update"], work)
        names = _closure(_run(["apt-get", *options, "install", "--print-uris", PACKAGE], work))
        notify(f"downloading {len(names)} packages")
        downloads = work / "deb"
        downloads.mkdir()
        _run(["apt-get", *options, "download", *names], downloads)
        unpacked = work / "root"
        for package in sorted(downloads.glob("*.deb")):
            notify(f"unpacking {package.name.partition('_')[0]}")
            _run(["dpkg", "-x", str(package), str(unpacked)], work)
        shutil.rmtree(unpacked / "usr" / "share", ignore_errors=True)
        if target.exists():
            target.rename(work / "replaced")
        unpacked.rename(target)


def _private_apt(state: Path) -> list[str]:
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True)
    # An empty status counts nothing as installed: the folder then is complete in itself.
    status = state / "status"
    status.touch()
    settings = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": status,
        "Dir::Cache": state / "cache",
        "Dir::Log": state,
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false",
        "APT::Get::Assume-Yes": "true",
        "Debug::NoLocking": "true",
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]


def _closure(uris: str) -> list[str]:
    """Reads package names from ``apt-get install --print-uris``.

    Args:
        uris: Its output: lines of quoted address, file name, size and checksum.

    Returns:
        Names of the packages to download.
    """
    files = [line.split()[1] for line in uris.splitlines() if line.startswith("'")]
    names = {file.partition("_")[0] for file in files} - _ON_EVERY_SYSTEM
    return sorted(name for name in names if not name.endswith("-base"))


def _run(command: Sequence[str], cwd: Path) -> str:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_APT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"{command[0]} took longer than {_APT_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InstallError(f"{command[0]} ended with status {done.returncode}: {last[0]}")
    return done.stdout
