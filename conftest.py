"""A test that did not run is no pass: what is skipped or expected to fail must be listed.

``tests/allowed_skips.txt`` has one line per such test: its node id, `` # `` and the reason.
Anything else that is skipped, fails as expected or passes against expectation fails the session.

``make test`` gives whole files to two or more processes of pytest; the longest files come first, so
that none is begun when all others are done.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

ALLOWED = Path("tests") / "allowed_skips.txt"

# Files and folders that take longest, the longest first.
LONGEST = (
    "tests/runs/test_failures.py",
    "tests/runs",
    "tests/lifecycle",
    "tests/launch",
    "packages/refsim/tests",
    "tests/config",
    "tests/report",
)

# No test times: a busy machine is no reason to fail.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def parse_allowed(lines: Iterable[str]) -> dict[str, str]:
    """Return node id -> reason.

    Raises:
        ValueError: a line has no reason.
    """
    allowed = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        node, mark, reason = line.partition(" # ")
        if not mark or not reason.strip():
            msg = f"{ALLOWED}: no reason given: {line.strip()!r}"
            raise ValueError(msg)
        allowed[node.strip()] = reason.strip()
    return allowed


class Refusal:
    """Collects what did not really run, and turns the session red at its end."""

    def __init__(self, allowed: dict[str, str]) -> None:
        self.allowed = allowed
        self.refused: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that was skipped, or whose failure was expected."""
        if report.skipped or hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that was skipped as a whole."""
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.nodeid not in self.allowed:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "as expected"
            self.refused[report.nodeid] = getattr(report, "wasxfail", "") or reason

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a session that would have passed without these tests."""
        if self.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests, above the closing line."""
        if not self.refused:
            return
        terminalreporter.section("did not run, and not listed in tests/allowed_skips.txt", red=True)
        for node, reason in sorted(self.refused.items()):
            terminalreporter.line(f"{node}: {reason}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first where several processes share the files; else the order stays."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _turn(item.nodeid))


def _turn(node: str) -> int:
    return next((at for at, path in enumerate(LONGEST) if node.startswith(path)), len(LONGEST))


def pytest_configure(config: pytest.Config) -> None:
    """Watch the whole session.

    A session that was started with SIGHUP ignored (nohup) would hand that on to every process that
    a test starts and hangs up on.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    path = config.rootpath / ALLOWED
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    config.pluginmanager.register(Refusal(parse_allowed(lines)), "refuse-skips")
