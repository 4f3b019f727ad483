from __future__ import annotations

import numpy as np
import pytest

from rolltop.analysis.samples import Samples
from rolltop.analysis.throughput import busy_window, estimate_throughput
from tests.analysis.synthetic import STEPS, counters, flat, progress


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_steady_run_is_estimated_with_its_error() -> None:
    steps = counters(flat(30), seconds=120, n_workers=4, rng=rng())
    found = estimate_throughput(progress(steps))

    assert found.reason is None
    assert found.steady == pytest.approx(STEPS / 30, rel=0.05)
    assert found.half_width is not None
    assert found.steady is not None
    assert 0 < found.half_width < 0.1 * found.steady
    assert found.confidence == 0.95


@pytest.mark.parametrize(
    ("noise", "memory", "seconds", "least"),
    [(0.1, 0.0, 120, 0.90), (0.2, 0.8, 300, 0.86)],
    ids=["independent", "correlated"],
)
def test_the_interval_covers_the_truth(
    noise: float, memory: float, seconds: int, least: float
) -> None:
    runs = 120
    found = [
        estimate_throughput(
            progress(
                counters(
                    flat(30),
                    seconds=seconds,
                    n_workers=4,
                    rng=rng(seed),
                    noise=noise,
                    memory=memory,
                )
            )
        )
        for seed in range(runs)
    ]
    known = [
        (f.steady, f.half_width) for f in found if f.steady is not None and f.half_width is not None
    ]
    covered = sum(abs(steady - STEPS / 30) <= half_width for steady, half_width in known)

    assert len(known) > 0.85 * runs
    assert covered / len(known) >= least


def test_a_warm_up_is_cut_off() -> None:
    steps = counters(
        lambda t: np.where(t < 40, 10.0, 30.0), seconds=200, n_workers=4, rng=rng(), noise=0.05
    )
    run = progress(steps)
    found = estimate_throughput(run)

    assert found.steady == pytest.approx(STEPS / 30, rel=0.03)
    assert found.steady_since_s == pytest.approx(40, abs=8)
    assert found.full_run is not None
    assert found.steady is not None
    assert found.full_run > 1.1 * found.steady


def test_a_run_that_gets_faster_all_the_time_has_no_steady_figure() -> None:
    steps = counters(
        lambda t: 30 * (0.3 + 0.7 * t / 120), seconds=120, n_workers=4, rng=rng(), noise=0.02
    )
    found = estimate_throughput(progress(steps))

    assert found.steady is None
    assert found.half_width is None
    assert found.steady_since_s is None
    assert found.full_run is not None
    assert "rate" in (found.reason or "")


def test_fewer_than_two_rollouts_per_slot_are_a_guess() -> None:
    steps = counters(flat(30), seconds=120, n_workers=4, rng=rng())
    found = estimate_throughput(progress(steps, rollout_duration_s=100.0))

    assert found.steady is None
    assert "1.2 rollouts per slot; 2 are needed" in (found.reason or "")


def test_the_drain_is_not_part_of_the_steady_rate() -> None:
    def rate(t: np.ndarray) -> np.ndarray:
        return np.where(t < 100, 30.0, 6.0)

    steps = counters(rate, seconds=140, n_workers=4, rng=rng(), noise=0.05)
    t = steps[0].t_s
    active = tuple(Samples(s.name, t, np.where(t - t[0] < 100, 3.0, 1.0)) for s in steps)
    found = estimate_throughput(progress(steps, active=active))

    assert found.steady == pytest.approx(STEPS / 30, rel=0.04)


def test_a_missing_worker_is_named_not_averaged_over() -> None:
    steps = counters(flat(30), seconds=120, n_workers=3, rng=rng())
    found = estimate_throughput(progress(steps, n_workers=4))

    assert found.steady is None
    assert found.reason == "only 3 of 4 workers left their steps"


def test_a_worker_that_stands_still_is_named() -> None:
    steps = counters(flat(30), seconds=200, n_workers=4, rng=rng())
    t = steps[2].t_s
    frozen = Samples("2", t, np.minimum(steps[2].values, steps[2].values[90]))
    active = tuple(Samples(s.name, t, np.full_like(t, 3.0)) for s in steps)
    found = estimate_throughput(progress((*steps[:2], frozen, steps[3]), active=active))

    assert found.steady is None
    assert found.reason == "worker 2 made no step for 110 s"


def test_a_worker_without_rollouts_may_stand_still() -> None:
    steps = counters(flat(30), seconds=200, n_workers=4, rng=rng())
    t = steps[2].t_s
    idle = Samples("2", t, np.minimum(steps[2].values, steps[2].values[90]))
    active = [Samples(s.name, t, np.full_like(t, 3.0)) for s in steps]
    active[2] = Samples("2", t, np.where(t - t[0] < 89, 3.0, 0.0))
    found = estimate_throughput(progress((*steps[:2], idle, steps[3]), active=tuple(active)))

    assert "made no step" not in (found.reason or "")


def test_failed_attempts_make_a_completed_rollout_dearer_and_less_certain() -> None:
    steps = counters(flat(30), seconds=120, n_workers=4, rng=rng())
    made = sum(float(s.values[-1]) for s in steps)
    healthy = estimate_throughput(progress(steps))
    failing = estimate_throughput(
        progress(steps, n_completed=int(made / STEPS / 2), n_failed_attempts=30, n_abandoned=10)
    )

    assert healthy.steady is not None
    assert healthy.half_width is not None
    assert failing.steady is not None
    assert failing.half_width is not None
    assert failing.steady == pytest.approx(2 * healthy.steady, rel=0.03)
    assert failing.half_width > 2 * healthy.half_width


def test_a_stopped_run_costs_what_its_completed_rollouts_did() -> None:
    steps = counters(flat(30), seconds=120, n_workers=4, rng=rng())
    known = estimate_throughput(progress(steps, n_completed=40, reached_end=False))
    unknown = estimate_throughput(
        progress(steps, n_completed=40, n_failed_attempts=3, reached_end=False)
    )

    assert known.steady == pytest.approx(STEPS / 30, rel=0.04)
    assert unknown.steady is None
    assert "was stopped" in (unknown.reason or "")


def test_restarts_and_lost_scrapes_do_not_show() -> None:
    steps = counters(flat(30), seconds=120, n_workers=2, rng=rng())
    whole = estimate_throughput(progress(steps, n_completed=70))
    first = steps[0]
    restarted = Samples(
        first.name, first.t_s, np.where(first.t_s < first.t_s[60], first.values,
                                        first.values - first.values[60]),
    )  # fmt: skip
    kept = np.ones(first.t_s.size, dtype=bool)
    kept[20:26] = False
    gappy = Samples(steps[1].name, steps[1].t_s[kept], steps[1].values[kept])
    found = estimate_throughput(progress((restarted, gappy), n_completed=70))

    assert whole.steady is not None
    assert found.steady == pytest.approx(whole.steady, rel=0.03)


def test_the_last_five_minutes_of_a_long_run() -> None:
    steps = counters(
        lambda t: np.where(t < 300, 10.0, 40.0), seconds=700, n_workers=2, rng=rng(), noise=0.02
    )
    found = estimate_throughput(progress(steps))

    assert found.last_5m == pytest.approx(STEPS / 40, rel=0.05)
    assert found.full_run is not None
    assert found.full_run > 1.4 * STEPS / 40


def test_of_a_short_run_the_last_five_minutes_are_the_whole() -> None:
    found = estimate_throughput(progress(counters(flat(30), seconds=90, n_workers=2, rng=rng())))

    assert found.last_5m == found.full_run


def test_nothing_is_known_of_nothing() -> None:
    nothing = Samples("0", np.empty(0), np.empty(0))
    found = estimate_throughput(
        progress(counters(flat(30), seconds=5, n_workers=1, rng=rng()), steps=(nothing,),
                 completed=(), n_completed=0)
    )  # fmt: skip

    assert (found.full_run, found.last_5m, found.steady) == (None, None, None)
    assert found.reason == "no worker recorded a step"
    assert busy_window((nothing,)) is None


def test_steps_without_a_completed_rollout_are_no_throughput() -> None:
    steps = counters(flat(30), seconds=120, n_workers=2, rng=rng())
    found = estimate_throughput(progress(steps, n_completed=0))

    assert found.full_run is None
    assert found.reason == "no rollout was completed"


@pytest.mark.parametrize("seconds", [1, 3, 10])
def test_a_handful_of_samples_is_too_few(seconds: int) -> None:
    steps = counters(flat(30), seconds=seconds, n_workers=2, rng=rng())
    found = estimate_throughput(progress(steps, n_completed=1, rollout_duration_s=1.0))

    assert found.steady is None
    assert found.reason


def test_the_busy_window_leaves_out_start_and_end() -> None:
    steps = counters(flat(30), seconds=100, n_workers=2, rng=rng())
    window = busy_window(steps)

    assert window is not None
    assert window[0] - 1e9 == pytest.approx(10, abs=3)
    assert window[1] - 1e9 == pytest.approx(90, abs=3)
