"""A report from the series of simulated runs, asked of a real Prometheus."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from rolltop.catalogue.panel import Section
from rolltop.catalogue.panels import PANELS
from rolltop.model.run import RolloutCounts, RunIdentity
from rolltop.prometheus.query import Prometheus
from rolltop.report import plot
from rolltop.report.course import Course
from rolltop.report.reader import Window
from rolltop.report.run_report import RunReport, make_report
from tests.report.conftest import serving
from tests.report.simulated import DRIVING, SimulatedRun, simulate

if TYPE_CHECKING:
    from pathlib import Path

    from rolltop.prometheus.binary import Binary

ONE_EACH = tuple(replace(s, n_instances=1, seconds=0.004) for s in DRIVING)
FEW = ("step_rate", "rpc_mean", "gpu_memory", "endpoint_service")


def report_of(run: SimulatedRun, prometheus: Any, folder: Path, **known: Any) -> RunReport:
    defaults: dict[str, Any] = {
        "identity": RunIdentity(
            run.run_uuid, "simulated", "somebody", datetime.fromtimestamp(run.start_s, UTC)
        ),
        "plot": folder / "metrics_plot.png",
        "n_workers": run.n_workers,
        "counts": RolloutCounts(run.n_rollouts, run.completed, 0, run.failed),
        "window": Window(
            run.start_s,
            run.start_s + run.end_s + 2,
            run.start_s + 0.3,
            run.start_s + run.end_s,
        ),
        "steps_per_rollout": float(run.steps),
        "panels": [p for p in PANELS if p.key in FEW],
    }
    return make_report(prometheus, **(defaults | known))


@pytest.fixture(scope="module")
def report(
    driving_run: SimulatedRun, prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> RunReport:
    """The whole report, all panels, of one run."""
    folder = tmp_path_factory.mktemp("report")
    return report_of(driving_run, prometheus, folder, panels=PANELS)


def test_every_panel_of_a_worker_shows_something(report: RunReport) -> None:
    assert report.panels.drawn == 33
    assert report.panels.empty == {
        panel.title: f"not in this version of rolltop, which starts no {panel.source.title}"
        for panel in PANELS
        if panel.section is Section.MACHINES
    }


def test_the_plot_is_made(report: RunReport) -> None:
    assert report.plot is not None
    assert report.plot.read_bytes().startswith(b"\x89PNG")


def test_axis_and_heading_count_from_the_first_rollout(
    driving_run: SimulatedRun,
    prometheus: Prometheus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    courses: list[Course] = []

    def draw_nothing(*given: Any) -> plot.PanelReport:
        courses.append(given[-1])
        return plot.PanelReport()

    monkeypatch.setattr(plot, "draw_plot", draw_nothing)
    first_s = driving_run.start_s + 7.5
    window = Window(
        driving_run.start_s,
        driving_run.start_s + driving_run.end_s + 2,
        first_s,
        driving_run.start_s + driving_run.end_s,
    )
    found = report_of(driving_run, prometheus, tmp_path, window=window).throughput

    assert found.steady_since_s is not None
    assert courses == [Course(first_s, window.end_s - first_s, found.steady_since_s)]


def test_the_speed_is_that_of_the_simulation(report: RunReport, driving_run: SimulatedRun) -> None:
    renderer = DRIVING[0]
    bound = renderer.seconds * driving_run.steps / renderer.n_instances
    found = report.throughput

    assert found.reason is None
    assert found.steady == pytest.approx(bound, rel=0.04)
    assert found.full_run == pytest.approx(
        (driving_run.end_s - 0.3) / driving_run.completed, rel=1e-6
    )
    assert found.steady_since_s == pytest.approx(driving_run.warm_up_s, abs=5)


def test_the_bottleneck_has_its_evidence(report: RunReport) -> None:
    assert report.bottleneck is not None
    assert report.bottleneck.service == "renderer"
    assert report.bottleneck.certainty == "high"
    assert "its 2 instances were busy" in report.bottleneck.evidence[0]


def test_what_is_missing_is_named_and_nothing_was_lost(report: RunReport) -> None:
    assert report.missing == {
        f"{name} exporter": f"not in this version of rolltop, which starts no {name} exporter"
        for name in ("process", "node", "GPU")
    }
    assert report.lost == ()
    assert report.scrapes_lost == 0
    assert report.gaps_s == 0.0
    assert report.telemetry_record(0.02).missing == report.missing


@pytest.mark.parametrize("slow", [service.name for service in DRIVING])
def test_the_service_that_is_delayed_is_the_bottleneck(
    slow: str, tmp_path: Path, binary: Binary
) -> None:
    services = tuple(
        replace(s, seconds=s.seconds + 0.06) if s.name == slow else s for s in ONE_EACH
    )
    run = simulate(SimulatedRun(services=services, n_workers=1, n_slots=4, n_rollouts=8, steps=20))
    with serving(run, tmp_path, binary) as prometheus:
        found = report_of(run, prometheus, tmp_path, panels=[]).bottleneck

    assert found is not None
    assert found.service == slow
    assert found.certainty == "high"


def test_failed_attempts_cost_time_and_are_no_rollouts(tmp_path: Path, binary: Binary) -> None:
    healthy = simulate(SimulatedRun(services=ONE_EACH, n_rollouts=40, n_slots=4, steps=30))
    failing = simulate(
        SimulatedRun(services=ONE_EACH, n_rollouts=40, n_slots=4, steps=30, fail_ratio=0.01)
    )
    assert failing.failed > 5
    speeds = []
    for name, run in (("healthy", healthy), ("failing", failing)):
        folder = tmp_path / name
        folder.mkdir()
        with serving(run, folder, binary) as prometheus:
            found = report_of(run, prometheus, folder, panels=[]).throughput
        assert found.full_run is not None
        speeds.append(found.full_run)

    assert speeds[1] > 1.2 * speeds[0]


def test_without_times_of_the_servers_it_says_so(tmp_path: Path, binary: Binary) -> None:
    run = simulate(SimulatedRun(n_rollouts=12, steps=10, server_times=False))
    with serving(run, tmp_path, binary) as prometheus:
        report = report_of(run, prometheus, tmp_path)

    assert report.bottleneck is not None
    assert (report.bottleneck.service, report.bottleneck.certainty) == ("renderer", "low")
    assert report.missing["rolltop_rpc_endpoint_service_seconds_total"] == (
        "no target of the run exports it"
    )
    assert report.panels.empty["A call is served, mean by instance"].startswith(
        "no service says how long a call waited and was served (no series rolltop_rpc_endpoint_"
    )


def test_names_of_alpasim_are_read_as_the_configurations(tmp_path: Path, binary: Binary) -> None:
    named = {"renderer": "sensorsim", "trafficsim": "traffic"}
    services = tuple(replace(s, name=named.get(s.name, s.name)) for s in DRIVING)
    run = simulate(SimulatedRun(services=services, n_rollouts=12, steps=10, server_times=False))
    with serving(run, tmp_path, binary) as prometheus:
        report = report_of(run, prometheus, tmp_path, panels=[])

    assert report.bottleneck is not None
    assert report.bottleneck.service == "renderer"


def test_without_result_files_the_workers_count(
    driving_run: SimulatedRun, prometheus: Prometheus, tmp_path: Path
) -> None:
    report = report_of(driving_run, prometheus, tmp_path, counts=RolloutCounts(0), panels=[])
    known = report_of(driving_run, prometheus, tmp_path, panels=[])

    assert report.throughput == known.throughput
    assert report.throughput.steady is not None


def test_a_label_that_no_target_has_hides_nothing(
    driving_run: SimulatedRun, prometheus: Prometheus, tmp_path: Path
) -> None:
    other = RunIdentity("another-uuid", "simulated", "somebody", datetime.now(UTC))
    report = report_of(driving_run, prometheus, tmp_path, identity=other)

    assert report.panels.drawn == 3


def test_a_prometheus_that_is_gone_costs_the_panels_not_the_report(
    driving_run: SimulatedRun, tmp_path: Path
) -> None:
    report = report_of(driving_run, Prometheus("http://127.0.0.1:9", timeout_s=2), tmp_path)

    assert report.bottleneck is None
    assert report.missing["bottleneck"] == "no worker recorded a step"
    assert report.missing["up"].startswith("the query failed: ")
    assert "up" in report.lost
    assert report.panels.drawn == 0
    assert all("the query failed" in reason for reason in report.panels.empty.values())
    assert report.throughput.full_run is not None
    assert report.plot is not None


def test_a_plot_that_cannot_be_written_is_missing_and_said_so(
    driving_run: SimulatedRun, prometheus: Prometheus, tmp_path: Path
) -> None:
    path = tmp_path / "absent" / "metrics_plot.png"
    report = report_of(driving_run, prometheus, tmp_path, plot=path)

    assert report.plot is None
    said = "it could not be written: No such file or directory"
    assert report.missing["metrics_plot.png"] == said
    assert isinstance(report.plot_error, FileNotFoundError)
    assert "metrics_plot.png" in report.lost
    assert report.panels.drawn == 0
    assert report.bottleneck is not None
