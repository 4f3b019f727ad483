"""Step counters of workers whose rate is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rolltop.analysis.samples import Samples, total_at
from rolltop.analysis.throughput import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

STEPS = 50
"""Steps of a rollout."""


def counters(
    rate: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    seconds: int,
    n_workers: int,
    rng: np.random.Generator,
    noise: float = 0.1,
    memory: float = 0.0,
) -> tuple[Samples, ...]:
    """Return cumulative steps each second; ``noise`` is relative, with ``memory`` from one second
    to the next (the coefficient of an AR(1) process, shared by the workers)."""
    t = np.arange(seconds + 1, dtype=np.float64)
    shocks = rng.normal(0, noise, seconds)
    for i in range(1, seconds):
        shocks[i] = memory * shocks[i - 1] + np.sqrt(1 - memory**2) * shocks[i]
    made = np.maximum(0, rate(t[:-1]) * (1 + shocks))
    shares = rng.multinomial(rng.poisson(made), np.full(n_workers, 1 / n_workers))
    cumulative = np.vstack([np.zeros(n_workers), np.cumsum(shares, axis=0)])
    return tuple(
        Samples(str(w), 1e9 + t, cumulative[:, w].astype(np.float64)) for w in range(n_workers)
    )


def progress(made_by: tuple[Samples, ...], **known: object) -> Progress:
    """Return a run that ended by itself, with the rollouts that its steps amount to."""
    steps = made_by
    made = sum(float(s.values[-1]) for s in steps)
    seconds = float(steps[0].t_s[-1] - steps[0].t_s[0])
    completed = Samples("0", steps[0].t_s, np.floor(total_at(steps, steps[0].t_s) / STEPS))
    defaults: dict[str, object] = {
        "steps": steps,
        "completed": (completed,),
        "start_s": float(steps[0].t_s[0]),
        "end_s": float(steps[0].t_s[-1]),
        "n_completed": made / STEPS,
        "rollout_duration_s": seconds / 10,
        "steps_per_rollout": float(STEPS),
        "n_workers": len(steps),
    }
    return Progress(**(defaults | known))  # type: ignore[arg-type]


def flat(level: float) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    return lambda t: np.full_like(t, level)
