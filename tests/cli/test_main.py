"""What a wrong command line gets: one line, the way out, and status 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rolltop.cli.main import _main


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--nonsense"], ["open", "--port", "x"], ["plot", "a", "b"]]
)
def test_wrong_usage(arguments, capsys):
    assert _main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rolltop: ")
    assert "fault of rolltop" not in said.err
    assert len(said.err.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_what_is_asked_for_goes_to_standard_output(arguments, capsys):
    assert _main(arguments) == 0
    said = capsys.readouterr()
    assert said.out
    assert said.err == ""


@pytest.mark.parametrize("arguments", [["run", "--dry-run", "sim=tiny"], ["deps", "--json"]])
def test_a_reader_that_leaves_is_no_fault(arguments, tmp_path):
    rolltop = Path(sys.executable).with_name("rolltop")
    with subprocess.Popen(
        [rolltop, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
