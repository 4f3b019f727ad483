"""Why a process ended: from its exit and the end of its log to an outcome and a reason."""

from __future__ import annotations

import errno
import os
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.errors import LaunchError
from rolltop.model.run import ExitStatus, Failure, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

_PORT_TAKEN = re.compile(
    r"address already in use|EADDRINUSE|\berrno 98\b|failed to bind|no address added out of total",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ProcessExit:
    """How a process ended. ``requested``: we had asked it to, by a signal.

    ``cpu_s``: seconds of CPU that it and the descendants that it waited for have used.
    ``silent_s``: it was ended because it had not answered for so long, in seconds.
    Exactly one of ``status`` and ``signal`` is set, or ``not_started`` says why it never ran.
    """

    name: str
    pid: int | None = None
    status: int | None = None
    signal: int | None = None
    not_started: str | None = None
    requested: bool = False
    silent_s: float | None = None
    cpu_s: float | None = field(default=None, compare=False)

    @property
    def ok(self) -> bool:
        """Whether it ended of itself, with status 0."""
        return self.status == 0

    @property
    def exit_status(self) -> int | None:
        """The status as a shell gives it, 128 + n for signal n; None where it never ran."""
        return self.status if self.signal is None else 128 + self.signal

    def describe(self) -> str:
        """Return how it ended, as the end of a sentence that its name begins."""
        if self.not_started is not None:
            return f"could not start: {self.not_started}"
        if self.silent_s is not None:
            return f"did not answer for {self.silent_s:g} s, and was killed for it"
        if self.signal is not None:
            return f"was killed by {signal_name(self.signal)}"
        return f"ended with exit status {self.status}"


class ProcessFailedError(LaunchError):
    """A process could not start, died, or never got ready; ``failure`` is for ``summary.json``.

    ``port_taken``: its log says that it could not bind its port; another one may do.
    """

    def __init__(self, failure: Failure, *, outcome: Outcome = Outcome.FAILED) -> None:
        hint = "\n".join(["its last log lines:", *failure.log_tail]) if failure.log_tail else None
        super().__init__(f"{failure.process} {failure.reason}", hint=hint)
        self.failure = failure
        self.outcome = outcome
        self.port_taken = any(_PORT_TAKEN.search(line) for line in failure.log_tail)
        if outcome is Outcome.OUT_OF_MEMORY:
            self.exit_status = int(ExitStatus.OUT_OF_MEMORY)


class OomWatch:
    """Whether the kernel has killed for memory on this node since the watch began.

    Source: ``oom_kill`` of ``/proc/vmstat``, which counts those of memory cgroups too.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._vmstat = proc / "vmstat"
        self._before = self._count()

    def rose(self) -> bool:
        """Return whether there was one; False where the kernel does not say."""
        now = self._count()
        return self._before is not None and now is not None and now > self._before

    def _count(self) -> int | None:
        try:
            text = self._vmstat.read_text()
        except OSError:
            return None
        found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else None


def signal_name(signum: int) -> str:
    """Return a signal's name with its number, ``SIGKILL (9)``."""
    try:
        return f"{signal.Signals(signum).name} ({signum})"
    except ValueError:
        return f"signal {signum}"


def diagnose(
    ended: ProcessExit,
    log_tail: Sequence[str],
    *,
    oom_patterns: Sequence[str] = (),
    oom_seen: bool = False,
) -> tuple[Outcome, Failure]:
    """Return what the end of a process means for the run.

    Out of memory is what its log says (``oom_patterns``: regular expressions, or plain text),
    or a SIGKILL that was not ours while the kernel killed for memory (``oom_seen``, from
    :class:`OomWatch`). A SIGKILL alone proves nothing: the reason then says what it may mean.
    """
    line = _first_match(oom_patterns, log_tail)
    ours = ended.requested or ended.silent_s is not None
    killed = ended.signal == signal.SIGKILL and not ours
    reason = ended.describe()
    outcome = Outcome.FAILED
    if line is not None and not ended.ok:
        outcome = Outcome.OUT_OF_MEMORY
        reason += f"; it was out of memory, its log says: {line}"
    elif killed and oom_seen:
        outcome = Outcome.OUT_OF_MEMORY
        reason += "; the kernel ended a process of this node for want of memory at that time"
    elif killed:
        reason += "; if nobody sent that signal, the node ran out of memory"
    return outcome, Failure(ended.name, ended.exit_status, reason, tuple(log_tail))


def _first_match(patterns: Sequence[str], lines: Sequence[str]) -> str | None:
    for pattern in patterns:
        try:
            search = re.compile(pattern, re.IGNORECASE).search
        except re.error:
            search = re.compile(re.escape(pattern), re.IGNORECASE).search
        for line in lines:
            if search(line):
                return line
    return None


def why_not_started(stage: str, number: int, argv: Sequence[str], cwd: str, log: str) -> str:
    """Return why the guard could not start a program: ``stage`` fork, log, cwd or exec."""
    said = os.strerror(number)
    if stage == "log":
        return f"its log {log} cannot be opened: {said}"
    if stage == "cwd":
        return f"its working directory {cwd} cannot be entered: {said}"
    if stage == "fork":
        return f"the system starts no further process: {said}"
    program = argv[0] if argv else ""
    if number == errno.ENOENT and "/" not in program:
        return f"there is no program {program!r} on the PATH"
    if number == errno.ENOENT and Path(cwd, program).exists():
        return f"the interpreter that {program} names in its first line does not exist"
    return f"{program}: {said}"
