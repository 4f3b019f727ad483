"""What a wrong command line gets: one line, the way out, and status 2."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rolltop.cli.entry import AskedToEnd
from rolltop.cli.main import run_command_line
from rolltop.model.run import RunPaths

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "--nonsense"], ["open", "--port", "x"], ["plot", "a", "b"]]
)
def test_wrong_usage(arguments, capsys):
    assert run_command_line(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("rolltop: ")
    assert "fault of rolltop" not in said.err
    assert len(said.err.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["nonsense"], "rolltop --help lists the commands"),
        (["--nonsense"], "rolltop --help lists the commands"),
        (["run", "--nonsense"], "rolltop run --help lists what it takes"),
        (["plot"], "rolltop plot --help lists what it takes"),
        (["open", "--port", "x"], "rolltop open --help lists what it takes"),
    ],
)
def test_the_hint_is_about_the_command(arguments, hint, capsys):
    assert run_command_line(arguments) == 2
    assert capsys.readouterr().err.endswith(f"  hint: {hint}\n")


def test_no_arguments_ask_for_the_help(capsys):
    assert run_command_line([]) == 0
    bare = capsys.readouterr()
    assert run_command_line(["--help"]) == 0
    assert bare == capsys.readouterr()


def test_the_help_is_whole_in_80_columns_with_examples_and_the_way_to_the_docs(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command_line(["--help"]) == 0
    said = capsys.readouterr().out
    assert "..." not in said.partition("Commands:")[2]
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "\n    rolltop run sim=tiny" in said
    assert "\n    rolltop open latest" in said
    page = next(word for word in said.split() if word.endswith(".md."))[:-1]
    assert (Path(__file__).parents[2] / page).is_file()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (".", "is a directory"),
        ("nodir/x.png", "the folder nodir is not there"),
        ("file/x.png", "file is a file, not a folder"),
        ("file/below/x.png", "the folder file/below is not there"),
        ("n" * 300, "File name too long"),
        (f"{'n' * 300}/x.png", "File name too long"),
        ("pipe", "is no file that can be replaced"),
        ("/dev/full", "is no file that can be replaced"),
        ("/dev/null", "is no file that can be replaced"),
        ("dangling", "the folder"),
        ("to_itself", "to_itself"),
        ("to_pipe", "is no file that can be replaced"),
    ],
)
def test_a_picture_that_has_no_place_is_told_plainly(output, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for link, to in (("dangling", "no/x"), ("to_itself", "to_itself"), ("to_pipe", "pipe")):
        (tmp_path / link).symlink_to(to)
    assert run_command_line(["plot", "latest", "-o", output]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"rolltop: --output {output}")
    assert words in said.splitlines()[0]
    assert len(said.splitlines()) == 2


def _replot_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let everything but the writing of the picture be well."""
    report = SimpleNamespace(plot=None, plot_error=error)
    monkeypatch.setattr("rolltop.lifecycle.replot.replot", lambda *_, **__: report)
    monkeypatch.setattr("rolltop.lifecycle.runs.resolve_run", lambda *_: RunPaths(Path("r")))


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "make room there, or choose another place"),
        (errno.EDQUOT, "make room there, or choose another place"),
        (errno.EROFS, "choose a place that you may write to"),
        (errno.EACCES, "choose a place that you may write to"),
        (errno.ENOENT, "make it first, or choose another place"),
        (errno.ENAMETOOLONG, "choose a shorter name"),
        (errno.EIO, "choose another place"),
    ],
)
def test_a_picture_that_is_not_written_is_told_plainly(
    number: int, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _replot_fails(monkeypatch, OSError(number, os.strerror(number), "/x/.p.png.k3j"))
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["plot", "r", "-o", "p.png"]) == 2
    said = f"rolltop: --output p.png: {os.strerror(number)}\n  hint: {hint}\n"
    assert capsys.readouterr().err == said
    assert run_command_line(["plot", "r"]) == 2
    said = f"rolltop: r/metrics_plot.png: {os.strerror(number)}\n"
    assert capsys.readouterr().err == said + "  hint: --output FILE puts it elsewhere\n"


def test_a_picture_that_is_not_drawn_is_our_fault(monkeypatch, capsys):
    _replot_fails(monkeypatch, ZeroDivisionError("x"))
    assert run_command_line(["plot", "r"]) == 70
    assert "a fault of rolltop itself: ZeroDivisionError: x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run_dir", "words"),
    [("n" * 300, "File name too long"), ("file/x", "file"), ("/proc/x", "/proc/x")],
)
def test_a_run_that_has_no_place_is_told_plainly(run_dir, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert run_command_line(["run", "sim=tiny", f"run.dir={run_dir}"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"rolltop: run.dir={tmp_path / run_dir}: ")
    assert words in said[0]
    assert len(said) == 2


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_what_is_asked_for_goes_to_standard_output(arguments, capsys):
    assert run_command_line(arguments) == 0
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


ROLLTOP = Path(sys.executable).with_name("rolltop")
HEED_ALL = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # whatever nohup or a shell in the background made of it
os.execv(sys.argv[1], sys.argv[1:])
"""
DRY = ("run", "sim=tiny", "--dry-run")


def _shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_fault(tmp_path: Path, closed: str) -> None:
    assert _shell(f"'{ROLLTOP}' {' '.join(DRY)} {closed}", tmp_path).returncode == 0


def test_an_output_that_is_full_is_told_in_a_line(tmp_path: Path) -> None:
    done = _shell(f"'{ROLLTOP}' {' '.join(DRY)} >/dev/full", tmp_path)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "fault" not in done.stderr


def test_a_directory_that_is_gone_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    line = f"cd '{tmp_path}/d' && rmdir '{tmp_path}/d' && '{ROLLTOP}' {' '.join(DRY)}"
    done = _shell(line, tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "rolltop: the current directory no longer exists\n",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("later_s", [0.0, 0.3])
def test_a_signal_before_anything_was_started_is_a_cancel(
    tmp_path: Path, number: signal.Signals, later_s: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HEED_ALL, ROLLTOP, "run", "sim=tiny", "runtime.rollouts=2000"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not _catches(process.pid, signal.SIGHUP):
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(later_s)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 5
    assert err.strip()


def test_a_cancel_while_it_is_made_ready_says_that_nothing_was_started(monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise AskedToEnd

    monkeypatch.setattr("rolltop.config.compose", interrupted)
    assert run_command_line(["run", "sim=tiny"]) == 5
    assert capsys.readouterr().err == "rolltop: cancelled before anything was started\n"


def _catches(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)
