"""Figures of a machine that others use too: what else it does only ever adds.

So of each kind of round the fifth that took least counts. The kinds are interleaved, so that what
disturbs one disturbs the other as often; each is chosen by what it took itself, never by the
difference that is measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

SHARE = 0.2
"""Of the rounds of a kind, those that took least."""


def difference(full: Sequence[float], bare: Sequence[float]) -> tuple[float, float]:
    """``full`` less ``bare``, and ``bare``: means of the rounds of each that took least."""
    without = _undisturbed(bare)
    return _undisturbed(full) - without, without


def _undisturbed(rounds: Sequence[float]) -> float:
    return statistics.mean(sorted(rounds)[: max(1, round(len(rounds) * SHARE))])
