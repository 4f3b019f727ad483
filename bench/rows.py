"""The result of a bench: one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class BenchRow:
    """One measured figure and the bound that it has to keep.

    Attributes:
        bench: Name of the bench.
        value: What was measured.
        unit: Its unit, ``us`` or ``ms`` or ``ratio``.
        baseline: What it is compared with, measured in the same run; None if with nothing.
        ratio: ``value / baseline``.
        bound: What ``value`` may be at the most.
        holds: Whether it is.
    """

    bench: str
    value: float
    unit: str
    baseline: float | None
    ratio: float | None
    bound: float
    holds: bool

    @classmethod
    def at_most(
        cls, bench: str, value: float, unit: str, *, bound: float, baseline: float | None = None
    ) -> BenchRow:
        """A row whose value is to be at most ``bound``."""
        ratio = value / baseline if baseline else None
        return cls(bench, value, unit, baseline, ratio, bound, value <= bound)

    def to_json(self) -> str:
        """The row as one line, figures to four significant digits."""
        fields = {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in asdict(self).items()
        }
        return json.dumps(fields)
