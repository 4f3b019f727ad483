from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rolltop_instrument import WorkerTelemetry, names
from rolltop_instrument._calls import MAX_METHODS, CallBook, method_label, status_of
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
