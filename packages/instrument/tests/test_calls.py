from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rolltop_instrument import WorkerTelemetry, names
from rolltop_instrument._calls import (
    MAX_CODES,
    MAX_INSTANCES,
    MAX_METHODS,
    MAX_SERVICES,
    CallBook,
    method_label,
    status_of,
)
from rolltop_instrument._cells import Registry

SERVICES = {
    "renderer": ("batch_render_rgb", "get_available_cameras"),
    "driver": (
        "drive",
        "submit_image_observation",
        "submit_egomotion_observation",
        "submit_route",
    ),
    "physics": ("ground_intersection",),
    "controller": ("run_controller_and_vehicle",),
    "trafficsim": ("simulate", "start_session", "close_session"),
}


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/alpasim.Sensorsim/batch_render_rgb", "batch_render_rgb"),
        (b"/a.b.Renderer/BatchRenderRgb", "batch_render_rgb"),
        ("/a/HTTPStatus", "http_status"),
        ("Drive", "drive"),
        ("/a/runV2Now", "run_v2_now"),
        (b"/a/\xff", "\ufffd"),
    ],
)
def test_method_label(path: str | bytes, label: str) -> None:
    assert method_label(path) == label


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=40))
def test_depth_counts_calls_in_flight_and_falls_to_zero(moves: list[tuple[bool, float]]) -> None:
    """Against a naive model: starts and ends in any order that a worker can make."""
    registry = Registry(names.METRICS, "0")
    site = CallBook(registry).site("renderer", "render", "renderer-0")
    depth = registry.cell(names.RPC_QUEUE_DEPTH, "renderer")
    flying, latest, ended = 0, 0, []
    for start, seconds in moves:
        if start:
            site.begin()
            flying += 1
            latest = flying
        elif flying:
            site.end(seconds)
            ended.append(seconds)
            flying -= 1
            latest = latest if flying else 0
        assert depth[0] == latest
    registry.refresh()
    if any(start for start, _ in moves):
        assert registry.cell(names.RPC_CALLS, "renderer", "renderer-0")[0] == len(ended)
        total = registry.cell(names.RPC_ENDPOINT_SECONDS, "renderer", "renderer-0")[0]
        assert total == pytest.approx(sum(ended))


def test_a_server_that_says_nothing_has_no_server_series() -> None:
    registry = Registry(names.METRICS, "0")
    site = CallBook(registry).site("renderer", "render", "renderer-0")
    site.begin()
    site.end(0.1)
    assert "server" not in registry.render()
    assert "endpoint_queue" not in registry.render()
    site.begin()
    site.end(0.1, None, (0.02, 0.07))
    assert 'rolltop_rpc_server_queue_seconds_sum{worker_id="0",service="renderer"} 0.02' in (
        registry.render()
    )


def test_known_failures_exist_at_zero_and_others_appear() -> None:
    registry = Registry(names.METRICS, "0")
    service = CallBook(registry).service("driver")
    assert registry.render().count("rolltop_rpc_failures_total{") == len(names.KNOWN_CODES)
    service.failed("UNAVAILABLE")
    service.failed("DATA_LOSS")
    assert 'code="UNAVAILABLE"} 1' in registry.render()
    assert 'code="DATA_LOSS"} 1' in registry.render()


def test_what_an_exception_in_a_handler_gives_is_known_from_the_start() -> None:
    registry = Registry(names.METRICS, "0")
    CallBook(registry).service("driver")
    assert status_of(ValueError()) == "UNKNOWN"
    assert 'code="UNKNOWN"} 0' in registry.render()


def test_budget_of_series_with_five_services_of_32() -> None:
    telemetry = WorkerTelemetry(worker_id="0", run_uuid="u", topology_digest="t")
    telemetry.set_job_queue_depth(1)
    telemetry.batch_size("renderer", 4)
    called = 0
    for service, methods in SERVICES.items():
        for n in range(32):
            for method in methods:
                site = telemetry._book.site(service, method, f"{service}-{n}")
                site.begin()
                site.end(0.01, 0.001, (0.002, 0.007))
            called += 1
    telemetry._registry.cell(names.LOOP_IDLE)
    telemetry._registry.cell(names.LOOP_POLL)
    telemetry._registry.cell(names.LOOP_WORK)
    samples = [line for line in telemetry.render().splitlines() if not line.startswith("#")]
    per_instance = [line for line in samples if 'endpoint="' in line]
    assert called == 160
    assert len(samples) == len(telemetry._registry)
    assert len(per_instance) <= 5 * called
    n_pairs = sum(map(len, SERVICES.values()))
    assert len(samples) - len(per_instance) == 101 + 26 * len(SERVICES) + 29 * n_pairs <= 550


def test_an_instance_that_is_not_called_costs_no_series() -> None:
    registry = Registry(names.METRICS, "0")
    CallBook(registry).site("renderer", "render", "renderer-7")
    assert "renderer-7" not in registry.render()


def test_made_up_methods_cannot_make_series_without_end(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(names.METRICS, "0")
    book = CallBook(registry)
    for n in range(MAX_METHODS + 50):
        site = book.site("renderer", f"get/{n}", "renderer-0")
        site.begin()
        site.end(0.1)
    assert len(registry.family(names.RPC_DURATION)) == 19 * (MAX_METHODS + 1)
    assert 'method="other"} 50' in registry.render()
    assert len(caplog.records) == 1


def test_made_up_services_and_instances_cannot_either(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(names.METRICS, "0")
    book = CallBook(registry)
    for n in range(MAX_INSTANCES + 50):
        site = book.site(f"service-{n}", "get", f"instance-{n}")
        site.begin()
        site.end(0.1, 0.001, (0.02, 0.07), "UNAVAILABLE")
    registry.refresh()
    assert len(registry.family(names.RPC_RETRIES)) == MAX_SERVICES + 1
    assert len(registry.family(names.RPC_DURATION)) == 19 * (MAX_METHODS + 1)
    assert len(registry.family(names.RPC_CALLS)) == MAX_INSTANCES + 1
    beyond = MAX_INSTANCES + 50 - MAX_SERVICES
    assert registry.cell(names.RPC_FAILURES, "other", "UNAVAILABLE")[0] == beyond
    assert registry.cell(names.RPC_CALLS, "other", "other")[0] == 50
    assert len(book._sites) <= MAX_INSTANCES + 1
    words = [record.getMessage().split(":")[0] for record in caplog.records]
    assert words == ["more than 64 services", "more than 64 methods", "more than 1024 instances"]


def test_made_up_statuses_cannot_either(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(names.METRICS, "0")
    service = CallBook(registry).service("driver")
    for n in range(100):
        service.failed(f"CODE_{n}")
    assert len(registry.family(names.RPC_FAILURES)) == MAX_CODES + 1
    assert 'code="other"} 72' in registry.render()
    assert len(caplog.records) == 1


# ---- notes -----------------------------------------------------------------------------------


def test_notes_that_nobody_reads_are_added_up_all_the_same() -> None:
    registry = Registry(names.METRICS, "0")
    book = CallBook(registry)
    site = book.site("renderer", "render", "renderer-0")
    for _ in range(300):
        site.begin()
        site.end(0.25)
        assert len(book.notes) < 256
    calls = registry.cell(names.RPC_CALLS, "renderer", "renderer-0")
    assert calls[0] == 300 - len(book.notes) > 0
    registry.refresh()
    assert calls[0] == 300
    assert registry.cell(names.RPC_ENDPOINT_SECONDS, "renderer", "renderer-0")[0] == 75


class SlowSite:
    """Counts its calls, and is held up between reading the count and writing it."""

    def __init__(self) -> None:
        self.count = 0
        self.adding, self.go_on = threading.Event(), threading.Event()

    def add(self, *_call: object) -> None:
        count = self.count
        if not self.adding.is_set():
            self.adding.set()
            assert self.go_on.wait(10)
        self.count = count + 1


def test_two_threads_that_add_up_at_once_lose_and_double_nothing() -> None:
    book = CallBook(Registry(names.METRICS, "0"))
    site: Any = SlowSite()
    book.notes.extend([(site, 0.1, None, None, None)] * 3)
    first = threading.Thread(target=book.add_up)
    first.start()
    assert site.adding.wait(10)
    book.add_up(wait=False)  # as a call that ends does: it leaves it to the first
    assert len(book.notes) == 2
    second = threading.Thread(target=book.add_up)
    second.start()  # as a page does: it waits for the first
    site.go_on.set()
    second.join()
    first.join()
    assert site.count == 3


def test_a_signal_that_adds_up_amid_an_add_up_takes_what_is_left() -> None:
    book = CallBook(Registry(names.METRICS, "0"))
    added: list[object] = []

    class Interrupted:
        def add(self, *call: object) -> None:
            added.append(call)
            book.add_up()

    site: Any = Interrupted()
    book.notes.extend([(site, float(n), None, None, None) for n in range(3)])
    adding = threading.Thread(target=book.add_up, daemon=True)
    adding.start()
    adding.join(10)
    assert not adding.is_alive()
    assert len(added) == 3


def test_two_threads_that_make_a_service_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both look before either has made it: at most one is inside, the other is at the door."""
    registry = Registry(names.METRICS, "0")
    book = CallBook(registry)
    making, go_on = threading.Event(), threading.Event()
    cell = registry.cell

    def slowly(metric: names.Metric, *values: str) -> Any:
        if not making.is_set():
            making.set()
            assert go_on.wait(10)
        return cell(metric, *values)

    monkeypatch.setattr(registry, "cell", slowly)
    found: list[Any] = []
    by_site = threading.Thread(
        target=lambda: found.append(book.site("driver", "drive", "driver-0").service)
    )
    by_site.start()
    assert making.wait(10)
    by_retry = threading.Thread(target=lambda: found.append(book.service("driver")))
    by_retry.start()
    by_retry.join(0.2)  # it has nothing to wait for unless it is at the door
    go_on.set()
    by_site.join()
    by_retry.join()
    assert len(found) == 2
    assert found[0] is found[1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (asyncio.CancelledError(), "CANCELLED"),
        (TimeoutError(), "DEADLINE_EXCEEDED"),
        (ConnectionRefusedError(), "UNAVAILABLE"),
        (ValueError(), "UNKNOWN"),
    ],
)
def test_status_of(error: BaseException, code: str) -> None:
    assert status_of(error) == code


def test_status_of_somebody_elses_error() -> None:
    class TheirError(Exception):
        def __init__(self, code: object) -> None:
            self.code = code

    def broken() -> object:
        raise RuntimeError

    assert status_of(TheirError(lambda: SimpleNamespace(name="NOT_FOUND"))) == "NOT_FOUND"
    assert status_of(TheirError(broken)) == "UNKNOWN"
    assert status_of(TheirError(404)) == "UNKNOWN"

    class HostileError(Exception):
        @property
        def code(self) -> object:
            raise RuntimeError

    assert status_of(HostileError()) == "UNKNOWN"
