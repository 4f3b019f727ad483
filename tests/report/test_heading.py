from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rolltop.analysis.bottleneck import BottleneckFinding
from rolltop.model.estimate import Bottleneck, ThroughputEstimate
from rolltop.model.run import RolloutCounts, RunIdentity
from rolltop.report.heading import LINE_CHARS, plot_header

STEADY = ThroughputEstimate(1.083, 1.083, 1.36, 0.12, 0.95, 8.2, None)
SHORT = ThroughputEstimate(1.083, 1.083, None, None, 0.95, None, "too few steps")
UNKNOWN = BottleneckFinding(None, "no worker recorded a step")


def lines(
    throughput: ThroughputEstimate = STEADY, finding: BottleneckFinding = UNKNOWN
) -> tuple[str, ...]:
    identity = RunIdentity(
        run_uuid="0f3a92c1-0000-4000-8000-000000000000",
        run_name="demo",
        user="someone",
        started=datetime(2026, 1, 2, tzinfo=UTC),
    )
    counts = RolloutCounts(requested=36, completed=36)
    return plot_header(identity, "2gpu", counts, throughput, finding).lines


def found(service: str, *evidence: str) -> BottleneckFinding:
    return BottleneckFinding(Bottleneck(service, "instances", evidence, "high"))


def test_the_speed_says_what_it_comes_from_beside_what_an_eye_would_divide() -> None:
    assert lines()[1] == (
        "1.36 ± 0.12 s per rollout (95 %), steady since 8 s: from the steps per second from there"
        " until rollouts run out (shaded: warm-up) · whole run: 36 rollouts in 39 s, 1.08 s each"
    )


def test_without_a_steady_figure_there_is_no_word_of_it() -> None:
    assert lines(SHORT)[1] == (
        "1.08 s per rollout over the whole run; no steady figure: too few steps"
    )


@pytest.mark.parametrize(
    ("service", "who"),
    [("renderer", "busiest service renderer"), ("runtime", "the workers limit the run")],
)
def test_the_limit_says_of_which_part_of_the_run_it_is(service: str, who: str) -> None:
    assert lines(finding=found(service, "busy 84 % of 35 s [rate(x)]"))[2] == (
        f"{who}: busy 84 % of 35 s"
        " (certainty high; while the run was busy, the bars are of all of it)"
    )


def test_long_evidence_does_not_push_out_how_certain_it_is() -> None:
    line = lines(finding=found("renderer", "word " * 99))[2]

    assert len(line) <= LINE_CHARS
    assert " … (certainty high; " in line
