"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rolltop.model.run import RolloutCounts

_PLAIN_EVERY_S = 10.0


@dataclass(frozen=True)
class Pace:
    """What an estimate of the time left rests on: rollouts at once, and what each takes."""

    at_once: int
    each_s: float


@dataclass(frozen=True)
class RunStatus:
    """The state of a run at a moment.

    ``elapsed_s`` counts from the first worker's start; ``left_s`` is what :func:`time_left_s` says,
    from ``pace``.
    """

    counts: RolloutCounts
    elapsed_s: float
    left_s: float | None = None
    pace: Pace | None = None
    busiest: str | None = None
    busiest_queue: float | None = None

    @property
    def seconds_per_rollout(self) -> float | None:
        """Elapsed seconds over completed rollouts, None before the first."""
        return self.elapsed_s / self.counts.completed if self.counts.completed else None

    @property
    def over(self) -> bool:
        """Whether no rollout is left."""
        return self.counts.left == 0


def pace_of(latest_ends_s: Sequence[float], *, n_ended: int, at_once: int) -> Pace | None:
    """Return the pace of the rollouts that ended, None while none has; arguments as below."""
    if n_ended < 1 or not latest_ends_s:
        return None
    # Nothing is idle: the time that the slots spent on rollouts that ended is the sum of the
    # latest ends, as every earlier end is the start of a rollout that ended too.
    return Pace(at_once, sum(latest_ends_s) / n_ended)


def time_left_s(
    latest_ends_s: Sequence[float], *, n_ended: int, n_left: int, at_once: int, elapsed_s: float
) -> float | None:
    """Return the seconds until the last rollout ends, None while none has ended.

    Each slot takes the next rollout when its last one ends, and each rollout still to end takes
    as long as those that ended did in the mean. What a rollout takes beyond that is not known: the
    estimate stands still then. It never grows because time passes.

    Args:
        latest_ends_s: Ends of the latest rollouts to end, seconds from the first one's start,
            ascending: ``at_once`` of them, or all where fewer ended.
        n_ended: Rollouts that ended, however.
        n_left: Rollouts that have not ended.
        at_once: Slots: rollouts that go on together.
        elapsed_s: Now, seconds from the first rollout's start.
    """
    pace = pace_of(latest_ends_s, n_ended=n_ended, at_once=at_once)
    if pace is None:
        return None
    if n_left < 1:
        return 0.0
    under_way = min(n_left, at_once)
    mean_s = pace.each_s
    starts_s = [0.0] * (at_once - len(latest_ends_s)) + list(latest_ends_s)
    free_in_s = sorted(
        min(mean_s, max(0.0, start_s + mean_s - elapsed_s)) for start_s in starts_s[:under_way]
    )
    n_waiting = n_left - under_way
    if n_waiting == 0:
        return free_in_s[-1]
    rounds, slot = divmod(n_waiting - 1, under_way)
    return max(free_in_s[-1], free_in_s[slot] + (rounds + 1) * mean_s)


class ProgressView(Protocol):
    """Shows a run. None of its methods may raise: a terminal can go away at any moment."""

    def phase(self, text: str) -> None:
        """A new phase of the run begins."""

    def update(self, status: RunStatus) -> None:
        """The run has come on."""

    def note(self, text: str) -> None:
        """Something that a person should know, once."""

    def close(self) -> None:
        """Nothing more is shown."""


def describe(status: RunStatus) -> str:
    """Return the figures of a status in one line.

    The time left is not the rollouts left times the seconds per rollout so far, which has the start
    in it and those under way not: it stands beside what it is reckoned from.
    """
    counts = status.counts
    parts = [f"{counts.finished}/{counts.requested} rollouts"]
    if counts.finished == 0 and not status.over:
        parts.append("first rollouts under way")
    if counts.abandoned:
        parts.append(f"{counts.abandoned} abandoned")
    if status.seconds_per_rollout is not None:
        parts.append(f"{status.seconds_per_rollout:.1f} s/rollout")
    if status.busiest is not None and status.busiest_queue is not None and not status.over:
        parts.append(f"{status.busiest} queue {status.busiest_queue:.0f}")
    if status.left_s and not status.over:
        parts.append(f"about {format_duration(status.left_s)} left{_reckoned(status)}")
    return " · ".join(parts)


def _reckoned(status: RunStatus) -> str:
    """Return what the time left is reckoned from, in brackets."""
    if status.pace is None:
        return ""
    at_once = min(status.pace.at_once, status.counts.left)
    return f" ({at_once} at once, {_seconds(status.pace.each_s)} each)"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else format_duration(seconds)  # noqa: PLR2004


def format_duration(seconds: float) -> str:
    """Return ``seconds`` as ``42 s``, ``3:07`` or ``2:03:07``."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 (a minute)
        return f"{whole} s"
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


class TerminalProgress:
    """A bar that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,
            transient=True,
        )
        self._task: TaskID | None = None
        self._progress.start()

    def phase(self, text: str) -> None:
        """Show ``text`` before the bar."""
        if self._task is None:
            self._task = self._progress.add_task(text, total=None, figures="")
        else:
            self._progress.update(self._task, description=text)

    def update(self, status: RunStatus) -> None:
        """Move the bar."""
        if self._task is not None:
            self._progress.update(
                self._task,
                completed=status.counts.finished,
                total=status.counts.requested,
                figures=describe(status),
            )

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()


class PlainProgress:
    """Lines for a log: each phase, each note, and the figures every ten seconds and at the end."""

    def __init__(
        self, write: Callable[[str], object], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._monotonic = monotonic
        self._last_s = float("-inf")
        self._last_text = ""
        self._over = False

    def phase(self, text: str) -> None:
        """Write the phase as a line."""
        self._say(text)

    def update(self, status: RunStatus) -> None:
        """Write the figures if they are new and the last ones are old; the final ones once."""
        text = describe(status)
        due = self._monotonic() - self._last_s >= _PLAIN_EVERY_S
        if text != self._last_text and (due or status.over) and not self._over:
            self._over = status.over
            self._last_s, self._last_text = self._monotonic(), text
            self._say(text)

    def note(self, text: str) -> None:
        """Write the note as a line."""
        self._say(text)

    def close(self) -> None:
        """Nothing is left open."""

    def _say(self, text: str) -> None:
        self._write(text)


class LastingStream(io.TextIOBase):
    """Passes text on for as long as somebody is there to read it.

    A terminal that went away (EIO) or a closed pipe costs the lines, never the run.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO | None = stream
        self._is_terminal = stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether it was a terminal at first."""
        return self._is_terminal

    def writable(self) -> bool:
        """Return True: what cannot be written is dropped."""
        return True

    def write(self, text: str) -> int:
        """Pass ``text`` on, or drop it."""
        self._try(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, if there is still something to flush to."""
        self._try(lambda stream: stream.flush())

    def _try(self, action: Callable[[TextIO], object]) -> None:
        if self._stream is None:
            return
        try:
            action(self._stream)
        except (OSError, ValueError):
            self._stream = None


def make_progress(stream: TextIO) -> ProgressView:
    """Return the view that fits where it is shown: a terminal, or a log."""
    console = Console(file=cast(TextIO, LastingStream(stream)))
    if console.is_terminal:
        return TerminalProgress(console)
    return PlainProgress(
        lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
    )
