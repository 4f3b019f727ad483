from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.analysis.student import central_probability, quantile


@pytest.mark.parametrize(
    ("confidence", "df", "published"),
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 7, 2.365),
        (0.95, 10, 2.228),
        (0.99, 4, 4.604),
        (0.99, 30, 2.750),
        (0.90, 120, 1.658),
        (0.95, 10**6, 1.960),
    ],
)
def test_quantiles_are_the_published_ones(confidence: float, df: int, published: float) -> None:
    assert quantile(confidence, df) == pytest.approx(published, abs=2e-3)


@given(st.floats(0.01, 0.999), st.integers(1, 300))
def test_a_quantile_holds_its_probability(confidence: float, df: int) -> None:
    assert central_probability(quantile(confidence, df), df) == pytest.approx(confidence, abs=1e-9)
