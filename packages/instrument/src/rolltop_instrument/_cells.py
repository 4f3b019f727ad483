"""Where values live: plain lists, one per series, and the page that is joined from them.

A scalar's cell is ``[value]``. A histogram's is ``[n_0, ..., n_inf, sum]``: observations per bucket
(not cumulative) and their sum. Several threads write; what is added to is added to under one lock:
the worker's own events under the worker's, what calls leave under that of the adding up. What is
read off is set under ``Registry.refresh``, calls in flight by the loop's thread alone. Any thread
may read, since copying a list is one step for the interpreter.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from rolltop_instrument._guest import fault
from rolltop_instrument.names import WORKER_LABEL, Metric

Cell = list[float]

LONGEST_S = 1e8
"""Three years: what says more is no time."""


def label_text(value: object) -> str:
    """What a label says: any text that UTF-8 can carry, whatever the host gave."""
    return str(value).encode("utf-8", "replace").decode()


def escape_label(value: str) -> str:
    """Escape a label value as both text formats want it."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def format_value(value: float) -> str:
    """Format a sample: whole numbers without a fraction, infinities as the formats spell them."""
    if type(value) is int:
        return str(value)
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    return "NaN" if value != value else repr(float(value))  # noqa: PLR0124


def observe(cell: Cell, bounds: tuple[float, ...], value: float) -> None:
    """Count ``value`` into a histogram's cell; what no duration or size can be is left out.

    A sum that is infinite, or so large that nothing adds to it, stays so for ever.
    """
    if 0 <= value <= LONGEST_S:
        cell[bisect_left(bounds, value)] += 1
        cell[-1] += value


class _Lines:
    """The lines of one series, made anew only when its cell has changed."""

    __slots__ = ("_cell", "_made", "_template")

    def __init__(self, cell: Cell, template: str) -> None:
        self._cell = cell
        self._template = template
        self._made: tuple[Cell, str] = ([], "")

    def text(self) -> str:
        """The lines as of now; two readers may come at once."""
        made_of, text = self._made
        cell = self._cell[:]
        if cell != made_of:
            text = self._template % _values(cell)
            self._made = cell, text
        return text


def _values(cell: Cell) -> tuple[object, ...]:
    """What is filled into a template: a value, or cumulative counts, their total and the sum."""
    if len(cell) == 1:
        return (format_value(cell[0]),)
    counts = tuple(accumulate(cell[:-1]))
    return (*counts, counts[-1], format_value(cell[-1]))


class Family:
    """The series of one metric in one worker."""

    def __init__(self, metric: Metric, worker_id: str) -> None:
        self.metric = metric
        self._worker_id = label_text(worker_id)
        self._cells: dict[tuple[str, ...], Cell] = {}
        self._series: list[_Lines] = []

    def cell(self, *values: str) -> Cell:
        """The cell of the series with these label values; it begins at 0 when it is new.

        Raises:
            ValueError: The number of values is not the number of the metric's labels.
        """
        found = self._cells.get(values)
        return self._new_cell(values) if found is None else found

    def _new_cell(self, values: tuple[str, ...]) -> Cell:
        """Make a series; where two threads make the same one, both get the first one's cell."""
        if len(values) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has labels {self.metric.labels}, not {values}")
        values = tuple(map(label_text, values))
        made: Cell = [0] * (len(self.metric.buckets) + 1)
        if self.metric.kind == "histogram":
            made.append(0.0)
        lines = _Lines(made, self._template(values))
        cell = self._cells.setdefault(values, made)
        if cell is made:
            self._series.append(lines)
        return cell

    def clear(self) -> None:
        """Have no series any more."""
        self._cells.clear()
        self._series.clear()

    def _template(self, values: tuple[str, ...]) -> str:
        """The series' lines with a place for each value: filling it in is one step."""
        name = self.metric.name
        pairs = [(WORKER_LABEL, self._worker_id), *zip(self.metric.labels, values, strict=True)]
        labels = ",".join(f'{key}="{escape_label(value)}"' for key, value in pairs)
        labels = labels.replace("%", "%%")
        if self.metric.kind != "histogram":
            return f"{name}{{{labels}}} %s\n"
        bounds = [*map(repr, self.metric.buckets), "+Inf"]
        buckets = "".join(f'{name}_bucket{{{labels},le="{bound}"}} %d\n' for bound in bounds)
        return f"{buckets}{name}_count{{{labels}}} %d\n{name}_sum{{{labels}}} %s\n"

    def header(self, openmetrics: bool) -> str:
        """The lines that introduce the family."""
        metric = self.metric
        name = metric.family if openmetrics else metric.name
        unit = f"# UNIT {name} {metric.unit}\n" if openmetrics and metric.unit else ""
        return f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n{unit}"

    def lines(self) -> str:
        """The family's samples; "" while there are none."""
        return "".join([series.text() for series in list(self._series)])

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Name, labels and value of each sample, histograms cumulative."""
        for values, cell in list(self._cells.items()):
            labels = dict(
                zip((WORKER_LABEL, *self.metric.labels), (self._worker_id, *values), strict=True)
            )
            if self.metric.kind != "histogram":
                yield self.metric.name, labels, cell[0]
                continue
            counts = cell[:]
            bounds = [*map(repr, self.metric.buckets), "+Inf"]
            for bound, total in zip(bounds, accumulate(counts[:-1]), strict=True):
                yield f"{self.metric.name}_bucket", {**labels, "le": bound}, total
            yield f"{self.metric.name}_count", labels, sum(counts[:-1])
            yield f"{self.metric.name}_sum", labels, counts[-1]

    def __len__(self) -> int:
        """How many samples the family puts on the page."""
        samples = len(self.metric.buckets) + 3 if self.metric.kind == "histogram" else 1
        return samples * len(self._series)


class Registry:
    """All families of one worker. Nothing of the host's own metrics is touched."""

    def __init__(self, metrics: tuple[Metric, ...], worker_id: str) -> None:
        self.families: Mapping[str, Family] = {m.name: Family(m, worker_id) for m in metrics}
        self._refreshers: list[Callable[[], None]] = []
        self._refreshing = threading.RLock()

    def family(self, metric: Metric) -> Family:
        """The family of ``metric``."""
        return self.families[metric.name]

    def cell(self, metric: Metric, *values: str) -> Cell:
        """The cell of one series of ``metric``."""
        return self.families[metric.name].cell(*values)

    def before_render(self, refresh: Callable[[], None]) -> None:
        """Call ``refresh`` before each page, on the thread that makes it, to bring its values."""
        self._refreshers.append(refresh)

    def clear_in_child(self) -> None:
        """In the child of a fork: have no series, and no lock that nobody releases."""
        self._refreshing = threading.RLock()
        for family in self.families.values():
            family.clear()

    def refresh(self) -> None:
        """Bring the values that are read off only when somebody looks; for one reader at a time."""
        with self._refreshing:
            for refresh in self._refreshers:
                try:
                    refresh()
                except Exception as problem:  # noqa: BLE001 - one value less, not the whole page
                    fault("refreshing the page", problem)

    def chunks(self, *, openmetrics: bool = False) -> Iterator[str]:
        """The page in pieces of one family each, so that the renderer can pause between them."""
        self.refresh()
        for family in self.families.values():
            lines = family.lines()
            if lines:
                yield family.header(openmetrics) + lines
        if openmetrics:
            yield "# EOF\n"

    def render(self, *, openmetrics: bool = False) -> str:
        """The whole page as text."""
        return "".join(self.chunks(openmetrics=openmetrics))

    def __len__(self) -> int:
        """How many samples the page has."""
        return sum(len(family) for family in self.families.values())
