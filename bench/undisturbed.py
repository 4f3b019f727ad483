"""Figures of a machine that others use too: what else it does only ever adds.

So the rounds that took least count. They are chosen by all that they took, never by the difference
that is measured. Beside a run, which is disturbed itself, such a difference is too small: there
only its ratio to the bare figure holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SHARE = 0.2
"""Of the rounds, those that took least."""


def difference(full: Sequence[float], bare: Sequence[float]) -> tuple[float, float]:
    """Medians of ``full - bare`` and of ``bare``, over the pairs of rounds that took least."""
    pairs = sorted(zip(full, bare, strict=True), key=sum)
    kept = pairs[: max(1, round(len(pairs) * SHARE))]
    return statistics.median(a - b for a, b in kept), statistics.median(b for _, b in kept)
