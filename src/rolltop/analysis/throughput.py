"""How many seconds a completed rollout takes, and how well that is known.

The steady figure comes from the step counter, which has hundreds of times more observations than
completed rollouts: steps per second once the warm-up is cut off and before the run drains, times
the steps that a completed rollout cost, those of failed attempts included. Where it would be a
guess it is None, with the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rolltop.analysis import student
from rolltop.analysis.samples import Samples, spacing_s, total, total_at, without_resets
from rolltop.model.estimate import ThroughputEstimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LAST_S = 300.0
"""The window of the ``last_5m`` figure."""
MIN_CYCLES = 2.0
"""Rollouts per slot that the steady part must span: fewer say nothing of the next ones."""
MIN_BINS = 12
MAX_BINS = 120
MIN_STEPS_PER_BIN = 10.0
FULL_LOAD = 0.9
"""Share of the usual number of active rollouts below which the run drains."""
CLEARLY = 1.5
"""Standard errors by which a warm-up differs from the rest; below, nothing is cut."""
DRIFT = 0.05
"""Change over the steady part, relative to its mean, from which a significant trend counts."""
FROZEN_S = 60.0
"""A worker that drives rollouts and makes no step for so long has stopped."""


@dataclass(frozen=True)
class Progress:
    """What is known of a run's course. Times are unix seconds.

    ``steps`` and ``active`` have one entry per worker: the cumulative steps, and the rollouts that
    it drives. ``completed`` are the cumulative completed rollouts. ``start_s`` is the start of the
    first rollout, ``end_s`` the end of the last. ``steps_per_rollout`` is the mean of a completed
    rollout where known. ``reached_end`` is False for a run that was stopped half-way.
    """

    steps: Sequence[Samples]
    completed: Sequence[Samples]
    start_s: float
    end_s: float
    n_completed: int
    n_failed_attempts: int = 0
    n_abandoned: int = 0
    n_first_wave: int = 0
    reached_end: bool = True
    active: Sequence[Samples] = ()
    rollout_duration_s: float | None = None
    steps_per_rollout: float | None = None
    n_workers: int | None = None


@dataclass(frozen=True)
class _Steady:
    """The steady part: ``rate`` steps/s, ``relative`` its half-width as a share of it."""

    rate: float
    relative: float
    since_s: float


class _NotSteadyError(Exception):
    """There is no steady figure; the message says why."""


def estimate_throughput(progress: Progress, *, confidence: float = 0.95) -> ThroughputEstimate:
    """Return seconds per completed rollout: of the whole run, of its last 5 minutes, steady.

    Of a run shorter than five minutes the last five are the whole run.
    """
    steady: float | None = None
    half_width: float | None = None
    since: float | None = None
    reason: str | None = None
    try:
        cost, cost_error = _steps_per_completed(progress)
        part = _steady_part(progress, confidence)
    except _NotSteadyError as why:
        reason = str(why)
    else:
        steady = cost / part.rate
        half_width = steady * math.hypot(part.relative, 1.96 * cost_error)
        since = max(0.0, part.since_s - progress.start_s)
    return ThroughputEstimate(
        full_run=_full_run(progress),
        last_5m=_last_5m(progress),
        steady=steady,
        half_width=half_width,
        confidence=confidence,
        steady_since_s=since,
        reason=reason,
    )


def busy_window(steps: Sequence[Samples], *, share: float = 0.1) -> tuple[float, float] | None:
    """Return the times at which ``share`` and ``1 - share`` of all steps were made, unix seconds.

    In between neither the start nor the end of the run shows. None where there are no steps.
    """
    times = _grid(steps)
    if times is None:
        return None
    count = total_at(steps, times)
    made = count - count[0]
    if made[-1] <= 0:
        return None
    first = int(np.searchsorted(made, share * made[-1]))
    last = int(np.searchsorted(made, (1 - share) * made[-1]))
    return float(times[max(0, first - 1)]), float(times[last])


def _full_run(progress: Progress) -> float | None:
    elapsed = progress.end_s - progress.start_s
    return elapsed / progress.n_completed if progress.n_completed and elapsed > 0 else None


def _last_5m(progress: Progress) -> float | None:
    if progress.end_s - progress.start_s <= LAST_S:
        return _full_run(progress)
    window = np.array([progress.end_s - LAST_S, progress.end_s])
    first, last = total_at(progress.completed, window)
    return LAST_S / float(last - first) if last > first else None


def _steps_per_completed(progress: Progress) -> tuple[float, float]:
    """Return the steps that one completed rollout cost, waste included, and its relative error."""
    made = total(progress.steps)
    if made <= 0:
        raise _NotSteadyError("no worker recorded a step")
    done = progress.n_completed
    if done == 0:
        raise _NotSteadyError("no rollout was completed")
    nominal = progress.steps_per_rollout
    if not progress.reached_end:
        if progress.n_failed_attempts or nominal is None:
            raise _NotSteadyError("the run was stopped: what a completed rollout cost is not known")
        return nominal, 0.0
    if nominal is not None:
        made -= progress.n_first_wave * nominal / 2  # they start part-way, anywhere
    wasted = max(0.0, made - done * nominal) if nominal is not None else 0.0
    waste_error = wasted / made / math.sqrt(max(1, progress.n_failed_attempts))
    given_up = progress.n_abandoned
    lost_error = math.sqrt(given_up * done / (done + given_up)) / done
    return made / done, math.hypot(waste_error, lost_error)


def _steady_part(progress: Progress, confidence: float) -> _Steady:
    """Return the steady part of a run.

    Raises:
        _NotSteadyError: there is none, or it cannot be told.
    """
    _check_workers(progress)
    rates, edges = _bins(progress)
    cut = _warm_up(rates)
    span = float(edges[-1] - edges[cut])
    cycle = progress.rollout_duration_s
    if cycle is None or cycle <= 0:
        raise _NotSteadyError("how long a rollout takes is not known")
    if span < MIN_CYCLES * cycle:
        raise _NotSteadyError(
            f"at full load and after the warm-up there were {span / cycle:.1f} rollouts per slot;"
            f" {MIN_CYCLES:.0f} are needed"
        )
    rest = rates[cut:]
    _check_drift(rest)
    mean = float(rest.mean())
    return _Steady(mean, _half_width(rest, confidence) / mean, float(edges[cut]))


def _check_workers(progress: Progress) -> None:
    """Raise where the total would hide a worker that is missing or stands still."""
    seen = sum(1 for s in progress.steps if s.values.size)
    if progress.n_workers is not None and seen < progress.n_workers:
        raise _NotSteadyError(f"only {seen} of {progress.n_workers} workers left their steps")
    active = {s.name: s for s in progress.active}
    for steps in progress.steps:
        stop = _longest_stop(steps, active.get(steps.name))
        if stop > FROZEN_S:
            raise _NotSteadyError(f"worker {steps.name} made no step for {stop:.0f} s")


def _longest_stop(steps: Samples, active: Samples | None) -> float:
    """Return for how long a worker, with rollouts to drive throughout, made no step."""
    if active is None or active.t_s.size == 0 or steps.t_s.size == 0:
        return 0.0
    count = without_resets(steps.values)
    driving = np.interp(steps.t_s, active.t_s, active.values) > 0
    longest = 0.0
    since = steps.t_s[0]
    for i in range(1, steps.t_s.size):
        if count[i] > count[i - 1] or not driving[i]:
            since = steps.t_s[i]
        longest = max(longest, float(steps.t_s[i] - since))
    return longest


def _grid(steps: Sequence[Samples]) -> NDArray[np.float64] | None:
    """Return a time grid over all samples at their usual spacing; None where there are too few."""
    spacing = spacing_s(steps)
    if spacing is None:
        return None
    first = min(float(s.t_s[0]) for s in steps if s.t_s.size)
    last = max(float(s.t_s[-1]) for s in steps if s.t_s.size)
    return np.arange(first, last + spacing / 2, spacing)


def _bins(progress: Progress) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return steps/s in bins (n,) from the first step to the drain, and their edges (n+1,)."""
    times = _grid(progress.steps)
    if times is None:
        raise _NotSteadyError("there are too few samples")
    count = total_at(progress.steps, times)
    begin = float(times[max(0, int(np.argmax(count > count[0])) - 1)])
    end = min(_drain_start(progress.active, times), float(times[int(np.argmax(count))]))
    made = float(np.diff(total_at(progress.steps, np.array([begin, end])))[0])
    spacing = float(times[1] - times[0])
    if made <= 0 or end - begin < MIN_BINS * spacing:
        raise _NotSteadyError(f"full load lasted {max(0.0, end - begin):.0f} s: too few samples")
    width = max(2 * spacing, (end - begin) / MAX_BINS, MIN_STEPS_PER_BIN * (end - begin) / made)
    n = int((end - begin) / width)
    if n < MIN_BINS:
        raise _NotSteadyError(
            f"{made:.0f} steps in {end - begin:.0f} s of full load are too few to tell"
        )
    edges = np.asarray(end - width * np.arange(n, -1, -1), dtype=np.float64)
    rates = np.diff(total_at(progress.steps, edges)) / width
    return np.asarray(rates, dtype=np.float64), edges


def _drain_start(active: Sequence[Samples], times: NDArray[np.float64]) -> float:
    """Return when the number of active rollouts falls for good; the end where it is not known."""
    known = [s for s in active if s.t_s.size]
    if not known:
        return float(times[-1])
    count = np.zeros_like(times)
    for s in known:
        count += np.interp(times, s.t_s, s.values, left=0.0, right=0.0)
    usual = float(np.percentile(count, 75))
    full = np.flatnonzero(count >= FULL_LOAD * usual)
    return float(times[full[-1]]) if usual > 0 else float(times[-1])


def _warm_up(rates: NDArray[np.float64]) -> int:
    """Return how many bins at the start are warm-up: the cut that MSER finds least uncertain.

    Source: White, "An effective truncation heuristic for bias reduction in simulation output"
    (1997). A minimum at the last cut allowed says that no steady part begins before it.
    """
    n = rates.size
    last = n // 2
    scores = [float(rates[d:].var()) / (n - d) for d in range(last + 1)]
    best = int(np.argmin(scores))
    if best == last:
        raise _NotSteadyError("the step rate still changed in the second half of the run")
    return best if _differs(rates[:best], rates[best:]) else 0


def _differs(early: NDArray[np.float64], rest: NDArray[np.float64]) -> bool:
    """Return whether the mean of the early bins is another than chance would make of the rest."""
    if early.size == 0:
        return False
    error = float(rest.std(ddof=1)) * _correlation_factor(rest) / math.sqrt(early.size)
    return abs(float(early.mean()) - float(rest.mean())) > CLEARLY * error


def _check_drift(rates: NDArray[np.float64]) -> None:
    """Raise where the rate has a trend that is both significant and large enough to matter."""
    n = rates.size
    x = np.linspace(-0.5, 0.5, n)
    slope = float((x * rates).sum() / (x**2).sum())
    residual = rates - rates.mean() - slope * x
    inflation = _correlation_factor(residual)
    error = inflation * math.sqrt(float((residual**2).sum()) / (n - 2) / float((x**2).sum()))
    mean = float(rates.mean())
    if abs(slope) > DRIFT * mean and abs(slope) > student.quantile(0.95, n - 2) * error:
        raise _NotSteadyError(f"the step rate drifts: {slope / mean:+.0%} over the last part")


def _half_width(rates: NDArray[np.float64], confidence: float) -> float:
    """Return the half-width of the mean's interval, in steps/s, from batch means."""
    n = rates.size
    batches = min(10, n // 2)
    size = n // batches
    means = rates[n - batches * size :].reshape(batches, size).mean(axis=1)
    error = float(means.std(ddof=1)) / math.sqrt(batches) * _correlation_factor(means)
    return student.quantile(confidence, batches - 1) * error


def _correlation_factor(values: NDArray[np.float64]) -> float:
    """Return by how much the error of a mean grows for values that follow each other (lag 1)."""
    centred = values - values.mean()
    power = float((centred**2).sum())
    if power <= 0:
        return 1.0
    rho = float((centred[1:] * centred[:-1]).sum()) / power
    rho = min(0.9, max(0.0, rho))
    return math.sqrt((1 + rho) / (1 - rho))
