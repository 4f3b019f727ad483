"""Fetch Debian packages and unpack them in a folder, without root and without installing them.

apt runs on a private state (package lists, cache) that is thrown away afterwards, and reads the
system's sources, keys, proxies and credentials. So it works for an ordinary user and where the
system's own lists are missing or stale. Nothing is installed: no maintainer script runs and no
daemon starts.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rolltop.errors import DependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COMMAND_TIMEOUT_S = 300.0
_STAGING = ".unpacking-"
_TOOLS = ("apt-get", "apt-cache", "dpkg-deb", "tar")
_STANZA = re.compile(r"^(Package|Version): *(\S+)", re.MULTILINE)
_LOG_LINES = 3
_ROOM = (
    "free some space, or set ROLLTOP_CACHE_DIR to a folder that has it and that you may write to"
)


@dataclass(frozen=True)
class Apt:
    """A private state of apt below ``root``, a folder that its user made and removes."""

    root: Path

    def update(self) -> str:
        """Fetch the package lists; return what went wrong, empty where nothing did.

        A source that does not answer is no error here: the others may have what is needed.
        """
        for part in ("state", "lists/partial", "cache/archives/partial"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        (self.root / "apt.conf").write_text(render_apt_conf(self.root, user=_user_name()))
        done = self._run("apt-get", "-q", "update")
        return "" if done.returncode == 0 else _complaints(done)

    def versions(self, packages: Sequence[str]) -> dict[str, str]:
        """Return the candidate versions of those of the packages that the sources have."""
        done = self._run("apt-cache", "show", "--no-all-versions", *packages)
        return parse_versions(done.stdout.decode(errors="replace"))

    def download(self, packages: Sequence[str], into: Path) -> list[Path]:
        """Fetch packages into a folder and return their files.

        Raises:
            DependencyError: One of them could not be had.
        """
        done = self._run("apt-get", "-q", "download", *packages, cwd=into)
        if done.returncode != 0:
            raise DependencyError(f"apt-get download {' '.join(packages)}: {_complaints(done)}")
        return sorted(into.glob("*.deb"))

    def _run(
        self, program: str, *arguments: str, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        command = [program, "-c", str(self.root / "apt.conf"), *arguments]
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        environment.pop("APT_CONFIG", None)
        return _run(command, cwd=cwd or self.root, env=environment)


def render_apt_conf(root: Path, user: str) -> str:
    """Return an apt.conf that keeps apt's state below ``root``.

    apt reads it after the system's own configuration, whose hooks after an update (which would work
    on the system's state) it drops.

    Args:
        root: The folder of the private state.
        user: Who runs apt; apt run by root would otherwise become a user that may not write below
            ``root``.
    """
    options = {
        "Dir::State": root / "state",
        "Dir::State::lists": root / "lists",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": root / "cache",
        "APT::Sandbox::User": user,
        "Acquire::Languages": "none",
        "Acquire::Retries": 2,
        "Acquire::http::Timeout": 30,
        "Acquire::https::Timeout": 30,
        "DPkg::Lock::Timeout": 300,
    }
    lines = [f'{name} "{value}";' for name, value in options.items()]
    return "\n".join([*lines, "#clear APT::Update;", "#clear DPkg::Post-Invoke;", ""])


def parse_versions(text: str) -> dict[str, str]:
    """Return package -> version of the stanzas of ``apt-cache show``; the first one counts."""
    versions: dict[str, str] = {}
    package = ""
    for field, value in _STANZA.findall(text):
        if field == "Package":
            package = value
        elif package:
            versions.setdefault(package, value)
    return versions


def unpack_debian(
    packages: Sequence[str],
    into: Path,
    *,
    optional: Sequence[str] = (),
    exclude: Sequence[str] = (),
    room_bytes: int = 0,
    check: Callable[[Path], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Unpack Debian packages into ``<into>/<first package>-<its version>``; return that folder.

    The folder appears whole or not at all: it is made beside its place and renamed, and one at a
    time works on ``into``. A folder of that version that passes ``check`` is returned as it is; one
    that does not is replaced.

    Args:
        packages: What is needed; the first names the folder.
        into: Where the folder is made, itself made if absent.
        optional: What is unpacked as well where the sources have it.
        exclude: Patterns of tar of what is left out, such as ``./usr/share/doc``.
        room_bytes: What all this takes on the disk; asked for before, since apt can hang on a full
            disk.
        check: Raises a DependencyError if the unpacked folder is of no use.
        progress: Told in a few words what is being done.

    Raises:
        DependencyError: There is no apt here, a package cannot be had, or it cannot be unpacked.
    """
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise DependencyError(f"this system has no {missing[0]}: Debian's packages cannot be used")
    try:
        with _staging(into, progress) as staging:
            _require_room(into, room_bytes)
            return _unpack(
                packages=packages,
                into=into,
                staging=staging,
                optional=optional,
                exclude=exclude,
                check=check,
                progress=progress,
            )
    except OSError as error:
        reason = error.strerror or str(error)
        raise DependencyError(
            f"cannot unpack {packages[0]} into {into}: {reason}",
            hint=_ROOM,
        ) from error


def _unpack(
    *,
    packages: Sequence[str],
    into: Path,
    staging: Path,
    optional: Sequence[str],
    exclude: Sequence[str],
    check: Callable[[Path], None],
    progress: Callable[[str], None],
) -> Path:
    apt = Apt(staging / "apt")
    progress("fetching the package lists")
    complaints = apt.update()
    versions = apt.versions([*packages, *optional])
    absent = [package for package in packages if package not in versions]
    if absent:
        because = f" ({complaints})" if complaints else ""
        raise DependencyError(f"the package sources of this system have no {absent[0]}{because}")
    place = into / f"{packages[0]}-{versions[packages[0]]}"
    if _passes(check, place):
        return place
    wanted = [package for package in (*packages, *optional) if package in versions]
    progress(f"downloading {packages[0]} {versions[packages[0]]} and what its pages need")
    debs = staging / "debs"
    debs.mkdir()
    files = apt.download(wanted, debs)
    progress(f"unpacking {len(files)} packages")
    root = staging / "root"
    root.mkdir(mode=0o755)
    for file in files:
        _extract(file, root, exclude)
    check(root)
    if place.exists():
        place.rename(staging / "replaced")
    root.rename(place)
    return place


def _passes(check: Callable[[Path], None], place: Path) -> bool:
    try:
        check(place)
    except DependencyError:
        return False
    return place.is_dir()


def _extract(deb: Path, root: Path, exclude: Sequence[str]) -> None:
    """Unpack one package without what is excluded, so that it never takes room on the disk."""
    patterns = [f"--exclude={pattern}" for pattern in exclude]
    unpack = ["tar", "-x", "-C", str(root), "--no-same-owner", *patterns]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        done = _run(unpack, cwd=root, stdin=reader.stdout)
        if reader.stdout is not None:
            reader.stdout.close()
        words = reader.stderr.read() if reader.stderr is not None else b""
    if done.returncode != 0 or reader.returncode != 0:
        reason = _complaints(done) if done.returncode != 0 else words.decode(errors="replace")
        raise DependencyError(
            f"cannot unpack {deb.name}: {reason.strip() or 'the package is damaged'}",
            hint=_ROOM,
        )


def _require_room(into: Path, room_bytes: int) -> None:
    free = shutil.disk_usage(into).free
    if free < room_bytes:
        raise DependencyError(
            f"{into} has {free / 1e6:.0f} MB left, {room_bytes / 1e6:.0f} MB are needed", hint=_ROOM
        )


@contextmanager
def _staging(into: Path, progress: Callable[[str], None]) -> Iterator[Path]:
    """Hold the lock of ``into`` and give a folder in it, which is removed afterwards.

    What an unpacking that was killed left behind is removed first: whoever holds the lock knows
    that nobody uses it.
    """
    into.mkdir(parents=True, exist_ok=True)
    with (into / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another unpacking to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in into.glob(f"{_STAGING}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=_STAGING, dir=into, ignore_cleanup_errors=True
        ) as staging:
            yield Path(staging)


def _run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            list(command),
            cwd=cwd,
            env=env,
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"{command[0]} did not end within {COMMAND_TIMEOUT_S:g} s"
        raise DependencyError(reason, hint="look at this system's package sources") from None


def _complaints(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the first errors that a program wrote, in one line."""
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines()]
    errors = [line for line in lines if line.startswith("E:")] or [line for line in lines if line]
    return "; ".join(errors[:_LOG_LINES]) or f"exit status {done.returncode}"


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "root"
