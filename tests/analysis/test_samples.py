from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.analysis.samples import (
    Samples,
    count_at,
    increase,
    spacing_s,
    total,
    total_at,
    without_resets,
)

LIVES = st.lists(
    st.lists(st.integers(0, 1000), min_size=1, max_size=8).map(np.cumsum),
    min_size=1,
    max_size=5,
)
"""The lives of a counter between restarts, each as the values that were scraped of it."""


def seen_to_fall(lives: list[np.ndarray]) -> bool:
    return all(b[0] < a[-1] for a, b in itertools.pairwise(lives))


@given(LIVES.filter(seen_to_fall))
def test_a_restart_loses_nothing_and_adds_nothing(lives: list[np.ndarray]) -> None:
    count = without_resets(np.concatenate(lives).astype(float))

    assert count[-1] == sum(life[-1] for life in lives)
    assert (np.diff(count) >= 0).all()


@given(LIVES.filter(seen_to_fall), st.data())
def test_a_lost_scrape_of_a_life_changes_no_total(
    lives: list[np.ndarray], data: st.DataObject
) -> None:
    kept = [life[sorted({*data.draw(st.sets(st.integers(0, life.size - 1))), life.size - 1})]
            for life in lives]  # fmt: skip
    if not seen_to_fall(kept):
        return
    values = np.concatenate(kept).astype(float)
    counter = Samples("0", np.arange(values.size, dtype=float), values)

    assert total([counter]) == sum(life[-1] for life in lives)


def test_a_count_is_linear_across_a_gap_and_flat_at_the_end() -> None:
    counter = Samples("0", np.array([10.0, 11.0, 15.0]), np.array([2.0, 4.0, 12.0]))

    assert count_at(counter, np.array([13.0, 99.0])).tolist() == [8.0, 12.0]
    assert increase(counter, 11.0, 13.0) == 4.0


@pytest.mark.parametrize("later", [[], [11.0, 12.0]])
def test_a_counter_is_born_with_nothing(later: list[float]) -> None:
    counter = Samples("0", np.array([10.0, *later]), np.full(1 + len(later), 6.0))

    assert count_at(counter, np.array([5.0, 9.0, 9.5, 10.0])).tolist() == [0.0, 0.0, 3.0, 6.0]
    assert increase(counter, 0.0, 20.0) == total([counter]) == 6.0


def test_totals_are_over_all_workers() -> None:
    one = Samples("0", np.array([0.0, 2.0]), np.array([0.0, 4.0]))
    restarted = Samples("1", np.array([0.0, 1.0, 2.0]), np.array([5.0, 1.0, 2.0]))

    assert total_at([one, restarted], np.array([0.0, 2.0])).tolist() == [5.0, 11.0]
    assert total([one, restarted]) == 11.0


def test_no_samples_are_no_count() -> None:
    nothing = Samples("0", np.empty(0), np.empty(0))

    assert total([nothing]) == 0.0
    assert count_at(nothing, np.array([1.0])).tolist() == [0.0]
    assert spacing_s([nothing]) is None


def test_the_spacing_is_the_usual_one_not_the_gap() -> None:
    assert spacing_s([Samples("0", np.array([0.0, 1.0, 2.0, 9.0, 10.0]), np.zeros(5))]) == 1.0


def test_times_and_values_belong_together() -> None:
    with pytest.raises(ValueError, match="samples of worker-1"):
        Samples("worker-1", np.zeros(3), np.zeros(2))
