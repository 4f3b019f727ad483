"""Workers' pages that never answered: whose they were, where they were expected, what helps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rolltop.catalogue.panel import WORKER
from rolltop.catalogue.panels.parts import NO_STEP
from rolltop.files import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rolltop.analysis.bottleneck import BottleneckFinding
    from rolltop.model.estimate import ThroughputEstimate
    from rolltop.report.evidence import ScrapeQuality

NO_PAGE = "no worker's page answered"
"""Why nothing is known that only the workers know."""
_EXPECTED = "'s page was expected at "
_CURE = "use WorkerTelemetry.from_environment(), or pass {metrics_port} to the worker"
_COMPLAINT = "no telemetry page at "
"""How the line begins that `rolltop_instrument` logs where a page could not be opened."""
_LOG_BYTES_MAX = 1 << 20
_SHOWN = 160


@dataclass(frozen=True)
class WorkerPage:
    """A page that a run expects: of which worker, and where that worker's log is."""

    process: str
    log: Path | None = None

    def complaint(self) -> str | None:
        """Return what the worker's log says of its page; None where it says nothing of it."""
        try:
            text = read_file(self.log, max_bytes=_LOG_BYTES_MAX) if self.log else b""
        except OSError:
            return None
        for line in text.decode(errors="replace").splitlines():
            _, found, said = line.partition(_COMPLAINT)
            if found:
                shown = "".join(c if c.isprintable() else "?" for c in found + said)
                return shown[:_SHOWN]
        return None


def silent_pages(
    scrapes: ScrapeQuality, pages: Mapping[str, WorkerPage] | None = None
) -> dict[str, str]:
    """Return the addresses of workers' pages that never answered, each with what is to be said.

    Args:
        scrapes: Who answered.
        pages: Address -> whose page was expected there, where that is known.
    """
    known = pages or {}
    found = {address: known.get(address) for job, address in scrapes.silent if job == WORKER.job}
    order = {address: number for number, address in enumerate(known)}
    return {
        address: _reason(address, found[address])
        for address in sorted(found, key=lambda each: order.get(each, len(order)))
    }


def _reason(address: str, page: WorkerPage | None) -> str:
    name = page.process if page else "a worker"
    text = f"{name}{_EXPECTED}{address} and nothing of this run answered there"
    said = page.complaint() if page else None
    if said is None:
        return f"{text}: {_CURE}"
    cure = "" if address in said else f"; {_CURE}"
    return f'{text}: its log says "{said}"{cure}'


def told_of_pages(missing: Mapping[str, str]) -> list[str]:
    """Return what of all that is missing is said of single workers' pages."""
    return [reason for reason in missing.values() if _EXPECTED in reason.partition(":")[0]]


def in_one(reasons: Iterable[str]) -> str:
    """Return what is said of several pages at once: the first one's, and how many there are."""
    first, *others = reasons
    if not others:
        return first
    return f"{first} (and so for {len(others)} more worker{'s' if len(others) > 1 else ''})"


def without_pages(
    scrapes: ScrapeQuality, throughput: ThroughputEstimate, finding: BottleneckFinding
) -> tuple[ThroughputEstimate, BottleneckFinding]:
    """Return what is said where no page answered: whether a step was made is not known then."""
    if scrapes.jobs.get(WORKER.job) is not False:
        return throughput, finding
    if throughput.reason == NO_STEP:
        throughput = replace(throughput, reason=NO_PAGE)
    if finding.reason == NO_STEP:
        finding = replace(finding, reason=NO_PAGE)
    return throughput, finding
