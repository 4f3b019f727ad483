"""Nothing is left of a run, whatever kills its launcher: real processes, really killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rolltop.launch import guard, guard_client
from rolltop.launch.diagnosis import diagnose
from rolltop.launch.supervisor import Supervisor

from .conftest import PROGRAMS, living_with, python, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STUBBORN = str(PROGRAMS / "stubborn.py")
RUNAWAY = str(PROGRAMS / "runaway.py")


class Launcher:
    """A launcher in a process group of its own, to be killed."""

    def __init__(self, folder: Path, *programs: str, grace_s: float = 0.3) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        argv = [sys.executable, str(PROGRAMS / "launcher.py"), str(folder), str(grace_s)]
        self.process = subprocess.Popen(
            [*argv, *programs],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def until_up(self) -> None:
        assert self.said() == "up"
        logs = list(self.folder.glob("*.log"))
        wait_until(lambda: all("up" in p.read_text() for p in logs), "programs that run")

    @property
    def guard_pid(self) -> int:
        return int((self.folder / "guard.pid").read_text())

    def wait_for_nothing(self) -> None:
        wait_until(lambda: living_with(str(self.folder)) == [], "the end of every process")

    def close(self) -> None:
        self.process.kill()
        self.wait_for_nothing()
        self.process.communicate()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Launcher]]:
    started: list[Launcher] = []

    def start(*programs: str, grace_s: float = 0.3) -> Launcher:
        folder = tmp_path / f"launcher-{len(started)}"
        started.append(Launcher(folder, *programs, grace_s=grace_s))
        return started[-1]

    yield start
    for launcher in started:
        launcher.close()


@pytest.mark.parametrize(
    "signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSEGV]
)
def test_nothing_outlives_a_launcher_that_is_killed(launch, signum):
    launcher = launch(STUBBORN, STUBBORN + " bare")
    launcher.until_up()
    launcher.process.send_signal(signum)
    launcher.wait_for_nothing()


def test_nothing_outlives_a_launcher_killed_with_its_process_group(launch):
    launcher = launch(STUBBORN, STUBBORN + " bare", grace_s=guard.END_GRACE_S)
    launcher.until_up()
    os.killpg(launcher.process.pid, signal.SIGKILL)
    launcher.wait_for_nothing()


def test_no_secret_stays_in_a_log_when_the_launcher_is_killed(launch):
    launcher = launch(STUBBORN, str(PROGRAMS / "talkative.py"))
    launcher.until_up()
    launcher.process.kill()
    launcher.wait_for_nothing()
    log = launcher.folder / "talkative-1.log"
    wait_until(lambda: "hunter2" not in log.read_text(), "the guard's last work")
    assert log.read_text() == "DB_PASSWORD=[redacted]\nup\n"
    assert log.stat().st_mode & 0o777 == 0o640
    assert (launcher.folder / "made").stat().st_mode & 0o777 == 0o640


def test_nothing_outlives_launchers_killed_at_any_moment(launch):
    rng = random.Random()
    launchers = [launch(STUBBORN, STUBBORN + " bare", STUBBORN) for _ in range(6)]
    for launcher in launchers:
        at_line = rng.randrange(3)
        if at_line:
            wait_until((launcher.folder / "guard.pid").exists, "a guard")
        if at_line > 1:
            launcher.said()
        launcher.process.kill()
    for launcher in launchers:
        launcher.wait_for_nothing()


def test_nothing_outlives_it_that_forks_all_the_time(launch):
    launcher = launch(RUNAWAY, RUNAWAY + " setsid", STUBBORN)
    launcher.until_up()
    launcher.process.kill()
    launcher.wait_for_nothing()


def test_a_guard_that_is_killed_leaves_nothing_and_is_reported(launch):
    launcher = launch(STUBBORN, STUBBORN)
    launcher.until_up()
    os.kill(launcher.guard_pid, signal.SIGKILL)
    assert launcher.said() == "guard was killed by SIGKILL (9)"
    assert launcher.said() == "stubborn-0 was killed by SIGKILL (9)"
    assert living_with(str(launcher.folder)) == [launcher.process.pid]


async def test_a_guard_that_is_stopped_is_killed_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(guard_client, "_PINGS_TO_STOPPED_MAX", 2)
    async with Supervisor(tmp_path, guard_log=tmp_path / "guard.log") as supervisor:
        sleeper = python("sleeper-0", "import time; time.sleep(600)", str(tmp_path))
        pid = await supervisor.start(sleeper, tmp_path / "sleeper-0.log")
        assert supervisor.guard_pid is not None
        os.kill(supervisor.guard_pid, signal.SIGSTOP)
        ended = await supervisor.exits.get()
        assert (ended.name, ended.signal) == ("guard", signal.SIGKILL)
        _, failure = diagnose(ended, ())
        assert failure.reason == "did not answer for 4 s, and was killed for it"
        assert (await supervisor.exits.get()).pid == pid
        assert living_with(str(tmp_path)) == []


async def test_a_guard_that_is_only_held_up_has_more_time(tmp_path, monkeypatch):
    """It is stopped here too, but looks as one that waits for its turn or for a file system."""
    for name, value in {"TO_STOPPED_MAX": 1, "MAX": 4}.items():
        monkeypatch.setattr(guard_client, f"_PINGS_{name}", value)
    monkeypatch.setattr(guard_client, "_PING_EVERY_S", 0.5)
    monkeypatch.setattr(guard_client, "_is_stopped", lambda _pid: False)
    async with Supervisor(tmp_path, guard_log=tmp_path / "guard.log") as supervisor:
        assert supervisor.guard_pid is not None
        os.kill(supervisor.guard_pid, signal.SIGSTOP)
        _, failure = diagnose(await supervisor.exits.get(), ())
        assert failure.reason == "did not answer for 2 s, and was killed for it"


async def test_a_guard_that_is_stopped_at_the_end_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(guard_client, "_PINGS_TO_STOPPED_MAX", 2)
    supervisor = Supervisor(tmp_path, guard_log=tmp_path / "guard.log")
    await supervisor.open()
    sleeper = python("sleeper-0", "import time; time.sleep(600)", str(tmp_path))
    await supervisor.start(sleeper, tmp_path / "sleeper-0.log")
    assert supervisor.guard_pid is not None
    os.kill(supervisor.guard_pid, signal.SIGSTOP)
    await supervisor.close(grace_s=0.1)
    assert living_with(str(tmp_path)) == []


@pytest.mark.parametrize(
    "signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE]
)
def test_signals_to_everybody_do_not_end_the_guard(launch, signum):
    launcher = launch(STUBBORN)
    launcher.until_up()
    before = living_with(str(launcher.folder))
    os.kill(launcher.guard_pid, signum)
    os.kill(launcher.guard_pid, signal.SIGCHLD)
    assert living_with(str(launcher.folder)) == before


def test_ctrl_c_reaches_the_launcher_only(launch):
    note = "import signal, sys, time\nfor s in (2, 15):\n"
    note += "    signal.signal(s, lambda n, _: (print('got', n, flush=True), sys.exit()))\n"
    note += "print('up', flush=True)\ntime.sleep(600)"
    launcher = launch()
    script = launcher.folder / "note.py"
    script.write_text(note)
    other = launch(str(script))
    other.until_up()
    os.killpg(other.process.pid, signal.SIGINT)
    other.wait_for_nothing()
    assert (other.folder / "note-0.log").read_text() == "up\ngot 15\n"


# -- the guard alone ---------------------------------------------------------------------------


class BareGuard:
    """A guard with this test as its launcher."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair()
        self.link.settimeout(30)
        self.lines = self.link.makefile("rb")
        with theirs:
            command = guard_client.guard_command(theirs.fileno(), os.getpid())
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        assert self.event()["event"] == "ready"

    def send(self, text: bytes) -> None:
        self.link.sendall(text)

    def event(self) -> dict[str, object]:
        return json.loads(self.lines.readline())

    def close(self) -> int:
        self.lines.close()
        self.link.close()
        return self.process.wait(30)


@pytest.fixture
def bare() -> Iterator[BareGuard]:
    it = BareGuard()
    yield it
    assert it.close() == 0


def spawn(name: str, argv: list[str], folder: Path, **env: str) -> bytes:
    command = {"op": "spawn", "name": name, "argv": argv, "env": env, "cwd": str(folder)}
    return json.dumps({**command, "log": str(folder / f"{name}.log")}).encode() + b"\n"


@pytest.mark.parametrize(
    "line", [b"no json\n", b"{}\n", b"[]\n", b'"x"\n', b'{"op": "dance"}\n', b"\xff\n"]
)
def test_a_command_that_makes_no_sense_is_refused_and_no_more(bare, tmp_path, line):
    bare.send(line)
    assert bare.event()["event"] == "error"
    bare.send(spawn("a", ["/bin/true"], tmp_path))
    assert [bare.event()["event"] for _ in range(3)] == ["spawned", "exited", "gone"]


def test_commands_arrive_in_any_pieces(bare, tmp_path):
    for byte in spawn("a", ["/bin/true"], tmp_path) + spawn("b", ["/bin/false"], tmp_path)[:-1]:
        bare.send(bytes([byte]))
    assert [bare.event()["name"] for _ in range(3)] == ["a", "a", "a"]
    bare.send(b"\n")
    assert bare.event()["name"] == "b"
    assert bare.event() | {"pid": 0, "cpu_s": 0.0} == {
        "event": "exited",
        "name": "b",
        "pid": 0,
        "status": 1,
        "signal": None,
        "cpu_s": 0.0,
    }
    assert bare.event() == {"event": "gone", "name": "b"}


def test_a_name_is_refused_while_it_runs(bare, tmp_path):
    bare.send(spawn("a", ["sleep", "600"], tmp_path, PATH=os.defpath))
    assert bare.event()["event"] == "spawned"
    bare.send(spawn("a", ["sleep", "600"], tmp_path, PATH=os.defpath))
    assert bare.event()["reason"] == "ValueError: a is running already"


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        ({"log": "/nowhere/x.log"}, "log"),
        ({"cwd": "/nowhere"}, "cwd"),
        ({"argv": ["/nowhere"]}, "exec"),
        ({"argv": ["nowhere"]}, "exec"),
        ({"argv": []}, "exec"),
        ({"argv": ["/bin/true", "a\0b"]}, "exec"),
        ({"env": {"A=B": "c"}}, "exec"),
        ({"env": {"A": "b\0c"}}, "exec"),
    ],
)
def test_what_cannot_start_says_at_which_stage(bare, tmp_path, change, stage):
    command = json.loads(spawn("a", ["/bin/true"], tmp_path))
    bare.send(json.dumps(command | change).encode() + b"\n")
    event = bare.event()
    assert (event["event"], event["name"], event["stage"]) == ("failed", "a", stage)
    bare.send(spawn("a", ["/bin/true"], tmp_path))
    assert bare.event()["event"] == "spawned"


def test_a_copy_of_the_socket_in_another_process_does_not_keep_the_guard(tmp_path):
    code = (
        "import os, socket, sys, subprocess, time\n"
        "from rolltop.launch.guard_client import guard_command\n"
        "ours, theirs = socket.socketpair()\n"
        "command = guard_command(theirs.fileno(), os.getpid())\n"
        "guard = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=2)\n"
        "ours.makefile('rb').readline()\n"
        "print(guard.pid, flush=True)\n"
        "if os.fork() == 0: time.sleep(600)\n"
        "print('forked', flush=True)\n"
        "time.sleep(600)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        guard_pid = int(launcher.stdout.readline())
        launcher.stdout.readline()
        copy = [p for p in living_with(str(tmp_path)) if p != launcher.pid]
        launcher.kill()
        wait_until(lambda: not Path(f"/proc/{guard_pid}").exists(), "the guard's end")
        assert living_with(str(tmp_path)) == copy
        os.kill(copy[0], signal.SIGKILL)


def test_a_guard_whose_launcher_is_another_one_ends():
    _ours, theirs = socket.socketpair()
    with _ours, theirs:
        command = guard_client.guard_command(theirs.fileno(), os.getppid())
        stranger = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        assert stranger.wait(30) == 0


def test_the_guard_imports_nothing_heavy():
    code = "import sys; sys.path.append(sys.argv[1]); import rolltop.launch.guard; "
    code += "print(*sys.modules)"
    source = str(Path(guard_client.__file__).parents[2])
    argv = [sys.executable, "-I", "-S", "-c", code, source]
    loaded = set(subprocess.check_output(argv, text=True).split())
    ours = {name for name in loaded if name.startswith("rolltop")}
    rooms = {"rolltop", "rolltop.launch"}
    assert ours == rooms | {f"rolltop.launch.{m}" for m in ("ending", "guard", "proctree")}
    assert loaded.isdisjoint({"asyncio", "subprocess", "dataclasses", "logging", "numpy"})
