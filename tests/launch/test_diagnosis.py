"""What the end of a process means."""

from __future__ import annotations

import errno

import pytest

from rolltop.launch.diagnosis import (
    OomWatch,
    ProcessExit,
    ProcessFailedError,
    diagnose,
    signal_name,
    why_not_started,
)
from rolltop.model.run import Failure, Outcome


@pytest.mark.parametrize(
    ("ended", "status", "text"),
    [
        (ProcessExit("a", 1, status=0), 0, "ended with exit status 0"),
        (ProcessExit("a", 1, status=3), 3, "ended with exit status 3"),
        (ProcessExit("a", 1, signal=11), 139, "was killed by SIGSEGV (11)"),
        (ProcessExit("a", 1, signal=42), 170, "was killed by signal 42"),
        (ProcessExit("a", not_started="no such thing"), None, "could not start: no such thing"),
    ],
)
def test_an_exit_is_described(ended, status, text):
    assert ended.exit_status == status
    assert ended.describe() == text
    assert ended.ok is (status == 0)


def test_a_failure_has_the_log_and_the_error_shows_it():
    ended = ProcessExit("renderer-3", 1, status=1)
    outcome, failure = diagnose(ended, ["a", "b"])
    assert outcome is Outcome.FAILED
    assert failure == Failure("renderer-3", 1, "ended with exit status 1", ("a", "b"))
    error = ProcessFailedError(failure)
    assert error.message == "renderer-3 ended with exit status 1"
    assert error.hint == "its last log lines:\na\nb"
    assert (error.exit_status, error.port_taken) == (3, False)
    assert ProcessFailedError(Failure("a", 1, "ended")).hint is None


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        ("out of memory", "RuntimeError: CUDA Out Of Memory. Tried ...", True),
        (r"alloc\w+ failed", "Allocation failed", True),
        ("std::bad_alloc", "terminate: std::bad_alloc", True),
        ("bad[alloc", "it is a bad[alloc", True),
        ("out of memory", "all is well", False),
    ],
)
def test_memory_that_ran_out_is_read_from_the_log(pattern, line, matches):
    ended = ProcessExit("a", 1, status=1)
    outcome, failure = diagnose(ended, ["x", line], oom_patterns=["never", pattern])
    assert (outcome is Outcome.OUT_OF_MEMORY) is matches
    assert (f"out of memory, its log says: {line}" in failure.reason) is matches
    assert ProcessFailedError(failure, outcome=outcome).exit_status == (4 if matches else 3)


def test_a_process_that_ended_well_was_not_out_of_memory():
    outcome, _ = diagnose(ProcessExit("a", 1, status=0), ["oom"], oom_patterns=["oom"])
    assert outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("ended", "seen", "expected", "hint"),
    [
        (ProcessExit("a", 1, signal=9), True, Outcome.OUT_OF_MEMORY, "for want of memory"),
        (ProcessExit("a", 1, signal=9), False, Outcome.FAILED, "if nobody sent that signal"),
        (ProcessExit("a", 1, signal=9, requested=True), True, Outcome.FAILED, ""),
        (ProcessExit("a", 1, signal=11), True, Outcome.FAILED, ""),
        (ProcessExit("a", 1, status=1), True, Outcome.FAILED, ""),
    ],
)
def test_a_kill_is_the_kernels_only_with_evidence(ended, seen, expected, hint):
    outcome, failure = diagnose(ended, [], oom_seen=seen)
    assert outcome is expected
    assert failure.reason.startswith(ended.describe())
    assert hint in failure.reason
    assert ("memory" in failure.reason) is bool(hint)


def test_the_kernels_kills_are_counted(tmp_path):
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("nr_free_pages 7\noom_kill 3\n")
    watch = OomWatch(tmp_path)
    assert not watch.rose()
    vmstat.write_text("nr_free_pages 7\noom_kill 4\n")
    assert watch.rose()
    vmstat.write_text("nr_free_pages 7\n")
    assert not watch.rose()
    vmstat.unlink()
    assert not watch.rose()
    assert not OomWatch(tmp_path).rose()


def test_this_kernel_counts_or_says_nothing():
    assert not OomWatch().rose()


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 1)",
        "listen tcp 127.0.0.1:9090: bind: address already in use",
        "RuntimeError: Failed to bind to address 127.0.0.1:20001",
        "Error: listen EADDRINUSE: address already in use :::3000",
    ],
)
def test_a_port_that_was_taken_is_told_by_the_log(line):
    assert ProcessFailedError(Failure("a", 1, "ended", ("x", line))).port_taken


def test_other_lines_are_no_taken_port():
    assert not ProcessFailedError(Failure("a", 1, "ended", ("errno 980", "bound"))).port_taken


@pytest.mark.parametrize(
    ("stage", "number", "argv", "expected"),
    [
        ("fork", errno.EAGAIN, ["x"], "the system starts no further process: Resource"),
        ("log", errno.EACCES, ["x"], "its log /l cannot be opened: Permission denied"),
        ("cwd", errno.ENOENT, ["x"], "its working directory /c cannot be entered: No such"),
        ("exec", errno.ENOENT, ["x"], "there is no program 'x' on the PATH"),
        ("exec", errno.ENOENT, ["/x/y"], "/x/y: No such file"),
        ("exec", errno.E2BIG, ["x"], "x: Argument list too long"),
        ("exec", errno.EINVAL, [], ": Invalid argument"),
    ],
)
def test_a_start_that_failed_says_why(stage, number, argv, expected):
    assert why_not_started(stage, number, argv, "/c", "/l").startswith(expected)


def test_signals_have_names():
    assert signal_name(15) == "SIGTERM (15)"
    assert signal_name(0) == "signal 0"
