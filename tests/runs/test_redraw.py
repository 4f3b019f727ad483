"""A run's plot drawn again says what the run said itself: of one that ended, of one cut short."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from rolltop.lifecycle import replot as replotting
from rolltop.lifecycle.judged import read_judged
from rolltop.lifecycle.replot import replot
from rolltop.lifecycle.view import open_view
from rolltop.model.run import RunPaths

LONG = ("sim=tiny", "topology=1gpu", "runtime.rollouts=2000", "runtime.nr_workers=2")


def _check(finished, output: Path) -> None:
    """Draw again beside the run and compare with the summary and, to the pixel, with its plot."""
    paths = RunPaths(finished.run_dir)
    report = replot(paths, output=output)
    assert report.plot == output, report.missing
    assert report.bottleneck is not None
    summary = finished.summary
    assert list(report.bottleneck.evidence) == summary["bottleneck"]["evidence"]
    assert report.bottleneck.service == summary["bottleneck"]["service"]
    assert report.bottleneck.certainty == summary["bottleneck"]["certainty"]
    said = summary["seconds_per_rollout"]
    for name in ("full_run", "last_5m", "steady", "half_width", "reason"):
        value = getattr(report.throughput, name)
        assert (float(f"{value:.6g}") if isinstance(value, float) else value) == said[name]
    assert output.read_bytes() == paths.plot.read_bytes()


def test_of_a_run_that_completed(healthy, tmp_path):
    assert healthy.summary["outcome"] == "completed"
    _check(healthy, tmp_path / "again.png")


def test_of_a_run_that_was_cancelled(start_run, tmp_path):
    run = start_run(*LONG)
    run.wait_for(
        lambda: len(list(run.run_dir.glob("rollouts/*/*/result.json"))) >= 20, "20 rollouts"
    )
    run.process.send_signal(signal.SIGINT)
    done = run.finish()
    assert done.summary["outcome"] == "cancelled"
    _check(done, tmp_path / "again.png")


def test_of_a_run_that_does_not_say_when_it_was_stopped(healthy, tmp_path, monkeypatch):
    """An older one, or one that was killed: its being stopped is no part of it."""
    said = read_judged(RunPaths(healthy.run_dir).events)
    assert said is not None
    paths = RunPaths(tmp_path / "run")
    shutil.copytree(healthy.run_dir, paths.run_dir)
    paths.events.unlink()
    paths.summary.unlink()
    seen = []
    real = replotting.make_report
    monkeypatch.setattr(
        replotting, "make_report", lambda *args, **known: seen.append(known) or real(*args, **known)
    )
    with open_view(paths) as view:
        assert view.span is not None
        last_sample_s = view.span[1]
    report = replot(paths, output=tmp_path / "again.png")
    window = seen[0]["window"]
    assert window.last_rollout_s <= window.end_s < last_sample_s
    assert window.end_s <= said.window.end_s + said.interval_s
    assert report.bottleneck is not None
    assert report.bottleneck.service == healthy.summary["bottleneck"]["service"]
    assert report.panels.drawn == healthy.summary["panels"]["drawn"]
