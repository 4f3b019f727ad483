"""The recording rules by promtool: that they are valid, and what they record."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rolltop.catalogue.rules import RULES, render_rules
from rolltop.prometheus.install import find_or_install

if TYPE_CHECKING:
    from pathlib import Path

RUN = 'run_uuid="u", run_name="r"'
KEPT = '{run_name="r", run_uuid="u"}'


def worker(name: str, number: int, values: str, labels: str = "") -> dict[str, str]:
    more = f", {labels}" if labels else ""
    return {
        "series": f'{name}{{{RUN}, worker_id="{number}", instance="h:{number}"{more}}}',
        "values": values,
    }


CASES: dict[str, tuple[list[dict[str, str]], float]] = {
    "rolltop:run_steps:rate1m": (
        [
            worker("alpasim_step_duration_seconds_count", 0, "0+10x120"),
            worker("alpasim_step_duration_seconds_count", 1, "0+5x60 _x60"),
        ],
        10.0,
    ),
    "alpasim:simulation_rollouts_completed:sum": (
        [
            worker("alpasim_simulation_elapsed_seconds", 0, "0+1x120"),
            worker("alpasim_rollouts_total", 0, "0+1x120", 'status="completed"'),
            worker("alpasim_rollouts_total", 1, "0+1x60 stale", 'status="completed"'),
            worker("alpasim_rollouts_total", 0, "0+9x120", 'status="failed"'),
        ],
        180.0,
    ),
    "alpasim:simulation_seconds_per_rollout:avg": (
        [
            worker("alpasim_simulation_elapsed_seconds", 0, "0+1x120"),
            worker("alpasim_simulation_elapsed_seconds", 1, "0+1x60 stale"),
            worker("alpasim_rollouts_total", 0, "0+0.25x120", 'status="completed"'),
            worker("alpasim_rollouts_total", 1, "0+0.5x60 stale", 'status="completed"'),
            worker("alpasim_rollouts_total", 1, "0+9x120", 'status="failed"'),
        ],
        2.0,
    ),
    "alpasim:step_duration_seconds:p95": (
        [
            worker("alpasim_step_duration_seconds_bucket", 0, "0+9x120", 'le="0.1"'),
            worker("alpasim_step_duration_seconds_bucket", 0, "0+10x120", 'le="0.2"'),
            worker("alpasim_step_duration_seconds_bucket", 0, "0+10x120", 'le="+Inf"'),
        ],
        0.15,
    ),
    "alpasim:rollout_duration_seconds:p95": (
        [
            worker("alpasim_rollout_duration_seconds_bucket", 0, "0+9x120", 'le="10"'),
            worker("alpasim_rollout_duration_seconds_bucket", 0, "0+10x120", 'le="20"'),
            worker("alpasim_rollout_duration_seconds_bucket", 0, "0+10x120", 'le="+Inf"'),
        ],
        15.0,
    ),
    "alpasim:event_loop_idle_fraction:ratio": (
        [
            worker("alpasim_event_loop_idle_seconds_total", 0, "0+0.8x120"),
            worker("alpasim_event_loop_work_seconds_total", 0, "0+0.1x120"),
            worker("alpasim_event_loop_poll_seconds_total", 0, "0+0.1x120"),
            worker("alpasim_event_loop_idle_seconds_total", 1, "0+0.4x120"),
            worker("alpasim_event_loop_work_seconds_total", 1, "0+0.5x120"),
            worker("alpasim_event_loop_poll_seconds_total", 1, "0+0.1x120"),
        ],
        0.6,
    ),
}
BY_LABEL: dict[str, tuple[list[dict[str, str]], str, float]] = {
    "rolltop:worker_rollouts_completed:last": (
        [
            worker("alpasim_simulation_elapsed_seconds", 0, "0+1x120"),
            worker("alpasim_rollouts_total", 1, "0+1x60 stale", 'status="completed"'),
        ],
        'worker_id="1"',
        60.0,
    ),
    "alpasim:rpc_duration_seconds:p95": (
        [
            worker(
                "alpasim_rpc_duration_seconds_bucket",
                0,
                f"0+{count}x120",
                f'service="renderer", method="batch_render_rgb", le="{le}"',
            )
            for le, count in (("0.1", 9), ("0.2", 10), ("+Inf", 10))
        ],
        'method="batch_render_rgb"',
        0.15,
    ),
    "alpasim:rpc_queue_depth_at_start_latest:max": (
        [
            worker("alpasim_rpc_queue_depth_at_start_latest", n, f"{n + 1}x120", 'service="driver"')
            for n in range(2)
        ],
        'service="driver"',
        2.0,
    ),
    "alpasim:rpc_queue_depth_at_start_latest:min": (
        [
            worker("alpasim_rpc_queue_depth_at_start_latest", n, f"{n + 1}x120", 'service="driver"')
            for n in range(2)
        ],
        'service="driver"',
        1.0,
    ),
}


def case(record: str) -> dict[str, Any]:
    """Return a unit test of promtool: two minutes of samples, one a second."""
    if record in CASES:
        series, value = CASES[record]
        labels = KEPT
    else:
        series, label, value = BY_LABEL[record]
        labels = KEPT.replace("}", f", {label}}}")
    return {
        "interval": "1s",
        "input_series": series,
        "promql_expr_test": [
            {
                "expr": f"round({record}, 0.001)",
                "eval_time": "120s",
                "exp_samples": [{"labels": labels, "value": value}],
            }
        ],
    }


@pytest.fixture(scope="module")
def promtool() -> Path:
    found = find_or_install().promtool
    assert found is not None
    return found


def run(promtool: Path, *arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [promtool, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid(promtool: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(render_rules(interval_s=5, fast_interval_s=0.5))

    assert f"{len(RULES)} rules found" in run(
        promtool, "check", "rules", "rules.yml", folder=tmp_path
    )


def test_every_rule_has_its_case() -> None:
    assert {rule.record for rule in RULES} == CASES.keys() | BY_LABEL.keys()


def test_nothing_is_carried_on_once_the_run_is_over(promtool: Path, tmp_path: Path) -> None:
    left = [
        worker("alpasim_simulation_elapsed_seconds", 0, "0+1x60 stale"),
        worker("alpasim_rollouts_total", 0, "0+1x60 stale", 'status="completed"'),
    ]
    gone = {"expr": '{__name__=~".+:.*completed:.+"}', "eval_time": "120s", "exp_samples": []}
    document = {
        "rule_files": ["rules.yml"],
        "tests": [{"interval": "1s", "input_series": left, "promql_expr_test": [gone]}],
    }
    (tmp_path / "rules.yml").write_text(render_rules())
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))

    assert "SUCCESS" in run(promtool, "test", "rules", "test.yml", folder=tmp_path)


def test_the_rules_record_what_they_say(promtool: Path, tmp_path: Path) -> None:
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1s",
        "tests": [case(rule.record) for rule in RULES],
    }
    (tmp_path / "rules.yml").write_text(render_rules())
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document))

    assert "SUCCESS" in run(promtool, "test", "rules", "test.yml", folder=tmp_path)
