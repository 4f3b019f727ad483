"""The house's own rule that a test which did not run is no pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SAMPLE = """
import pytest

def test_runs():
    pass

@pytest.mark.skip(reason="no time")
def test_skipped():
    pass
"""
EXPECTED_FAILURE = """
import pytest

@pytest.mark.xfail(reason="known")
def test_fails():
    raise AssertionError
"""
WHOLE_MODULE = """
import pytest

pytest.skip("not here", allow_module_level=True)
"""


def run_pytest(folder: Path, text: str, *args: str, allowed: str = "") -> tuple[int, str]:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (folder / "tests" / "test_sample.py").write_text(text)
    (folder / "tests" / "allowed_skips.txt").write_text(allowed)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args, "tests"],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (SAMPLE, "tests/test_sample.py::test_skipped: Skipped: no time"),
        (EXPECTED_FAILURE, "tests/test_sample.py::test_fails: known"),
    ],
)
def test_an_unlisted_one_fails_the_session_and_is_named(tmp_path, text, node):
    status, out = run_pytest(tmp_path, text)
    assert status == 1
    assert node in out
    assert out.rstrip().splitlines()[-1].startswith("=")  # pytest's closing line is the last


def test_a_skipped_module_fails_the_session(tmp_path):
    status, out = run_pytest(tmp_path, WHOLE_MODULE + SAMPLE, "--import-mode=importlib")
    assert status != 0
    assert "not listed" in out


def test_both_are_seen_from_the_process_that_hands_out_the_files(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_whole.py").write_text(WHOLE_MODULE)
    status, out = run_pytest(tmp_path, SAMPLE, "-p", "xdist", "-n", "1", "--import-mode=importlib")
    assert status == 1
    assert "tests/test_sample.py::test_skipped: Skipped: no time" in out
    assert "tests/test_whole.py: Skipped: not here" in out


def test_a_listed_one_passes(tmp_path):
    allowed = "# comment\n\ntests/test_sample.py::test_skipped # there is no time on Mondays\n"
    status, out = run_pytest(tmp_path, SAMPLE, allowed=allowed)
    assert status == 0
    assert "1 passed, 1 skipped" in out


def test_a_listed_one_needs_a_reason(tmp_path):
    status, _ = run_pytest(tmp_path, SAMPLE, allowed="tests/test_sample.py::test_skipped\n")
    assert status != 0
