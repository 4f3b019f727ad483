"""Two commands do everything, and CI calls what a person calls."""

from __future__ import annotations

import os
import subprocess

import pytest

from scripts.repository import ROOT

SCRIPTS = (
    ".ci/run",
    "scripts/setup",
    "scripts/test_bare",
    "scripts/pin_constraints",
    "scripts/take_pictures",
)


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_can_be_run_and_stop_at_the_first_error(script):
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")
    run("bash", "-n", script)


def test_ci_calls_the_targets_and_ends_with_the_tests():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("make ")] == [
        "make check",
        "make docs",
        "make test",
    ]
    assert lines[-1] == "make test"


def test_make_alone_lists_the_targets():
    out = run("make")
    for target in ("setup", "demo", "check", "test", "test-bare", "bench", "docs", "clean"):
        assert f"make {target} " in out


def test_the_demo_is_the_run_that_the_readme_shows():
    planned = run("make", "-n", "demo")
    for override in ("deploy=local", "sim=driving", "topology=2gpu", "runtime.nr_workers=4"):
        assert override in planned
