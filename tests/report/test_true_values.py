"""Panels and evidence against counters that are known, asked of a real Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from rolltop.catalogue.panels import PANELS_BY_KEY
from rolltop.report.collect import Resolution, collect_panels
from rolltop.report.evidence import Missing, ask_load, ask_scrapes, ask_workers
from rolltop.report.reader import RunReader, Window
from tests.report.conftest import serving_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rolltop.prometheus.binary import Binary
    from rolltop.prometheus.query import Prometheus
    from rolltop.report.collect import PanelData

START_S = 1_750_000_000.0
SECONDS = 20
STEPS_PER_S = 50.0
SERVED_S = 0.004
FIRST_USE_S = 3
LEFT_S = 8
"""Seconds after which the second worker is gone."""
SHARES = {"idle": 0.7, "poll": 0.1, "work": 0.2}


def line(name: str, labels: str, t: float, value: float, *, worker: int = 0) -> str:
    target = (
        f'job="alpasim-runtime-worker",instance="127.0.0.1:{9000 + worker}"'
        f',run_uuid="u",worker_id="{worker}"'
    )
    text = f"{labels},{target}" if labels else target
    return f"{name}{{{text}}} {value:.9g} {START_S + t:.3f}"


def steady_worker(worker: int, last_s: int) -> list[str]:
    """Return what a worker counts that runs at full speed before it is first scraped."""
    lines: list[str] = []
    for t in range(last_s + 1):
        seconds = t + 1.0
        calls = STEPS_PER_S * seconds
        own = {
            "alpasim_step_duration_seconds_count": calls,
            "alpasim_step_duration_seconds_sum": 0.02 * calls,
            "up": 1,
            **{f"alpasim_event_loop_{k}_seconds_total": v * seconds for k, v in SHARES.items()},
        }
        instance = f'service="renderer",endpoint="renderer-{worker}"'
        served = {
            "rolltop_rpc_calls_total": calls,
            "rolltop_rpc_endpoint_seconds_total": 2 * SERVED_S * calls,
            "rolltop_rpc_endpoint_queue_seconds_total": SERVED_S * calls,
            "rolltop_rpc_endpoint_service_seconds_total": SERVED_S * calls,
        }
        used = {"rolltop_rpc_calls_total": calls} if t >= FIRST_USE_S else {}
        method = 'service="renderer",method="render"'
        durations = {
            "alpasim_rpc_duration_seconds_sum": 2 * SERVED_S * calls,
            "alpasim_rpc_duration_seconds_count": calls,
        }
        completed = {"alpasim_rollouts_total": float(t)}
        for labels, values in (
            ("", own),
            (instance, served),
            ('service="driver",endpoint="driver-0"', used),
            (method, durations),
            ('status="completed"', completed),
        ):
            lines += [line(name, labels, t, v, worker=worker) for name, v in values.items()]
    return lines


def long_rollouts() -> list[str]:
    """Return rollouts of 17 s, in a bucket that ends at 25 s, of a worker that has run for 19 s."""
    counts = {"10.0": 0, "16.0": 0, "25.0": 4, "+Inf": 4}
    name = "alpasim_rollout_duration_seconds"
    lines: list[str] = []
    for t in range(SECONDS + 1):
        lines += [line(f"{name}_bucket", f'le="{le}"', t, n) for le, n in counts.items()]
        lines += [line(f"{name}_sum", "", t, 4 * 17), line(f"{name}_count", "", t, 4)]
        lines.append(line("alpasim_simulation_elapsed_seconds", "", t, 19))
    return lines


@pytest.fixture(scope="module")
def known(
    tmp_path_factory: pytest.TempPathFactory, binary: Binary
) -> Iterator[tuple[Prometheus, Window]]:
    """A run of two workers, of which one leaves early, and a third whose page never answers."""
    lines = steady_worker(0, SECONDS) + steady_worker(1, LEFT_S)
    lines += long_rollouts()
    lines += [line("up", "", t, 0, worker=2) for t in range(SECONDS + 1)]
    lines.sort(key=lambda text: text.partition("{")[0])
    text = "\n".join([*lines, "# EOF", ""])
    with serving_text(text, tmp_path_factory.mktemp("known"), binary) as prometheus:
        yield prometheus, Window(START_S, START_S + SECONDS)


def panel(known: tuple[Prometheus, Window], key: str) -> PanelData:
    prometheus, window = known
    resolution = Resolution.of(window, 1.0)
    (data,) = collect_panels(
        prometheus,
        [PANELS_BY_KEY[key]],
        window.start_s,
        window.end_s,
        resolution.step_s,
        window_s=resolution.window_s,
        run_uuid="u",
    )
    assert data.reason is None
    return data


@pytest.mark.parametrize(
    ("key", "value"),
    [("worker_steps", STEPS_PER_S), ("step_duration", 0.02), ("rpc_mean", 2 * SERVED_S)],
)
def test_what_is_steady_from_the_first_sample_is_drawn_flat(
    known: tuple[Prometheus, Window], key: str, value: float
) -> None:
    first, *_ = panel(known, key).lines

    assert first.t_s[0] <= START_S + 1
    assert first.t_s[-1] == START_S + SECONDS
    assert first.values == pytest.approx(np.full(first.values.size, value), rel=0.1)


def test_shares_of_time_add_up_to_one_from_the_start_to_the_end(
    known: tuple[Prometheus, Window],
) -> None:
    lines = {one.legend: one.values for one in panel(known, "loop").lines}

    assert sum(lines.values()) == pytest.approx(np.ones(SECONDS), rel=1e-6)
    for state, share in SHARES.items():
        assert lines[state] == pytest.approx(np.full(SECONDS, share), rel=0.1)


@pytest.mark.parametrize(
    ("key", "value"),
    [("endpoint_service", SERVED_S), ("endpoint_queue", SERVED_S), ("method_mean", 2 * SERVED_S)],
)
def test_what_a_counter_is_born_with_counts(
    known: tuple[Prometheus, Window], key: str, value: float
) -> None:
    bars = panel(known, key).lines

    assert bars
    assert [bar.values[-1] for bar in bars] == pytest.approx([value] * len(bars), rel=1e-6)


def test_no_rollout_is_drawn_longer_than_the_run_has_lasted(
    known: tuple[Prometheus, Window],
) -> None:
    lines = {one.legend: one.values for one in panel(known, "rollout_duration").lines}

    assert set(lines["mean"]) == {17}
    assert set(lines["95th percentile"]) == {19}


def test_a_step_is_its_calls_and_the_rest_in_the_worker(known: tuple[Prometheus, Window]) -> None:
    lines = {one.legend: one for one in panel(known, "step_time").lines}

    assert list(lines) == ["renderer", "in worker and waiting"]
    assert lines["in worker and waiting"].colour_key == "runtime"
    for legend, seconds in (("renderer", 2 * SERVED_S), ("in worker and waiting", 0.012)):
        values = lines[legend].values
        assert values == pytest.approx(np.full(values.size, seconds), rel=0.1)


def test_what_a_worker_that_left_has_done_still_counts(known: tuple[Prometheus, Window]) -> None:
    completed = next(one for one in panel(known, "rollouts").lines if one.legend == "completed")

    assert completed.values[-1] == SECONDS + LEFT_S
    assert (np.diff(completed.values) >= 0).all()


def test_the_load_of_the_services_counts_from_the_birth_of_their_series(
    known: tuple[Prometheus, Window],
) -> None:
    prometheus, window = known
    reader, missing = RunReader(prometheus, "u"), Missing()
    workers = ask_workers(reader, window, 1.0, missing)
    load = ask_load(reader, window, workers, 60.0, missing)  # too short to be cut: all of it

    by_name = {instance.instance: instance for instance in load.instances}
    assert load.duration_s == SECONDS
    for name, last_s in (("renderer-0", SECONDS), ("renderer-1", LEFT_S)):
        made = STEPS_PER_S * last_s
        assert by_name[name].calls == pytest.approx(made)
        assert by_name[name].service_s == pytest.approx(SERVED_S * made)
    both = STEPS_PER_S * (SECONDS + 1 + LEFT_S + 1)
    assert by_name["driver-0"].calls == pytest.approx(both)
    assert load.step_s == pytest.approx(0.02)
    assert load.calls_s == pytest.approx(2 * SERVED_S, rel=0.1)
    assert load.worker_work == pytest.approx(SHARES["work"], rel=1e-6)


def test_a_page_that_never_answers_is_silent_and_its_scrapes_are_lost(
    known: tuple[Prometheus, Window],
) -> None:
    prometheus, window = known
    found = ask_scrapes(RunReader(prometheus, "u"), window, Missing())

    assert found.jobs == {"alpasim-runtime-worker": True}
    assert found.silent == (("alpasim-runtime-worker", "127.0.0.1:9002"),)
    assert found.lost == SECONDS + 1
