"""One run's view of a Prometheus: its label matchers, and the configuration's service names."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from rolltop.catalogue.aliases import canonical_labels
from rolltop.errors import RolltopError
from rolltop.model.series import Series

if TYPE_CHECKING:
    from collections.abc import Sequence


class SeriesSource(Protocol):
    """What is asked of a Prometheus; ``rolltop.prometheus.query.Prometheus`` is one."""

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        """Return the value of each series at a time, or its samples for a range selector."""
        ...

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """Return the values of each series over time."""
        ...


@dataclass(frozen=True)
class Window:
    """The time that a report looks at, unix seconds.

    ``first_rollout_s`` and ``last_rollout_s`` are the start of the first rollout and the end of
    the last, where they are known; the window around them holds every scrape.
    """

    start_s: float
    end_s: float
    first_rollout_s: float | None = None
    last_rollout_s: float | None = None

    @property
    def range_s(self) -> float:
        """The length in seconds, at least one."""
        return max(1.0, self.end_s - self.start_s)

    def whole_steps(self, step_s: float) -> Window:
        """Return the window from the first time on that lies whole steps before its end.

        What a run has come to stands at its end, which a last step must not stop short of.
        """
        steps = math.floor((self.end_s - self.start_s) / step_s)
        return replace(self, start_s=self.end_s - max(0, steps) * step_s)


class RunReader:
    """Queries of one run. ``$run`` in a query stands for the run's label matchers."""

    def __init__(self, source: SeriesSource, run_uuid: str) -> None:
        self._source = source
        self.selector = f'run_uuid="{run_uuid}"' if run_uuid else ""

    @classmethod
    def detect(cls, source: SeriesSource, run_uuid: str, window: Window) -> RunReader:
        """Return a reader of the run, or of everything where no target has the run's label.

        A Prometheus of one run needs no label to tell it from others, and some have none.
        """
        reader = cls(source, run_uuid)
        look_back = f"[{int(window.range_s) + 1}s]"
        try:
            if run_uuid and not reader.instant(f"count_over_time(up{{$run}}{look_back})", window):
                return cls(source, "")
        except RolltopError:
            return reader
        return reader

    def resolve(self, promql: str) -> str:
        """Return the query with the run's label matchers in it."""
        text = promql if self.selector else promql.replace(",$run", "")
        return text.replace("$run", self.selector)

    def instant(self, promql: str, window: Window, *, at_s: float | None = None) -> list[Series]:
        """Return the series at ``at_s``, by default the end of the window.

        Raises:
            RolltopError: Prometheus did not answer, or refused the query.
        """
        at = window.end_s if at_s is None else at_s
        return _canonical(self._source.query(self.resolve(promql), at))

    def over(self, promql: str, window: Window, step_s: float) -> list[Series]:
        """Return the series over the window, every ``step_s`` seconds.

        Raises:
            RolltopError: Prometheus did not answer, or refused the query.
        """
        answer = self._source.query_range(
            self.resolve(promql), window.start_s, window.end_s, step_s
        )
        return _canonical(answer)


def _canonical(series: Sequence[Series]) -> list[Series]:
    """Return the series with the configuration's names of services."""
    return [Series(canonical_labels(s.labels), s.t_s, s.values) for s in series]
