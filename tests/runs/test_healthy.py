"""What a run leaves when all went well."""

from __future__ import annotations

import json
import subprocess

import jsonschema
import pytest
import yaml

from rolltop.lifecycle.view import viewing
from rolltop.model.run import RunPaths
from rolltop.report.summary import render_schema

from .conftest import ROLLTOP, TINY, processes_of


def test_it_ends_with_status_0_and_a_short_summary(healthy):
    assert healthy.status == 0, healthy.err
    assert "rolltop open 'runs/x [1]'\n" in healthy.out
    assert "24 of 24 completed" in healthy.out
    assert "busiest   renderer" in healthy.out
    assert "metrics_plot.png" in healthy.out
    assert "rolltop open " in healthy.out


def test_the_summary_fits_its_schema_and_is_true(healthy):
    jsonschema.validate(healthy.summary, json.loads(render_schema()))
    assert healthy.summary["outcome"] == "completed"
    assert healthy.summary["rollouts"]["completed"] == 24
    assert len(list(healthy.run_dir.glob("rollouts/*/*/result.json"))) == 24
    assert healthy.summary["bottleneck"]["service"] == "renderer"
    assert 0 < healthy.summary["telemetry"]["cpu_seconds_ratio"] < 1


def test_the_last_values_were_scraped(healthy):
    with viewing(RunPaths(healthy.run_dir)) as prometheus:
        completed = prometheus.query(
            'sum(max_over_time(alpasim_rollouts_total{status="completed"}[1h]))'
        )
        steps = prometheus.query("sum(max_over_time(alpasim_step_duration_seconds_count[1h]))")
        uuids = prometheus.label_values("run_uuid")
    assert completed[0].values.tolist() == [24.0]
    assert steps[0].values.tolist() == [24 * 20]
    assert uuids == [healthy.summary["run_uuid"]]


def test_every_worker_is_a_target_with_the_runs_labels(healthy):
    groups = json.loads((healthy.run_dir / "prometheus/targets/workers.json").read_text())
    assert sum(len(group["targets"]) for group in groups) == 3
    metadata = yaml.safe_load((healthy.run_dir / "run_metadata.yaml").read_text())
    for group in groups:
        assert group["labels"]["run_uuid"] == metadata["run_uuid"]
        assert group["labels"]["job"] == "alpasim-runtime-worker"
        assert group["labels"]["component"] == "runtime"


def test_nothing_is_left_running(healthy):
    assert processes_of(healthy.run_dir) == []


def test_latest_points_at_it(healthy):
    assert (healthy.run_dir.parent / "latest").resolve() == healthy.run_dir


def test_others_see_nothing_of_it_and_its_group_changes_nothing(healthy):
    found = [healthy.run_dir, *healthy.run_dir.rglob("*")]
    assert len(found) > 100
    open_to = {str(path): oct(mode) for path in found if (mode := path.stat().st_mode) & 0o027}
    assert open_to == {}


def test_events_have_each_start_and_end(healthy):
    names = {e["process"] for e in healthy.events if e["event"] == "process_started"}
    assert {"renderer-0", "driver-2", "worker-2"} <= names
    assert healthy.events[-1]["event"] == "run_ended"
    assert healthy.events[-1]["exit_status"] == 0


def test_the_plot_can_be_drawn_again_elsewhere(healthy, tmp_path):
    before = (healthy.run_dir / "metrics_plot.png").stat().st_mtime_ns
    done = subprocess.run(
        [ROLLTOP, "plot", healthy.run_dir, "--output", tmp_path / "again.png", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["drawn"] >= 12
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")
    assert (healthy.run_dir / "metrics_plot.png").stat().st_mtime_ns == before


@pytest.mark.parametrize("name", ["config.yaml", "plan.json", "run_metadata.yaml", "events.jsonl"])
def test_files_of_the_specification_are_there(healthy, name):
    assert (healthy.run_dir / name).stat().st_size


def test_a_secret_that_a_process_prints_is_in_no_file(start_run):
    talks = "sim.worker.command=[sh,-c,'echo DB_PASSWORD=hunter2hunter2; echo and so on']"
    ended = start_run(*TINY, talks).finish()
    log = (ended.run_dir / "logs/worker-0.log").read_text()
    assert log == "DB_PASSWORD=[redacted]\nand so on\n"
    files = [path for path in ended.run_dir.rglob("*") if path.is_file()]
    assert [str(path) for path in files if b"hunter2" in path.read_bytes()] == []
