"""Panels and their series: queried once, each for itself, so that one that fails harms no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rolltop.catalogue.panel import Kind
from rolltop.report.reader import RunReader, SeriesSource, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rolltop.catalogue.panel import Panel, PanelQuery
    from rolltop.model.series import Series

THREADS = 4
POINTS = 300
"""Points over time that a panel can show."""
WINDOW_SCRAPES = 5
"""Scrape intervals over which a slope is taken, at the least."""
CALM_S = 10.0
CALM_SHARE = 1 / 12
"""A slope is taken over ten seconds, in which chance evens out, but over no more of a short run."""
TOO_LARGE = 1e30
"""A value from which on it is no measurement."""


@dataclass(frozen=True, eq=False)
class PanelLine:
    """One series of a panel, (n,) each; a bar has one value. ``colour_key`` names what it is of."""

    legend: str
    colour_key: str
    t_s: NDArray[np.float64] = field(repr=False)
    values: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class PanelData:
    """A panel with its series, or without any and with the reason."""

    panel: Panel
    lines: tuple[PanelLine, ...] = ()
    reason: str | None = None
    failed: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.lines


@dataclass(frozen=True)
class Resolution:
    """``step_s`` between points and ``window_s`` over which a slope is taken, in seconds."""

    step_s: float
    window_s: float

    @classmethod
    def of(cls, window: Window, scrape_interval_s: float) -> Resolution:
        """Return what suits a run of this length, scraped at this interval."""
        step = max(scrape_interval_s, window.range_s / POINTS)
        calm = min(CALM_S, CALM_SHARE * window.range_s)
        return cls(step, max(WINDOW_SCRAPES * scrape_interval_s, 2 * step, calm))

    def for_interval(self, scrape_interval_s: float) -> Resolution:
        """Return one whose window holds enough samples of what is scraped at this interval."""
        return Resolution(self.step_s, max(self.window_s, WINDOW_SCRAPES * scrape_interval_s))


def collect_panels(
    prometheus: SeriesSource | RunReader,
    panels: Sequence[Panel],
    start_s: float,
    end_s: float,
    step_s: float,
    *,
    run_uuid: str = "",
    window_s: float | None = None,
    jobs: Mapping[str, bool] | None = None,
    intervals_s: Mapping[str, float] | None = None,
    silent: Mapping[str, str] | None = None,
) -> list[PanelData]:
    """Return the panels with their series, in the order given.

    Args:
        prometheus: what to ask.
        panels: what to ask for.
        start_s: begin, unix seconds.
        end_s: end, unix seconds.
        step_s: seconds between points.
        run_uuid: the run; empty: everything that Prometheus has.
        window_s: seconds over which a slope is taken; by default what suits ``step_s``.
        jobs: job of the targets -> whether any of them ever answered; None: not known.
        intervals_s: job of the targets -> seconds between two scrapes, where known.
        silent: job of the targets -> why none of them answered, where more is known.
    """
    window = Window(start_s, end_s)
    reader = prometheus if isinstance(prometheus, RunReader) else RunReader(prometheus, run_uuid)
    usual = Resolution(step_s, window_s or WINDOW_SCRAPES * step_s)
    intervals, why_silent = intervals_s or {}, silent or {}

    def collect(panel: Panel) -> PanelData:
        absent = _source_reason(panel, jobs, why_silent)
        if absent:
            return PanelData(panel, reason=absent)
        interval = intervals.get(panel.source.job, 0.0)
        return _collect(reader, panel, window, usual.for_interval(interval))

    with ThreadPoolExecutor(THREADS, thread_name_prefix="panel") as pool:
        return list(pool.map(collect, panels))


def _collect(reader: RunReader, panel: Panel, window: Window, resolution: Resolution) -> PanelData:
    """Return one panel; whatever a query raises becomes the panel's reason."""
    lines: list[PanelLine] = []
    try:
        for query in panel.queries:
            lines += _lines(reader, panel, query, window, resolution)
    except Exception as error:  # noqa: BLE001 - one panel's fault must not cost the others
        return PanelData(panel, reason=f"the query failed: {error}", failed=True)
    if not lines:
        names = ", ".join(panel.series)
        return PanelData(panel, reason=f"{panel.empty_reason} (no series {names})")
    return PanelData(panel, tuple(lines))


def _source_reason(
    panel: Panel, jobs: Mapping[str, bool] | None, silent: Mapping[str, str]
) -> str | None:
    """Return why the panel's source has nothing, or None where it answered."""
    source = panel.source
    if jobs is None or not source.job:
        return None
    if source.job not in jobs:
        return source.absence
    if not jobs[source.job]:
        never = f"the {source.title} never answered a scrape (job {source.job})"
        return silent.get(source.job, never)
    return None


def _lines(
    reader: RunReader, panel: Panel, query: PanelQuery, window: Window, resolution: Resolution
) -> list[PanelLine]:
    """Return the series of one query that have a value."""
    promql = query.render(
        selector=reader.selector, window_s=resolution.window_s, range_s=window.range_s
    )
    if panel.kind is Kind.BARS:
        answer = reader.instant(promql, window)
    else:
        answer = reader.over(promql, window.whole_steps(resolution.step_s), resolution.step_s)
    return [
        PanelLine(
            query.legend_of(s.labels), _colour_key(panel, query, s), s.t_s, only_finite(s.values)
        )
        for s in answer
        if np.isfinite(s.values).any()
    ]


def only_finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (n,) in which what cannot be drawn is NaN: a gap, as where there is none."""
    return np.where(np.isfinite(values) & (np.abs(values) < TOO_LARGE), values, np.nan)


def _colour_key(panel: Panel, query: PanelQuery, series: Series) -> str:
    """Return what picks the colour: the value of the panel's label, else the legend."""
    return series.labels.get(panel.colour_by) or query.legend_of(series.labels)
