from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from pydantic import ValidationError

import rolltop.report
from rolltop.model.estimate import Bottleneck, ThroughputEstimate
from rolltop.model.run import Failure, Outcome, RolloutCounts, RunIdentity
from rolltop.model.topology import ServicePlacement, Topology
from rolltop.report.summary import (
    PanelsRecord,
    RunSummary,
    TelemetryRecord,
    VersionsRecord,
    build_summary,
    read_summary,
    render_schema,
    render_summary,
    summary_schema,
    topology_record,
    write_summary,
)
from rolltop.report.text import render_text_summary, throughput_line

STARTED = datetime(2026, 12, 1, 12, 0, 0, tzinfo=timezone(timedelta(hours=9)))
STEADY = ThroughputEstimate(4.1, 3.9, 3.8, 0.1, 0.95, 40.0, None)
NOT_STEADY = ThroughputEstimate(4.1, 4.1, None, None, 0.95, None, "30 steps are too few")
UNKNOWN = ThroughputEstimate(None, None, None, None, 0.95, None, "no worker recorded a step")
RENDERER = Bottleneck(
    "renderer", "slots", ("its 2 instances were busy 96 % of 41 s [rate(x)]", "more"), "high"
)


def summary(**known: Any) -> RunSummary:
    defaults: dict[str, Any] = {
        "identity": RunIdentity("0f3a92c1-uuid", "demo", "somebody", STARTED),
        "outcome": Outcome.COMPLETED,
        "failure": None,
        "nodes": ["node-1"],
        "topology": topology_record(
            Topology((ServicePlacement("renderer", (0, None), 2, 4, cache_size=5),), 4),
            name="2gpu",
        ),
        "counts": RolloutCounts(12, 12),
        "throughput": STEADY,
        "bottleneck": RENDERER,
        "panels": PanelsRecord(drawn=33, empty={"GPU memory": "no GPU exporter in this run"}),
        "telemetry": TelemetryRecord(
            missing={"GPU exporter": "not in this run"},
            gaps_s=0.0,
            scrapes_lost=0,
            cpu_seconds_ratio=0.02,
        ),
        "first_rollout": STARTED + timedelta(seconds=8),
        "ended": STARTED + timedelta(seconds=68),
        "versions": VersionsRecord(rolltop="0.1.0", prometheus="2.42.0"),
    }
    return build_summary(**(defaults | known))


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = Path(rolltop.report.__file__).parent / "schema" / "summary.schema.json"

    assert published.read_text(encoding="utf-8") == render_schema()
    jsonschema.Draft202012Validator.check_schema(summary_schema())


@pytest.mark.parametrize(
    "made",
    [
        summary(),
        summary(throughput=NOT_STEADY, bottleneck=None),
        summary(throughput=UNKNOWN, counts=RolloutCounts(12), first_rollout=None),
        summary(
            outcome=Outcome.FAILED,
            failure=Failure("renderer-0", None, "could not start", ("a", "b")),
        ),
    ],
    ids=["whole", "not steady", "unknown", "failed"],
)
def test_what_is_written_holds_to_the_schema_and_reads_back(
    made: RunSummary, tmp_path: Path
) -> None:
    path = tmp_path / "summary.json"
    write_summary(path, made)
    document = json.loads(path.read_text(encoding="utf-8"))

    jsonschema.validate(document, summary_schema(), format_checker=jsonschema.FormatChecker())
    assert read_summary(path) == made
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_the_fields_are_those_of_the_specification() -> None:
    document = json.loads(render_summary(summary()))

    assert list(document) == [
        "schema",
        "run_uuid",
        "run_name",
        "outcome",
        "failure",
        "attempts",
        "nodes",
        "topology",
        "rollouts",
        "seconds_per_rollout",
        "bottleneck",
        "panels",
        "telemetry",
        "times",
        "versions",
    ]
    assert document["schema"] == 1
    assert document["topology"]["services"]["renderer"]["gpus"] == [0, None]
    assert document["topology"]["capacity"] == 16
    assert document["attempts"] == [
        {
            "slurm_job_id": None,
            "started": "2026-12-01T03:00:00.000Z",
            "ended": "2026-12-01T03:01:08.000Z",
            "outcome": "completed",
        }
    ]
    assert document["times"]["first_rollout"] == "2026-12-01T03:00:08.000Z"


def test_an_unknown_is_null_and_says_why() -> None:
    nothing = TelemetryRecord(
        missing={"bottleneck": "no worker recorded a step"},
        gaps_s=None,
        scrapes_lost=None,
        cpu_seconds_ratio=None,
    )
    made = summary(
        throughput=UNKNOWN,
        bottleneck=None,
        telemetry=nothing,
        counts=RolloutCounts(12),
        first_rollout=None,
        versions=VersionsRecord(rolltop="0.1.0", prometheus=None),
    )
    document = json.loads(render_summary(made))

    assert document["seconds_per_rollout"]["full_run"] is None
    assert document["telemetry"]["missing"] == {
        "bottleneck": "no worker recorded a step",
        "seconds_per_rollout.full_run": "no rollout was completed",
        "seconds_per_rollout.last_5m": "no rollout was completed",
        "telemetry.cpu_seconds_ratio": "not measured in this run",
        "telemetry.gaps_s": "not measured in this run",
        "telemetry.scrapes_lost": "not measured in this run",
        "times.first_rollout": "not measured in this run",
        "versions.prometheus": "not measured in this run",
    }


def test_a_number_that_is_none_is_an_unknown() -> None:
    odd = ThroughputEstimate(float("nan"), float("inf"), None, None, 0.95, None, "odd")
    document = json.loads(render_summary(summary(throughput=odd)))

    assert document["seconds_per_rollout"]["full_run"] is None
    assert document["seconds_per_rollout"]["last_5m"] is None


def test_secrets_of_a_log_stay_out() -> None:
    failure = Failure("driver-0", 1, "API_TOKEN=hunter2secret", ("password: hunter2secret",))

    assert "hunter2secret" not in render_summary(summary(failure=failure))


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    document = json.loads(render_summary(summary())) | {"speed": 1}
    (tmp_path / "summary.json").write_text(json.dumps(document))

    with pytest.raises(ValidationError, match="speed"):
        read_summary(tmp_path / "summary.json")


def test_a_folder_that_is_gone_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="absent"):
        write_summary(tmp_path / "absent" / "summary.json", summary())

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("estimate", "line"),
    [
        (STEADY, "3.8 ± 0.1 s per rollout (95 %), steady since 40 s"),
        (
            NOT_STEADY,
            "4.1 s per rollout over the whole run; no steady figure: 30 steps are too few",
        ),
        (UNKNOWN, "seconds per rollout unknown: no worker recorded a step"),
        (
            ThroughputEstimate(1.2, 1.2, 1.21382, 0.01385, 0.95, 2.0, None),
            "1.214 ± 0.014 s per rollout (95 %), steady since 2 s",
        ),
        (
            ThroughputEstimate(120, 120, 118.2, 12.3, 0.95, 300.0, None),
            "118 ± 12 s per rollout (95 %), steady since 300 s",
        ),
    ],
)
def test_a_speed_is_said_with_the_figures_that_are_known(
    estimate: ThroughputEstimate, line: str
) -> None:
    assert throughput_line(estimate) == line


def test_the_end_of_a_run_in_a_few_lines() -> None:
    made = summary(counts=RolloutCounts(12, 11, 1, 3), outcome=Outcome.COMPLETED)
    lines = render_text_summary(
        made, plot=Path("runs/x/metrics_plot.png"), open_command="rolltop open runs/x"
    )

    assert lines == [
        "rollouts  11 of 12 completed, 1 abandoned, 3 failed attempts",
        "speed     3.8 ± 0.1 s per rollout (95 %), steady since 40 s",
        "busiest   renderer: its 2 instances were busy 96 % of 41 s (certainty high)",
        "plot      runs/x/metrics_plot.png (33 panels, 1 empty)",
        "open      rolltop open runs/x",
    ]


@pytest.mark.parametrize(
    ("n_silent", "said"),
    [
        (0, []),
        (1, ["missing   worker-0's page was expected at x: why"]),
        (
            2,
            [
                "missing   worker-0's page was expected at x: why",
                "          worker-1's page was expected at x: why",
            ],
        ),
        (
            4,
            [
                "missing   worker-0's page was expected at x: why",
                "          worker-1's page was expected at x: why (and so for 2 more workers)",
            ],
        ),
    ],
)
def test_the_end_of_a_run_names_the_workers_whose_pages_did_not_answer(
    n_silent: int, said: list[str]
) -> None:
    known = dict.fromkeys(("bottleneck", "runtime worker"), "not known")
    made = summary()
    silent = {
        f"runtime worker 127.0.0.1:{n}": f"worker-{n}'s page was expected at x: why"
        for n in range(n_silent)
    }
    telemetry = made.telemetry.model_copy(update={"missing": known | silent})
    lines = render_text_summary(made.model_copy(update={"telemetry": telemetry}))

    assert lines[3 : 3 + len(said)] == said
    assert lines[3 + len(said)].startswith("plot ")


def test_the_end_of_a_failed_run_names_the_process() -> None:
    made = summary(
        outcome=Outcome.OUT_OF_MEMORY,
        failure=Failure("renderer-0", 137, "was killed by SIGKILL (9)"),
        counts=RolloutCounts(12, 2, 0, 1),
        bottleneck=None,
        throughput=UNKNOWN,
    )
    lines = render_text_summary(made)

    assert lines[0] == "rollouts  2 of 12 completed, 1 failed attempt; outcome: out of memory"
    assert lines[2] == "busiest   unknown: not measured in this run"
    assert lines[3] == "failure   renderer-0: was killed by SIGKILL (9)"
    assert lines[4] == "plot      none: there was no telemetry"


def test_the_end_of_a_failed_run_shows_the_end_of_the_log() -> None:
    said = tuple(f"line {number}" for number in range(20))
    made = summary(
        outcome=Outcome.FAILED,
        failure=Failure("driver-0", 3, "ended with exit status 3", said),
    )
    lines = render_text_summary(made, failure_log=Path("runs/x/logs/driver-0.log"))

    start = lines.index("failure   driver-0: ended with exit status 3")
    assert lines[start + 1 : start + 13] == [
        "          its last log lines:",
        *(f"            line {number}" for number in range(10, 20)),
        "log       runs/x/logs/driver-0.log",
    ]


def test_a_log_that_says_nothing_is_named_as_such() -> None:
    made = summary(
        outcome=Outcome.FAILED, failure=Failure("driver-0", 1, "ended with exit status 1")
    )
    lines = render_text_summary(made, failure_log=Path("driver-0.log"))
    assert "log       driver-0.log (says nothing)" in lines
    assert not any("last log lines" in line for line in lines)
