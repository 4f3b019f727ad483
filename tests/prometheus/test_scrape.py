"""What is rendered for a Prometheus: judged by promtool, and by its meaning."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rolltop.catalogue.duration import duration
from rolltop.errors import ConfigError
from rolltop.model.target import TargetGroup
from rolltop.prometheus.file_sd import write_targets
from rolltop.prometheus.results import parse_duration
from rolltop.prometheus.scrape import (
    NOTHING,
    render_config,
    render_targets,
    target_files,
)

WORKERS = TargetGroup(
    ("127.0.0.1:20001", "node-7.cluster:20002", "[fd00::1]:20003"),
    {"job": "alpasim-runtime-worker", "run_uuid": "u", "user": 'ü "x"', "__param_run": "u"},
)
NODE = TargetGroup(("127.0.0.1:9100",), {"job": "alpasim-node", "run_uuid": "u"})


@pytest.fixture
def check(binary):
    """Return promtool's verdict on a configuration: exit status and words."""

    def check(config):
        done = subprocess.run(
            [binary.promtool, "check", "config", config],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return check


def write_run(folder, **intervals):
    (folder / "rules").mkdir(parents=True)
    rule = {"record": "level:metric:sum", "expr": "sum(up)"}
    (folder / "rules/a.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "a", "rules": [rule]}]})
    )
    (folder / "prometheus.yml").write_text(render_config(**intervals))
    write_targets(folder / "targets", [WORKERS, NODE])
    return folder / "prometheus.yml"


@pytest.mark.parametrize(
    "intervals",
    [
        {},
        {"worker_interval_s": 0.2, "exporter_interval_s": 0.5, "rule_interval_s": 0.25},
        {"worker_interval_s": 90, "exporter_interval_s": 3600},
        {"worker_interval_s": 0.001},
    ],
)
def test_promtool_accepts_it_wherever_it_lies(check, tmp_path, intervals):
    write_run(tmp_path / "run", **intervals)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    status, words = check(tmp_path / "moved/prometheus.yml")
    assert status == 0, words
    assert "1 rule files found" in words
    assert "1 rules found" in words


def test_promtool_reads_the_targets(check, tmp_path):
    """That it accepts a file means something: it names one that is wrong."""
    config = write_run(tmp_path / "run")
    (tmp_path / "run/targets/workers.json").write_text('[{"targets": [], "lables": {}}]')
    status, words = check(config)
    assert status != 0
    assert "lables" in words


def test_nothing_is_a_configuration(check, tmp_path):
    config = tmp_path / "prometheus.yml"
    config.write_text(NOTHING)
    assert check(config)[0] == 0


def test_each_kind_has_its_interval():
    config = yaml.safe_load(render_config(worker_interval_s=0.25, exporter_interval_s=20))
    workers, exporters = config["scrape_configs"]
    assert (workers["scrape_interval"], workers["scrape_timeout"]) == ("250ms", "250ms")
    assert (exporters["scrape_interval"], exporters["scrape_timeout"]) == ("20s", "10s")
    assert config["global"]["evaluation_interval"] == "5s"
    assert workers["honor_labels"] is exporters["honor_labels"] is False


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.0004, float("nan"), float("inf")])
def test_an_interval_that_is_none(seconds):
    with pytest.raises(ConfigError, match="too short"):
        render_config(worker_interval_s=seconds)


@given(st.integers(1, 10**9))
def test_durations_are_read_back(milliseconds):
    assert parse_duration(duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


def test_workers_lie_apart_from_the_others():
    files = target_files([NODE, WORKERS])
    assert json.loads(files["workers.json"]) == [
        {"targets": list(WORKERS.targets), "labels": WORKERS.labels}
    ]
    assert json.loads(files["exporters.json"])[0]["labels"]["job"] == "alpasim-node"


def test_no_targets_are_an_empty_list():
    assert json.loads(render_targets([TargetGroup((), {"job": "x"})])) == []


@pytest.mark.parametrize(
    "target",
    ["host", "host:", ":9100", "host:0", "host:65536", "http://host:9100", "a b:9100", "h:1/m"],
)
def test_a_target_that_is_none(target):
    with pytest.raises(ConfigError, match="cannot be scraped"):
        render_targets([TargetGroup((target,))])


@pytest.mark.parametrize("labels", [{"a-b": "x"}, {"": "x"}, {"1a": "x"}, {"a": 1}])
def test_a_label_that_is_none(labels):
    with pytest.raises(ConfigError):
        render_targets([TargetGroup(("h:1",), labels)])


NAMES = st.text("azAZ_019", max_size=8).map("l{}".format)
LABELS = st.dictionaries(NAMES, st.text(max_size=20), max_size=4)


@given(st.lists(st.builds(TargetGroup, st.just(("host:1",)), LABELS), max_size=4))
def test_any_labels_are_read_back(groups):
    read = json.loads(render_targets(groups))
    assert [one["labels"] for one in read] == [group.labels for group in groups]


def test_files_are_whole_and_private(tmp_path):
    write_targets(tmp_path / "targets", [WORKERS])
    written = sorted((tmp_path / "targets").iterdir())
    assert [path.name for path in written] == ["exporters.json", "workers.json"]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o640}


def test_bad_targets_leave_what_was_there(tmp_path):
    folder = tmp_path / "targets"
    write_targets(folder, [WORKERS])
    before = (folder / "workers.json").read_bytes()
    with pytest.raises(ConfigError):
        write_targets(folder, [TargetGroup(("nonsense",))])
    assert (folder / "workers.json").read_bytes() == before
