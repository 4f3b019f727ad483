from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY as HOSTS_REGISTRY
from prometheus_client import CollectorRegistry, generate_latest
from rolltop_instrument import WorkerTelemetry, _guest, names

Read = Callable[..., float | None]


async def test_a_rollout_that_ends_is_completed(value: Read) -> None:
    async with WorkerTelemetry(worker_id=3) as telemetry:
        async with telemetry.rollout():
            assert value(telemetry, "alpasim_renderer_active_rollouts") == 1
            for _ in range(4):
                with telemetry.step(), telemetry.observation_barrier():
                    await asyncio.sleep(0)
        assert value(telemetry, "alpasim_renderer_active_rollouts") == 0
        assert value(telemetry, "alpasim_rollouts_total", status="completed") == 1
        assert value(telemetry, "alpasim_rollouts_total", status="failed") == 0
        assert value(telemetry, "alpasim_rollout_duration_seconds_count") == 1
        assert value(telemetry, "alpasim_step_duration_seconds_count") == 4
        assert value(telemetry, "alpasim_observation_barrier_seconds_count") == 4


@pytest.mark.parametrize("error", [ValueError("boom"), asyncio.CancelledError()])
async def test_an_attempt_that_raises_is_failed_and_no_progress(
    error: BaseException, value: Read
) -> None:
    telemetry = WorkerTelemetry()

    async def attempt() -> None:
        async with telemetry.rollout(first_wave=True):
            with telemetry.step():
                raise error

    with pytest.raises(type(error)) as caught:
        await attempt()
    assert caught.value is error
    assert value(telemetry, "alpasim_rollouts_total", status="failed") == 1
    assert value(telemetry, "alpasim_rollouts_total", status="completed") == 0
    assert value(telemetry, "rolltop_first_wave_rollouts_total") == 0
    assert value(telemetry, "alpasim_rollout_duration_seconds_count") == 0
    assert value(telemetry, "alpasim_step_duration_seconds_count") == 0
    assert value(telemetry, "alpasim_renderer_active_rollouts") == 0


async def test_a_rollout_of_the_first_wave_counts_apart(value: Read) -> None:
    telemetry = WorkerTelemetry()
    async with telemetry.rollout(first_wave=True):
        pass
    async with telemetry.rollout() as rollout:
        rollout.first_wave = True
    telemetry.first_wave_discarded()
    telemetry.rollout_abandoned()
    assert value(telemetry, "rolltop_first_wave_rollouts_total") == 3
    assert value(telemetry, "alpasim_rollouts_total", status="completed") == 0
    assert value(telemetry, "alpasim_rollout_duration_seconds_count") == 0
    assert value(telemetry, "rolltop_rollouts_abandoned_total") == 1


def test_what_is_known_exists_at_zero_from_the_start(value: Read) -> None:
    telemetry = WorkerTelemetry(run_uuid="u-1", topology_digest="abc", version="9")
    for status in ("completed", "failed"):
        assert value(telemetry, "alpasim_rollouts_total", status=status) == 0
    for result in ("hit", "miss"):
        assert value(telemetry, "rolltop_scene_cache_requests_total", result=result) == 0
    assert value(telemetry, "alpasim_step_duration_seconds_count") == 0
    assert value(telemetry, "alpasim_renderer_rollouts_started_total", kind="fifo") == 0
    assert value(telemetry, "rolltop_run_info", run="u-1", version="9", topology="abc") == 1
    for metric in names.METRICS:
        if metric.appears == "start" and "event_loop" not in metric.name:
            assert len(telemetry._registry.family(metric)) > 0


def test_what_is_not_known_is_absent(value: Read) -> None:
    telemetry = WorkerTelemetry()
    assert value(telemetry, "alpasim_job_queue_depth") is None
    assert value(telemetry, "alpasim_event_loop_idle_seconds_total") is None
    telemetry.set_job_queue_depth(12)
    assert value(telemetry, "alpasim_job_queue_depth") == 12


def test_renderer_scenes_and_batches(value: Read) -> None:
    telemetry = WorkerTelemetry()
    telemetry.renderer_started(kind="cold_initial", waited_s=0.3)
    telemetry.scene_loaded(2.5)
    telemetry.scene_loaded(hit=True)
    telemetry.batch_size("renderer", 4)
    wait = "alpasim_renderer_scheduler_wait_seconds"
    assert value(telemetry, f"{wait}_sum", kind="cold_initial") == 0.3
    assert value(telemetry, "alpasim_renderer_rollouts_started_total", kind="cold_initial") == 1
    assert value(telemetry, "rolltop_scene_load_seconds_sum") == 2.5
    assert value(telemetry, "rolltop_scene_load_seconds_count") == 1
    assert value(telemetry, "rolltop_scene_cache_requests_total", result="hit") == 1
    assert value(telemetry, "rolltop_scene_cache_requests_total", result="miss") == 1
    batch = "rolltop_service_batch_size_bucket"
    assert value(telemetry, batch, service="renderer", le="4.0") == 1
    assert value(telemetry, batch, service="renderer", le="2.0") == 0


async def test_a_call_that_is_not_grpc(value: Read) -> None:
    telemetry = WorkerTelemetry()
    async with telemetry.call("renderer", "render", endpoint="renderer-2") as call:
        assert value(telemetry, "alpasim_rpc_queue_depth_at_start_latest", service="renderer") == 1
        call.server_times(queue_s=0.25, service_s=0.5)
        call.server_times(queue_s=math.nan, service_s=1)
        call.server_times(queue_s=-1, service_s=1)
    labels = {"service": "renderer", "endpoint": "renderer-2"}
    assert value(telemetry, "alpasim_rpc_queue_depth_at_start_latest", service="renderer") == 0
    assert value(telemetry, "rolltop_rpc_calls_total", **labels) == 1
    assert value(telemetry, "rolltop_rpc_endpoint_queue_seconds_total", **labels) == 0.25
    assert value(telemetry, "rolltop_rpc_endpoint_service_seconds_total", **labels) == 0.5
    count = "alpasim_rpc_duration_seconds_count"
    assert value(telemetry, count, service="renderer", method="render") == 1


async def test_a_call_that_fails_has_its_code(value: Read) -> None:
    telemetry = WorkerTelemetry()
    for error in (TimeoutError(), ConnectionError(), KeyError()):
        with pytest.raises(type(error)):
            async with telemetry.call("driver", "drive"):
                raise error
    for code in ("DEADLINE_EXCEEDED", "UNAVAILABLE", "UNKNOWN"):
        assert value(telemetry, "rolltop_rpc_failures_total", service="driver", code=code) == 1
    assert value(telemetry, "rolltop_rpc_calls_total", service="driver", endpoint="driver") == 3


async def test_elapsed_time_grows_without_any_rollout_and_stops_at_the_end(value: Read) -> None:
    async with WorkerTelemetry() as telemetry:
        first = value(telemetry, "alpasim_simulation_elapsed_seconds")
        await asyncio.sleep(0.01)
        second = value(telemetry, "alpasim_simulation_elapsed_seconds")
    last = value(telemetry, "alpasim_simulation_elapsed_seconds")
    assert first is not None
    assert second is not None
    assert 0 < first < second
    assert value(telemetry, "alpasim_simulation_elapsed_seconds") == last


async def test_turned_off_it_has_the_same_api_and_does_nothing(value: Read) -> None:
    async with WorkerTelemetry(enabled=False, port=0) as telemetry:
        async with telemetry.rollout():
            with telemetry.step(), telemetry.observation_barrier():
                pass
        telemetry.rollout_abandoned()
        telemetry.renderer_started(kind="fifo", waited_s=1)
        telemetry.set_job_queue_depth(1)
        telemetry.scene_loaded(1)
        telemetry.batch_size("renderer", 2)
        async with telemetry.call("renderer", "render") as call:
            call.server_times(queue_s=1, service_s=1)
        assert telemetry.grpc_interceptors("renderer") == []
        assert telemetry.page_port is None
        assert await telemetry.retry("driver", lambda: asyncio.sleep(0, "answer")) == "answer"
    assert value(telemetry, "alpasim_rollouts_total", status="completed") == 0
    assert value(telemetry, "alpasim_step_duration_seconds_count") == 0
    assert 'service="renderer"' not in telemetry.render()


async def test_faults_of_ours_never_reach_the_host(
    faults_are_hidden: None, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = WorkerTelemetry()
    telemetry._registry.families = {}
    for _ in range(3):
        async with telemetry.rollout():
            with telemetry.step():
                pass
        async with telemetry.call("driver", "drive"):
            pass
        telemetry.scene_loaded(1)
    assert telemetry.grpc_interceptors("driver") == []
    places = [record.getMessage() for record in caplog.records]
    assert len(places) == len(set(places)) > 3


def test_wrong_arguments_of_the_host_are_a_line_in_the_log(
    faults_are_hidden: None, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = WorkerTelemetry()
    telemetry.batch_size("renderer", "many")  # type: ignore[arg-type]
    telemetry.scene_loaded(nonsense=True)  # type: ignore[call-arg]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


WRONG: dict[str, Callable[[WorkerTelemetry], object]] = {
    "depth_of_words": lambda t: t.set_job_queue_depth("many"),  # type: ignore[arg-type]
    "no_depth": lambda t: t.set_job_queue_depth(None),  # type: ignore[arg-type]
    "huge_depth": lambda t: t.set_job_queue_depth(10**400),
    "no_wait": lambda t: t.renderer_started(waited_s=None),  # type: ignore[arg-type]
    "kind_of_lists": lambda t: t.renderer_started(kind=[]),  # type: ignore[arg-type]
    "huge_load": lambda t: t.scene_loaded(10**400),
    "service_of_lists": lambda t: t.batch_size([], 1),  # type: ignore[arg-type]
    "call_of_lists": lambda t: t.call([], "drive"),  # type: ignore[arg-type]
    "times_of_none": lambda t: t.call("driver", "drive").server_times(
        queue_s=None,  # type: ignore[arg-type]
        service_s=1,
    ),
    "times_of_words": lambda t: t.call("driver", "drive").server_times(
        queue_s=1,
        service_s="long",  # type: ignore[arg-type]
    ),
    "half_the_times": lambda t: t.call("driver", "drive").server_times(queue_s=1),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("wrong", WRONG)
def test_no_argument_of_the_host_raises_or_breaks_the_page(
    wrong: str,
    faults_are_hidden: None,
    caplog: pytest.LogCaptureFixture,
    parsed: Callable[[str], dict[object, float]],
) -> None:
    telemetry = WorkerTelemetry()
    WRONG[wrong](telemetry)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert all(0 <= sample < math.inf for sample in parsed(telemetry.render()).values())


@pytest.mark.parametrize("n", [np.int64(3), "3", 3.0, Fraction(3)])
def test_any_number_is_a_depth(n: Any, value: Read) -> None:
    telemetry = WorkerTelemetry()
    telemetry.set_job_queue_depth(n)
    telemetry.batch_size("renderer", n)
    assert value(telemetry, "alpasim_job_queue_depth") == 3
    assert value(telemetry, "rolltop_service_batch_size_sum", service="renderer") == 3


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1, 1e300])
async def test_what_can_be_no_value_leaves_no_trace(seconds: float, value: Read) -> None:
    telemetry = WorkerTelemetry()
    telemetry.scene_loaded(seconds)
    telemetry.renderer_started(waited_s=seconds)
    telemetry.batch_size("renderer", seconds)  # type: ignore[arg-type]
    if not seconds > 0 or math.isinf(seconds):
        telemetry.set_job_queue_depth(seconds)  # type: ignore[arg-type]
    async with telemetry.call("driver", "drive") as call:
        call.server_times(queue_s=seconds, service_s=1)
        call.server_times(queue_s=1, service_s=seconds)
    assert value(telemetry, "alpasim_job_queue_depth") is None
    assert value(telemetry, "rolltop_scene_load_seconds_sum") == 0
    assert value(telemetry, "rolltop_service_batch_size_sum", service="renderer") == 0
    wait = "alpasim_renderer_scheduler_wait_seconds_sum"
    assert value(telemetry, wait, kind="fifo") == 0
    assert value(telemetry, "rolltop_rpc_server_queue_seconds_sum", service="driver") is None


@pytest.mark.parametrize(
    ("kinds", "known"),
    [(None, set()), (7, set()), ((1,), {"1"}), ("fifo", {"fifo"}), (["a", "a", "b"], {"a", "b"})],
)
def test_kinds_that_are_known_from_the_start(
    kinds: Any, known: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = WorkerTelemetry(renderer_kinds=kinds)
    lines = [x for x in telemetry.render().splitlines() if "rollouts_started_total{" in x]
    assert {x.split('kind="')[1].split('"')[0] for x in lines} == known
    assert len(lines) == len(known)
    assert len(caplog.records) == (not known)


def test_made_up_kinds_and_batching_services_cannot_make_series_without_end(
    caplog: pytest.LogCaptureFixture, value: Read
) -> None:
    telemetry = WorkerTelemetry()
    for n in range(100):
        telemetry.renderer_started(kind=f"kind-{n}", waited_s=0.25)
        telemetry.batch_size(f"service-{n}", 2)
    started = "alpasim_renderer_rollouts_started_total"
    wait = "alpasim_renderer_scheduler_wait_seconds_sum"
    assert value(telemetry, started, kind="other") == 37
    assert value(telemetry, wait, kind="other") == 37 * 0.25
    assert value(telemetry, "rolltop_service_batch_size_count", service="other") == 36
    assert len(caplog.records) == 2


@pytest.mark.parametrize("seconds", [None, "soon", math.inf, math.nan, 0, -1, 10**400])
def test_a_wrong_interval_is_a_warning(seconds: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert WorkerTelemetry(scrape_interval_s=seconds)._scrape_interval_s == 1.0
    assert "scrape_interval_s" in caplog.text


def test_a_signals_handler_may_count_whatever_it_interrupts(value: Read) -> None:
    """A handler runs on the thread that it interrupts, which may hold any lock of ours."""
    telemetry = WorkerTelemetry()
    telemetry._book.site("driver", "drive", "driver-0").begin()
    locks = (
        telemetry._lock,
        telemetry._book._creating,
        telemetry._book._adding_up,
        telemetry._registry._refreshing,
    )

    def interrupted() -> None:
        with locks[0], locks[1], locks[2], locks[3]:
            telemetry.rollout_abandoned()
            telemetry._book.site("driver", "route", "driver-0").end(0.1)
            telemetry.render()

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert value(telemetry, "rolltop_rollouts_abandoned_total") == 1


def test_the_switch_of_our_tests_lets_faults_through() -> None:
    telemetry = WorkerTelemetry()
    with pytest.raises(ValueError, match="many"):
        telemetry.batch_size("renderer", "many")  # type: ignore[arg-type]
    assert _guest._FAULTS.reraise


def test_a_launcher_says_it_in_the_environment() -> None:
    telemetry = WorkerTelemetry.from_environment(
        worker_id=2,
        port=9001,
        environ={
            "ROLLTOP_RUN_UUID": "u",
            "ROLLTOP_RUN_NAME": "night",
            "ROLLTOP_TOPOLOGY_DIGEST": "d1",
            "ROLLTOP_SCRAPE_INTERVAL_S": "0.5",
        },
    )
    assert (telemetry.worker_id, telemetry.run_uuid, telemetry.run_name) == ("2", "u", "night")
    assert telemetry._scrape_interval_s == 0.5
    assert telemetry.enabled
    assert 'topology="d1"' in telemetry.render()
    off = WorkerTelemetry.from_environment(environ={"ROLLTOP_TELEMETRY": "0"})
    assert not off.enabled
    given = WorkerTelemetry.from_environment(environ={"ROLLTOP_RUN_UUID": "u"}, run_uuid="mine")
    assert given.run_uuid == "mine"


def test_a_run_says_which_worker_it_is_and_where_its_page_is_expected() -> None:
    run = {"ROLLTOP_WORKER_ID": "3", "ROLLTOP_METRICS_PORT": "24534"}
    told = WorkerTelemetry.from_environment(environ=run)
    assert (told.worker_id, told._address) == ("3", ("127.0.0.1", 24534))
    given = WorkerTelemetry.from_environment(worker_id=0, port=0, environ=run)
    assert (given.worker_id, given._address) == ("0", ("127.0.0.1", 0))
    by_hand = WorkerTelemetry.from_environment(environ={})
    assert (by_hand.worker_id, by_hand._address) == ("0", ("127.0.0.1", None))


@pytest.mark.parametrize("said", ["soon", "", "-1", "65536", "9" * 5000, "٣"])
def test_a_wrong_port_in_the_environment_is_a_warning(
    said: str, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = WorkerTelemetry.from_environment(environ={"ROLLTOP_METRICS_PORT": said})
    assert telemetry._address == ("127.0.0.1", None)
    assert "ROLLTOP_METRICS_PORT" in caplog.text


@pytest.mark.parametrize("said", ["soon", "", "-1", "nan", "0"])
def test_a_wrong_interval_in_the_environment_is_a_warning(
    said: str, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = WorkerTelemetry.from_environment(environ={"ROLLTOP_SCRAPE_INTERVAL_S": said})
    assert telemetry._scrape_interval_s == 1.0
    assert "ROLLTOP_SCRAPE_INTERVAL_S" in caplog.text


def test_nothing_of_the_hosts_metrics_changes(
    parsed: Callable[[str], dict[object, float]],
) -> None:
    before = generate_latest(HOSTS_REGISTRY)
    telemetry = WorkerTelemetry()
    telemetry.scene_loaded(1)
    assert b"rolltop" not in before
    assert b"rolltop" not in generate_latest(HOSTS_REGISTRY)
    assert isinstance(telemetry.registry, CollectorRegistry)
    own_page = generate_latest(telemetry.registry).decode()
    assert parsed(own_page) == parsed(telemetry.render())
