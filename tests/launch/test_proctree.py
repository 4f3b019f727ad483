"""Whom a signal reaches: the very process that was seen, never one that took over its pid."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.launch import proctree
from rolltop.launch.ending import Killer
from rolltop.launch.proctree import Proc

from .conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pids = st.integers(1, 1 << 22)
procs = st.builds(
    Proc,
    pids,
    pids,
    pids,
    pids,
    st.sampled_from("RSDZTtXxI"),
    st.integers(0, 999),
    st.integers(0, 1 << 62),
)


def stat_line(proc: Proc, comm: bytes = b"python3") -> bytes:
    head = b"%d (%b) %b %d %d %d " % (proc.pid, comm, proc.state.encode(), *proc[1:4])
    middle = b"34816 -1 4194304 " + b"7 " * 10
    return head + middle + b"%d 0 %d 9 9 9\n" % (proc.threads, proc.start_ticks)


@given(procs, st.binary(max_size=15).filter(lambda b: b"\0" not in b))
def test_a_stat_line_reads_back_whatever_the_command_is_called(proc, comm):
    assert proctree.parse_stat(stat_line(proc, comm)) == proc


def test_a_stat_line_of_this_kernel_reads():
    me = proctree.read_proc(os.getpid())
    assert me is not None
    assert (me.pid, me.ppid, me.pgid, me.sid) == (
        os.getpid(),
        os.getppid(),
        os.getpgid(0),
        os.getsid(0),
    )
    assert me.alive


@given(st.integers(0, 60))
def test_a_stat_line_that_is_cut_short_is_an_error(length):
    line = stat_line(Proc(1, 2, 3, 4, "S", 1, 123456789))[:length]
    with pytest.raises(ValueError, match=r"cut short|invalid literal"):
        proctree.parse_stat(line)


def write(root: Path, *procs: Proc) -> None:
    for proc in procs:
        folder = root / str(proc.pid)
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "stat").write_bytes(stat_line(proc))


def test_a_scan_reads_what_is_there(tmp_path):
    procs = [Proc(pid, 1, pid, pid, "S", 1, pid) for pid in (7, 8, 900)]
    write(tmp_path, *procs)
    (tmp_path / "self").mkdir()
    (tmp_path / "9").mkdir()
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "stat").write_bytes(b"")
    (tmp_path / "11").mkdir()
    (tmp_path / "11" / "stat").write_bytes(b"11 (gone")
    assert proctree.scan(str(tmp_path)) == {proc.pid: proc for proc in procs}


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=40))
def test_what_is_below_is_found_once_and_a_circle_ends(edges):
    """Also where a reused pid makes a process its own ancestor."""
    table = {pid: Proc(pid, ppid, pid, pid, "S", 1, 0) for pid, ppid in edges}
    found = [p.pid for p in proctree.below(proctree.children_of(table), 1)]
    expected: set[int] = set()
    grown = True
    while grown:
        new = {p.pid for p in table.values() if p.ppid in expected | {1} and p.pid != 1}
        grown = not new <= expected
        expected |= new
    assert sorted(found) == sorted(expected)
    place = {pid: i for i, pid in enumerate([1, *found])}
    assert all(place[table[pid].ppid] < place[pid] for pid in found)


def test_an_environment_is_read_as_it_was_given(tmp_path):
    env = {"A": "1=2", "B": "", "C": "é\n"}
    with subprocess.Popen(["sleep", "600"], env=env) as process:
        wait_until(lambda: proctree.environment(process.pid) == env, "its environment")
        process.kill()
        process.wait()
        assert proctree.environment(process.pid) == {}


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        wait_until(lambda: os.getsid(process.pid) == process.pid, "its session")
        yield process
        process.kill()


def seen(process: subprocess.Popen[bytes]) -> Proc:
    proc = proctree.read_proc(process.pid)
    assert proc is not None
    return proc


@pytest.fixture(params=["pidfd", "no system call", "no function"])
def pidfds(request, monkeypatch):
    """Older kernels, some sandboxes and some builds of Python have no pidfds."""

    def refuse(_: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    if request.param == "no system call":
        monkeypatch.setattr(os, "pidfd_open", refuse)
    elif request.param == "no function":
        monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("pidfds")
def test_a_signal_reaches_the_process_that_was_seen(sleeper):
    assert proctree.send(seen(sleeper), signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert not proctree.send(seen_gone := Proc(sleeper.pid, 1, 1, 1, "S", 1, 0), signal.SIGTERM)
    assert not proctree.is_same(seen_gone)


@pytest.mark.usefixtures("pidfds")
def test_a_signal_spares_another_with_the_same_pid(sleeper):
    earlier = seen(sleeper)._replace(start_ticks=1)
    assert not proctree.send(earlier, signal.SIGKILL)
    proctree.kill_groups([earlier], spared=os.getpgrp())
    Killer().kill([earlier])
    assert sleeper.poll() is None


def test_a_group_is_killed_as_one_but_not_our_own(sleeper):
    ours = proctree.read_proc(os.getpid())
    assert ours is not None
    moved = seen(sleeper)._replace(pgid=ours.pgid)
    proctree.kill_groups([moved, ours], spared=ours.pgid)
    assert sleeper.poll() is None
    proctree.kill_groups([seen(sleeper)], spared=ours.pgid)
    assert sleeper.wait() == -signal.SIGKILL


def test_a_process_is_asked_once_and_killed_as_often_as_it_takes(tmp_path):
    log = tmp_path / "log"
    code = "import signal, time\nsignal.signal(15, lambda *_: print('asked', flush=True))\n"
    code += "print('up', flush=True)\nwhile True: time.sleep(600)"
    with log.open("wb") as out, subprocess.Popen(["python3", "-c", code], stdout=out) as process:
        wait_until(lambda: log.read_text() == "up\n", "its first line")
        killer = Killer()
        for _ in range(3):
            killer.ask([seen(process)])
            wait_until(lambda: log.read_text() == "up\nasked\n", "one question")
        killer.signal([seen(process)], signal.SIGTERM)
        wait_until(lambda: log.read_text() == "up\nasked\nasked\n", "another")
        process.kill()


def test_a_process_of_another_user_is_beyond_reach(monkeypatch, sleeper):
    def refuse(*_: object) -> bool:
        raise PermissionError

    killer, proc = Killer(), seen(sleeper)
    assert killer.within_reach([proc, proc._replace(state="Z")]) == [proc]
    monkeypatch.setattr(proctree, "send", refuse)
    killer.ask([proc])
    assert killer.within_reach([proc]) == []
