"""What rolltop needs that pip does not bring: what of it is here, and how to get the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.errors import DependencyError
from rolltop.prometheus.binary import HOW_TO_DOWNLOAD, Source, find_prometheus, tool_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rolltop.prometheus.binary import Binary


@dataclass(frozen=True)
class Dependency:
    """A program or what belongs to it.

    Attributes:
        name: What it is.
        purpose: What rolltop does with it.
        needed: Whether a run's telemetry needs it; the others make something more comfortable.
        found: Whether it is here.
        place: Where, None if it is not here or has no place of its own.
        source: By what it was found.
        version: What it says of itself.
        problem: Why what was found cannot be used; None where it can, or where nothing was found.
        cure: How to get it, None where it is here.
    """

    name: str
    purpose: str
    needed: bool
    found: bool
    place: str | None = None
    source: str | None = None
    version: str | None = None
    problem: str | None = None
    cure: str | None = None


def survey(env: Mapping[str, str] | None = None) -> list[Dependency]:
    """Return what is needed and what of it is here; nothing is installed.

    Args:
        env: The environment, ``os.environ`` by default.
    """
    binary: Binary | None = None
    problem = cure = None
    try:
        binary = find_prometheus(env)
    except DependencyError as error:
        problem, cure = error.message, error.hint
    return [_prometheus(binary, problem, cure), _promtool(binary), _pages(binary)]


def _prometheus(binary: Binary | None, problem: str | None, cure: str | None) -> Dependency:
    purpose = "stores a run's telemetry"
    if binary is None:
        return Dependency(
            "prometheus", purpose, needed=True, found=False, problem=problem, cure=cure
        )
    return Dependency(
        "prometheus",
        purpose,
        needed=True,
        found=True,
        place=str(binary.path),
        source=str(binary.source),
        version=str(binary.version),
    )


def _promtool(binary: Binary | None) -> Dependency:
    purpose = "checks rules and configurations by hand"
    if binary is None or binary.promtool is None:
        return Dependency(
            "promtool", purpose, needed=False, found=False, cure=_cure_of_a_part(binary)
        )
    return Dependency(
        "promtool",
        purpose,
        needed=False,
        found=True,
        place=str(binary.promtool),
        source=str(binary.source),
        version=tool_version(binary.promtool),
    )


def _pages(binary: Binary | None) -> Dependency:
    purpose = "web pages of `rolltop open`"
    if binary is None or not binary.has_pages:
        return Dependency("pages", purpose, needed=False, found=False, cure=_cure_of_a_part(binary))
    place = str(binary.assets) if binary.assets else None
    return Dependency(
        "pages",
        purpose,
        needed=False,
        found=True,
        place=place or str(binary.path),
        source=str(binary.source),
    )


def _cure_of_a_part(binary: Binary | None) -> str:
    """Return how to get what came with no Prometheus, or not with this one."""
    if binary is None or binary.source is Source.CACHE:
        return "run `rolltop deps --install`"
    if binary.flavour == "debian":
        return f"install what Debian's prometheus depends on, or {HOW_TO_DOWNLOAD}"
    return HOW_TO_DOWNLOAD
