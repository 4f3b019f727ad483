"""Find a Prometheus that can be used, and say how it is to be started.

The order: ``ROLLTOP_PROMETHEUS``, ``prometheus`` on the PATH, the user's cache
(:mod:`rolltop.prometheus.install` fills it). Builds differ in their flags (Debian's locks its
database only on request, upstream's always), so that flags are read from ``--help`` and never
assumed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rolltop.errors import DependencyError
from rolltop.prometheus.places import debian_dir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import RawIOBase

MINIMUM_VERSION = (2, 31, 0)
VARIABLE = "ROLLTOP_PROMETHEUS"
PROBE_TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 1024 * 1024
_PROBE_TURN_S = 0.01
HOW_TO_DOWNLOAD = (
    "download a release for your machine from https://prometheus.io/download, unpack it "
    f"and set {VARIABLE} to the path of its `prometheus`"
)

_VERSION = re.compile(
    r"^(?P<program>prometheus|promtool), version "
    r"(?P<text>v?(?P<numbers>\d{1,9}\.\d{1,9}\.\d{1,9})\S*)"
)
_FLAG = re.compile(r"^ {1,8}(?:-\w, )?--(?:\[no-\])?(?P<name>[a-z][a-z0-9.-]*)", re.MULTILINE)
_GLIBC = re.compile(r"version [`'](?P<name>GLIBC_[\d.]+)'? not found")
_DEBIAN_ASSETS = Path("usr/share/prometheus/web")
_GRAPH_PAGE = Path("templates/graph.html")


class Source(StrEnum):
    """Where a binary was found."""

    VARIABLE = VARIABLE
    PATH = "PATH"
    CACHE = "cache"


@dataclass(frozen=True, order=True)
class Version:
    """A version of Prometheus: ``numbers`` compare, ``text`` is what the program says of itself."""

    numbers: tuple[int, int, int]
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Binary:
    """A Prometheus that was asked for its version and its flags.

    Attributes:
        path: The server's binary, absolute.
        version: What it says of itself.
        flags: Long flags that it knows, without their dashes.
        source: Where it was found.
        promtool: The checker beside it or on the PATH, None where there is none.
        assets: The folder with the files of its pages where the build does not carry them inside
            (Debian's); None where it carries them, or where they are missing.
    """

    path: Path
    version: Version
    flags: frozenset[str]
    source: Source
    promtool: Path | None = None
    assets: Path | None = None

    @property
    def flavour(self) -> str:
        """Return ``debian`` for a build that reads its pages from files, else ``upstream``."""
        return "debian" if "web.local-assets" in self.flags else "upstream"

    @property
    def has_pages(self) -> bool:
        """Whether its web pages work."""
        return self.flavour == "upstream" or self.assets is not None

    def command(
        self, *, config: Path, data: Path, port: int, host: str = "127.0.0.1"
    ) -> tuple[str, ...]:
        """Return the arguments that start it.

        Data are never deleted (the default would after 15 days), the database is locked against a
        second server, and no page of another origin may read it through the user's browser.

        Args:
            config: Its ``prometheus.yml``.
            data: The folder of its database, created by it if absent.
            port: The port to listen on.
            host: The address to listen on; loopback unless somebody else must read it.
        """
        arguments = [
            str(self.path),
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={host}:{port}",
            "--web.cors.origin=^$",
        ]
        if "storage.tsdb.use-lockfile" in self.flags:
            arguments.append("--storage.tsdb.use-lockfile")
        if "web.local-assets" in self.flags and self.assets is not None:
            arguments.append(f"--web.local-assets={self.assets}")
        return tuple(arguments)


def parse_version(text: str, program: str = "prometheus") -> Version | None:
    """Return the version in the answer to ``--version``, None if it is another program's."""
    for line in text.splitlines():
        found = _VERSION.match(line.strip())
        if found and found["program"] == program:
            major, minor, patch = (int(part) for part in found["numbers"].split("."))
            return Version((major, minor, patch), found["text"].removeprefix("v"))
    return None


def parse_flags(text: str) -> frozenset[str]:
    """Return the long flags in the answer to ``--help``, not those that explanations name."""
    return frozenset(found["name"] for found in _FLAG.finditer(text))


def inspect(path: Path, source: Source, env: Mapping[str, str] | None = None) -> Binary:
    """Ask a binary for its version and flags.

    Args:
        path: The binary.
        source: Where it was found.
        env: The environment, whose PATH may hold a promtool; ``os.environ`` by default.

    Raises:
        DependencyError: It is missing, is not Prometheus, cannot run here, or is older than 2.31.
    """
    place = f"{path} ({source})" if source is not Source.CACHE else str(path)
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise DependencyError(f"{place} {kind}: it must be a Prometheus binary", hint=_cure(source))
    path = path.absolute()
    version = parse_version(_ask(path, "--version", place, source))
    if version is None:
        raise DependencyError(f"{place} is not Prometheus, by its --version", hint=_cure(source))
    if version.numbers < MINIMUM_VERSION:
        least = ".".join(str(part) for part in MINIMUM_VERSION[:2])
        raise DependencyError(
            f"{place} is Prometheus {version}: {least} or newer is needed", hint=_cure(source)
        )
    flags = parse_flags(_ask(path, "--help", place, source))
    assets = _find_assets(path) if "web.local-assets" in flags else None
    return Binary(path, version, flags, source, _find_promtool(path, env), assets)


def tool_version(promtool: Path) -> str | None:
    """Return what a promtool says of its version, None if it says nothing of use."""
    try:
        version = parse_version(_ask(promtool, "--version", str(promtool), Source.PATH), "promtool")
    except DependencyError:
        return None
    return str(version) if version else None


def find_prometheus(env: Mapping[str, str] | None = None) -> Binary:
    """Return the Prometheus to use.

    One that the user named must be usable; one on the PATH that is not (too old, broken) is passed
    over for the cache's, and is named if there is none there.

    Args:
        env: The environment, ``os.environ`` by default.

    Raises:
        DependencyError: There is none that can be used.
    """
    env = os.environ if env is None else env
    named = env.get(VARIABLE, "")
    if named:
        return inspect(Path(named).expanduser(), Source.VARIABLE, env)
    reasons = []
    on_path = shutil.which("prometheus", path=env.get("PATH", os.defpath))
    if on_path:
        try:
            return inspect(Path(on_path), Source.PATH, env)
        except DependencyError as error:
            reasons.append(error.message)
    for path in cached_binaries(env):
        try:
            return inspect(path, Source.CACHE, env)
        except DependencyError as error:
            reasons.append(error.message)
    found = "; ".join(reasons) or f"not in {VARIABLE}, on the PATH or in {debian_dir(env)}"
    raise DependencyError(f"no Prometheus that can be used: {found}", hint=_cure(Source.CACHE))


def cached_binaries(env: Mapping[str, str] | None = None) -> list[Path]:
    """Return the Prometheus binaries in the user's cache, the newest first; none was run."""
    found = debian_dir(env).glob("prometheus-*/usr/bin/prometheus")
    return sorted(found, key=lambda path: _natural(path.parents[2].name), reverse=True)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts ``2.53`` after ``2.9``."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", name)]


def _find_promtool(prometheus: Path, env: Mapping[str, str] | None) -> Path | None:
    beside = prometheus.resolve().with_name("promtool")
    if os.access(beside, os.X_OK):
        return beside
    env = os.environ if env is None else env
    on_path = shutil.which("promtool", path=env.get("PATH", os.defpath))
    return Path(on_path) if on_path else None


def _find_assets(prometheus: Path) -> Path | None:
    """Return the pages' files of ``<root>/usr/bin/prometheus``, if its libraries are there."""
    assets = prometheus.resolve().parent.parent.parent / _DEBIAN_ASSETS
    if not (assets / _GRAPH_PAGE).is_file():
        return None
    static = assets / "static"
    links = (entry for entry in static.iterdir() if entry.is_symlink()) if static.is_dir() else ()
    return None if any(not link.exists() for link in links) else assets


def _ask(path: Path, flag: str, place: str, source: Source) -> str:
    """Run ``path flag`` and return what it prints, on either stream."""
    try:
        text = _answer(path, flag).decode(errors="replace")
    except TimeoutError:
        reason = f"{place} gave no answer to {flag} within {PROBE_TIMEOUT_S:g} s"
        raise DependencyError(reason, hint=_cure(source)) from None
    except OSError as error:
        raise DependencyError(f"{place} {_why_not_run(error)}", hint=_cure(source)) from error
    missing = _GLIBC.search(text)
    if missing:
        reason = f"{place} needs {missing['name']}, which this system's C library lacks"
        hint = "use a build for this system (upstream's are static)"
        raise DependencyError(reason, hint=f"{hint}: {_cure(Source.VARIABLE)}")
    return text


def _answer(path: Path, flag: str) -> bytes:
    """Return what a program prints, and leave nothing of it behind.

    What was named may be any program, a wrapper that starts others too: all that stay in its
    process group end with it. One that makes a session of its own is out of reach.

    Raises:
        TimeoutError: It has not ended in time.
        OSError: It cannot be started.
    """
    with subprocess.Popen(
        [str(path), flag],
        bufsize=0,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as probe:
        try:
            return _read_until_its_end(probe)
        finally:  # it is not reaped yet, so that the number of its group is nobody else's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(probe.pid, signal.SIGKILL)


def _read_until_its_end(probe: subprocess.Popen[bytes]) -> bytes:
    """Read until the program ends; the pipe's end may never come, if others hold it open."""
    output = cast("RawIOBase", probe.stdout)
    os.set_blocking(output.fileno(), False)
    deadline = time.monotonic() + PROBE_TIMEOUT_S
    answer = b""
    while len(answer) < ANSWER_BYTES_MAX:
        ended = os.waitid(os.P_PID, probe.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        part = output.read(ANSWER_BYTES_MAX)
        if part:
            answer += part
        elif ended is not None:
            break
        elif time.monotonic() > deadline:
            raise TimeoutError
        else:
            time.sleep(_PROBE_TURN_S)
    return answer


def _why_not_run(error: OSError) -> str:
    if error.errno == errno.EACCES:
        return "may not be executed (no permission)"
    if error.errno == errno.ENOEXEC:
        return "is not a program for this machine"
    return f"cannot be executed: {error.strerror}"


def _cure(source: Source) -> str:
    if source is Source.VARIABLE:
        return f"{HOW_TO_DOWNLOAD}, or unset {VARIABLE}"
    return f"run `rolltop deps --install`, or {HOW_TO_DOWNLOAD}"
