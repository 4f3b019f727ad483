"""Student's distribution, for integer degrees of freedom, without a table."""

from __future__ import annotations

import math

_NORMAL_ABOVE = 2000
"""Degrees of freedom above which the normal quantile is the same to four figures."""


def central_probability(t: float, df: int) -> float:
    """Return P(-t <= T <= t) for ``df`` >= 1 degrees of freedom.

    Source: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(df))
    cos2 = math.cos(theta) ** 2
    odd = df % 2 == 1
    term = math.cos(theta) if odd else 1.0
    series = 0.0
    for k in range(1 if odd else 0, df - 1, 2):
        series += term
        term *= cos2 * (k + 1) / (k + 2)
    if odd:
        return 2 / math.pi * (theta + math.sin(theta) * series)
    return math.sin(theta) * series


def quantile(confidence: float, df: int) -> float:
    """Return t with P(-t <= T <= t) = ``confidence``, which lies in (0, 1)."""
    df = min(df, _NORMAL_ABOVE)
    low, high = 0.0, 1.0
    while central_probability(high, df) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if central_probability(middle, df) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2
