"""Starting, watching and stopping, with real processes through a real guard."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from rolltop.errors import LaunchError
from rolltop.launch import guard_client
from rolltop.launch.diagnosis import ProcessExit, ProcessFailedError
from rolltop.launch.proctree import read_file
from rolltop.launch.supervisor import Supervisor
from rolltop.model.plan import HealthCheck, HealthKind, ProcessPlan, Role
from rolltop.model.run import Failure, Outcome

from .conftest import eventually, living_with, program, python

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(15, signal.SIG_IGN)\n" + SLEEP


def command(*argv: str) -> ProcessPlan:
    return ProcessPlan("it", Role.SERVICE, argv)


# -- start --------------------------------------------------------------------------------------


async def test_a_process_runs_with_its_arguments_environment_and_folder(tmp_path, monkeypatch):
    code = "import os, sys; print(ascii((sys.argv[1:], os.environ['A'], os.environ['B'])), end=' ')"
    code += "; print(os.getcwd())"
    monkeypatch.setenv("A", "ours")
    monkeypatch.setenv("B", "ours")
    plan = python("it", code, "x y", "", "\udcff\n{}", env={"B": "of the plan \udcff\n"})
    async with Supervisor(tmp_path) as supervisor:
        await supervisor.start(plan, tmp_path / "it.log")
        assert (await supervisor.wait("it")).ok
    expected = (["x y", "", "\udcff\n{}"], "ours", "of the plan \udcff\n")
    assert (tmp_path / "it.log").read_text() == f"{expected!a} {tmp_path}\n"


async def test_the_environment_is_the_one_that_was_given(tmp_path):
    async with Supervisor(tmp_path, environment={"ONLY": "this"}) as supervisor:
        await supervisor.start(
            python("it", "import os; print(sorted(os.environ))"), tmp_path / "it.log"
        )
        await supervisor.wait("it")
    names = (tmp_path / "it.log").read_text()
    assert names == "['LC_CTYPE', 'ONLY', 'ROLLTOP_GUARD', 'ROLLTOP_PROCESS']\n"


async def test_the_environment_is_in_no_command_line(supervisor, tmp_path):
    await supervisor.start(python("it", SLEEP, env={"KEY": "x-secret-x"}), tmp_path / "it.log")
    assert len(living_with("x-secret-x")) == 1
    for pid in (supervisor.guard_pid, *living_with("x-secret-x")):
        assert b"x-secret-x" not in (read_file(f"/proc/{pid}/cmdline") or b"x-secret-x")


async def test_a_log_is_appended_to_and_not_for_everybody(supervisor, tmp_path):
    log = tmp_path / "it.log"
    for text in ("one", "two"):
        plan = python("it", f"import sys; print('{text}', flush=True); print('!', file=sys.stderr)")
        await supervisor.start(plan, log)
        await supervisor.wait("it")
        await supervisor.stop()
    assert log.read_text() == "one\n!\ntwo\n!\n"
    assert log.stat().st_mode & 0o777 == 0o640


async def test_a_process_starts_with_a_clean_slate(supervisor, tmp_path):
    code = (
        "import os, signal\n"
        "left = [s for s in signal.Signals if s not in (signal.SIGPIPE, signal.SIGXFSZ)\n"
        "        and signal.getsignal(s) is signal.SIG_IGN]\n"
        "print(left, signal.pthread_sigmask(signal.SIG_BLOCK, []),\n"
        "      os.read(0, 1), sorted(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid())\n"
    )
    await supervisor.start(python("it", code), tmp_path / "it.log")
    await supervisor.wait("it")
    assert (tmp_path / "it.log").read_text() == "[] set() b'' ['0', '1', '2', '3'] True\n"


async def test_broken_pipes_end_a_process_as_in_a_shell(supervisor, tmp_path):
    await supervisor.start(command("sh", "-c", "kill -PIPE $$; echo survived"), tmp_path / "it.log")
    assert (await supervisor.wait("it")).signal == signal.SIGPIPE


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("no-such-program",), "there is no program 'no-such-program' on the PATH"),
        (("/no/such",), "/no/such: No such file or directory"),
        (("/etc/passwd",), "/etc/passwd: Permission denied"),
        (("/",), "/: Permission denied"),
        (("./script",), "the interpreter that ./script names in its first line does not exist"),
        (("./noise",), "./noise: Exec format error"),
    ],
)
async def test_a_program_that_cannot_run_says_why(supervisor, tmp_path, argv, reason):
    for name, text in {"script": "#!/no/such/interpreter\n", "noise": "\0\1\2"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o700)
    with pytest.raises(ProcessFailedError) as caught:
        await supervisor.start(command(*argv), tmp_path / "it.log")
    assert caught.value.failure == Failure("it", None, f"could not start: {reason}")
    assert caught.value.message == f"it could not start: {reason}"
    assert caught.value.exit_status == 3
    assert supervisor.running == ()
    assert supervisor.exits.empty()


@pytest.mark.parametrize(("cwd", "log"), [("gone", "it.log"), (".", "no/it.log")])
async def test_a_place_that_cannot_be_used_says_which(tmp_path, cwd, log):
    async with Supervisor(tmp_path / cwd) as supervisor:
        with pytest.raises(ProcessFailedError, match=r"gone|no/it\.log") as caught:
            await supervisor.start(command("true"), tmp_path / log)
    assert "No such file" in caught.value.message


async def test_a_name_runs_once_at_a_time(supervisor, tmp_path):
    await supervisor.start(python("it", SLEEP), tmp_path / "it.log")
    with pytest.raises(LaunchError, match="it is running already"):
        await supervisor.start(python("it", SLEEP), tmp_path / "it.log")
    await supervisor.stop(["it"])
    await supervisor.start(python("it", SLEEP), tmp_path / "it.log")
    assert supervisor.running == ("it",)


async def test_two_hundred_start_and_stop_together(supervisor, tmp_path):
    plans = [ProcessPlan(f"p-{i}", Role.WORKER, ("sleep", "600")) for i in range(200)]
    log = tmp_path / "all.log"
    pids = await asyncio.gather(*(supervisor.start(plan, log) for plan in plans))
    assert len(set(pids)) == len(supervisor.running) == 200
    await supervisor.stop()
    assert supervisor.running == ()
    ends = [supervisor.exits.get_nowait() for _ in plans]
    assert {(e.signal, e.requested) for e in ends} == {(signal.SIGTERM, True)}
    assert {e.pid for e in ends} == set(pids)


async def test_guards_start_while_the_machine_is_busy(tmp_path):
    async with Supervisor(tmp_path) as load:
        for i in range(4):
            await load.start(python(f"busy-{i}", "while True: pass"), tmp_path / "busy.log")
        for _ in range(5):
            async with Supervisor(tmp_path) as supervisor:
                await supervisor.start(command("true"), tmp_path / "it.log")
                assert (await supervisor.wait("it")).ok


# -- health ---------------------------------------------------------------------------------------


async def test_a_process_without_a_check_is_ready_when_it_runs(supervisor, tmp_path):
    await supervisor.start(python("it", SLEEP), tmp_path / "it.log")
    await supervisor.wait_healthy("it")


async def test_a_process_is_ready_when_it_answers(supervisor, tmp_path, unused_tcp_port):
    argv = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(unused_tcp_port))
    check = HealthCheck(HealthKind.HTTP, "/it.log")
    plan = ProcessPlan("it", Role.SERVICE, argv, port=unused_tcp_port, health=check)
    await supervisor.start(plan, tmp_path / "it.log")
    await supervisor.wait_healthy("it")


async def test_a_process_that_dies_at_once_is_not_waited_for(supervisor, tmp_path, unused_tcp_port):
    code = "import sys; print('loading'); print('token=abc'); sys.exit('no weights')"
    check = HealthCheck(HealthKind.TCP, timeout_s=600)
    await supervisor.start(
        python("renderer-3", code, port=unused_tcp_port, health=check), tmp_path / "it.log"
    )
    with pytest.raises(ProcessFailedError) as caught:
        await supervisor.wait_healthy("renderer-3")
    error = caught.value
    assert error.failure.process == "renderer-3"
    assert error.failure.exit_status == 1
    assert error.failure.reason == "ended with exit status 1"
    assert sorted(error.failure.log_tail) == ["loading", "no weights", "token=[redacted]"]
    assert error.message == "renderer-3 ended with exit status 1"
    assert "no weights" in error.hint
    assert error.outcome is Outcome.FAILED


async def test_a_process_that_ends_well_while_it_is_waited_for_has_failed(
    supervisor, tmp_path, unused_tcp_port
):
    plan = python("it", "", port=unused_tcp_port, health=HealthCheck(HealthKind.TCP))
    await supervisor.start(plan, tmp_path / "it.log")
    with pytest.raises(ProcessFailedError, match="ended with exit status 0"):
        await supervisor.wait_healthy("it")


async def test_a_process_that_never_gets_ready_runs_out_of_time(
    supervisor, tmp_path, unused_tcp_port
):
    check = HealthCheck(HealthKind.GRPC, timeout_s=0.3)
    await supervisor.start(
        python("it", SLEEP, port=unused_tcp_port, health=check), tmp_path / "it.log"
    )
    await eventually(lambda: (tmp_path / "it.log").read_text() == "up\n", "its first line")
    with pytest.raises(ProcessFailedError) as caught:
        await supervisor.wait_healthy("it")
    said = f"was not ready within 0.3 s (grpc, port {unused_tcp_port})"
    assert caught.value.failure == Failure("it", None, said, ("up",))
    assert supervisor.running == ("it",)


async def test_a_taken_port_is_seen_in_the_log(supervisor, tmp_path, unused_tcp_port):
    code = f"import socket; s = socket.socket(); s.bind(('127.0.0.1', {unused_tcp_port}))\n"
    await supervisor.start(python("first", code + "s.listen()\n" + SLEEP), tmp_path / "first.log")
    await eventually(lambda: (tmp_path / "first.log").read_text() == "up\n", "the first's port")
    plan = python("second", code, port=unused_tcp_port + 1, health=HealthCheck(HealthKind.TCP))
    await supervisor.start(plan, tmp_path / "second.log")
    with pytest.raises(ProcessFailedError, match="second ended") as caught:
        await supervisor.wait_healthy("second")
    assert caught.value.port_taken


async def test_a_flood_of_output_stops_nothing(supervisor, tmp_path):
    code = "import time\nwhile True: print('x' * 10_000); print('\\x00\\xff', end='')"
    log = tmp_path / "it.log"
    await supervisor.start(python("it", code), log)
    await eventually(lambda: log.stat().st_size > 20_000_000, "20 MB")
    await supervisor.stop(grace_s=1)
    error = supervisor.failure(supervisor.exits.get_nowait())
    assert 0 < len(error.failure.log_tail) <= 20
    assert max(map(len, error.failure.log_tail)) <= 500


# -- end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(0)", {"status": 0}),
        ("raise SystemExit(7)", {"status": 7}),
        ("import os; os.kill(os.getpid(), 11)", {"signal": 11}),
        ("import os; os.kill(os.getpid(), 9)", {"signal": 9}),
    ],
)
async def test_an_end_is_told_as_it_was(supervisor, tmp_path, code, expected):
    pid = await supervisor.start(python("it", code), tmp_path / "it.log")
    ended = await supervisor.exits.get()
    assert ended == ProcessExit("it", pid, **expected) == await supervisor.wait("it")
    assert supervisor.running == ()


@pytest.mark.parametrize("bare", [[], ["bare"]])
async def test_a_stop_ends_the_whole_tree(supervisor, tmp_path, living, bare):
    log = tmp_path / "stubborn.log"
    await supervisor.start(program("stubborn", *bare, str(tmp_path)), log)
    await eventually(lambda: log.read_text() == "up\n", "the whole tree")
    assert len(living()) == 4
    await supervisor.stop(["stubborn"], grace_s=0.2)
    ended = supervisor.exits.get_nowait()
    assert (ended.signal, ended.requested) == (signal.SIGKILL, True)
    await supervisor.close()
    assert living() == []


async def test_a_stop_leaves_the_others_alone(supervisor, tmp_path):
    for name in ("a", "b", "c"):
        await supervisor.start(python(name, DEAF), tmp_path / f"{name}.log")
        await eventually(lambda n=name: (tmp_path / f"{n}.log").read_text() == "up\n", name)
    await supervisor.stop(["a", "c", "never-started"], grace_s=0.1)
    assert supervisor.running == ("b",)
    await supervisor.stop(grace_s=0.1)


async def test_a_process_whose_first_thread_has_ended_is_alive(supervisor, tmp_path, living):
    """It looks like a zombie, and is none."""
    exit_number = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
    code = (
        "import ctypes, signal, threading, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "print('up', flush=True)\n"
        f"ctypes.CDLL(None).syscall({exit_number}, 0)\n"
    )
    pid = await supervisor.start(python("it", code, str(tmp_path)), tmp_path / "it.log")
    await eventually(lambda: b") Z " in (read_file(f"/proc/{pid}/stat") or b""), "a zombie leader")
    assert supervisor.running == ("it",)
    await supervisor.stop(grace_s=0.1)
    assert (await supervisor.wait("it")).signal == signal.SIGKILL
    assert living() == []


async def test_a_guard_that_cannot_start_says_so(tmp_path, monkeypatch):
    for argv in (["/no/such/python"], ["false"]):
        monkeypatch.setattr(guard_client, "guard_command", lambda *_, c=argv: c)
        with pytest.raises(LaunchError, match="the guard of the run's processes did not start"):
            await Supervisor(tmp_path).__aenter__()
    with pytest.raises(LaunchError, match="not running"):
        await Supervisor(tmp_path).start(command("true"), tmp_path / "it.log")


async def test_a_process_may_take_its_time_to_end(supervisor, tmp_path):
    code = (
        "import signal, sys, time\n"
        "def end(*_): time.sleep(0.3); print('flushed', flush=True); sys.exit(0)\n"
        "signal.signal(15, end)\n" + SLEEP
    )
    await supervisor.start(python("it", code), tmp_path / "it.log")
    await eventually(lambda: (tmp_path / "it.log").read_text() == "up\n", "its first line")
    await supervisor.stop(grace_s=30)
    assert (tmp_path / "it.log").read_text() == "up\nflushed\n"
    assert (await supervisor.wait("it")).ok


async def test_what_a_dead_process_leaves_behind_is_ended(supervisor, tmp_path, living):
    log = tmp_path / "stubborn.log"
    pid = await supervisor.start(program("stubborn", str(tmp_path)), log)
    await eventually(lambda: log.read_text() == "up\n", "the whole tree")
    os.kill(pid, signal.SIGKILL)
    assert not (await supervisor.exits.get()).requested
    await eventually(lambda: living() == [], "the end of its helpers")


async def test_helpers_are_asked_before_they_are_killed(supervisor, tmp_path):
    code = (
        "import os, signal, sys, time\n"
        "if os.fork() == 0:\n"
        "    signal.signal(15, lambda *_: (print('cleaned', flush=True), os._exit(0)))\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
        "while open(sys.argv[1]).read() != 'up\\n': time.sleep(0.01)\n"
    )
    log = tmp_path / "it.log"
    await supervisor.start(python("it", code, str(log)), log)
    assert (await supervisor.wait("it")).ok
    await eventually(lambda: log.read_text() == "up\ncleaned\n", "a word of the helper")


async def test_a_daemon_of_a_living_process_is_left_alone(supervisor, tmp_path, living):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0: time.sleep(600)\n"
        "    os._exit(0)\n"
        "os.wait()\n" + SLEEP
    )
    await supervisor.start(python("it", code, str(tmp_path)), tmp_path / "it.log")
    await eventually(lambda: (tmp_path / "it.log").read_text() == "up\n", "the daemon")
    await supervisor.start(python("other", ""), tmp_path / "other.log")
    await supervisor.wait("other")
    await supervisor.stop(["other"])
    assert len(living()) == 2
    await supervisor.stop(["it"])
    assert living() == []


async def test_a_dead_guard_ends_the_run_and_spares_our_own_children(tmp_path, living):
    own = await asyncio.create_subprocess_exec(sys.executable, "-c", SLEEP, start_new_session=True)
    async with Supervisor(tmp_path) as supervisor:
        for i in range(3):
            plan = python(f"p-{i}", DEAF, str(tmp_path))
            await supervisor.start(plan, tmp_path / "it.log")
        assert supervisor.guard_pid is not None
        os.kill(supervisor.guard_pid, signal.SIGKILL)
        ends = [await supervisor.exits.get() for _ in range(4)]
        assert [e.name for e in ends] == ["guard", "p-0", "p-1", "p-2"]
        assert {e.signal for e in ends} == {signal.SIGKILL}
        assert living() == []
        assert supervisor.running == ()
        error = supervisor.failure(ends[0])
        assert error.failure.process == "guard"
        with pytest.raises(LaunchError, match="guard"):
            await supervisor.start(command("true"), tmp_path / "it.log")
        await supervisor.stop()
    assert own.returncode is None
    own.kill()
    await own.wait()


async def test_the_logs_of_a_dead_guard_are_cleaned_all_the_same(tmp_path):
    code = "print('DB_PASSWORD=hunter2hunter2', flush=True)\n" + SLEEP
    async with Supervisor(tmp_path, guard_log=tmp_path / "guard.log") as supervisor:
        await supervisor.start(python("it", code), tmp_path / "it.log")
        await eventually(lambda: "up" in (tmp_path / "it.log").read_text(), "its secret")
        assert supervisor.guard_pid is not None
        os.kill(supervisor.guard_pid, signal.SIGKILL)
        assert (await supervisor.exits.get()).name == "guard"
    assert (tmp_path / "it.log").read_text() == "DB_PASSWORD=[redacted]\nup\n"
    assert (tmp_path / "guard.log").read_text() == ""


async def test_two_runs_of_one_process_do_not_meet(tmp_path):
    async with Supervisor(tmp_path) as one:
        async with Supervisor(tmp_path) as other:
            await one.start(python("it", SLEEP), tmp_path / "one.log")
            await other.start(python("it", SLEEP), tmp_path / "other.log")
            await other.stop()
        assert one.running == ("it",)


async def test_leaving_by_an_exception_ends_everything(tmp_path, living):
    async def run() -> None:
        async with Supervisor(tmp_path) as supervisor:
            await supervisor.start(python("it", SLEEP, str(tmp_path)), tmp_path / "it.log")
            assert len(living()) == 1
            raise KeyError

    with pytest.raises(KeyError):
        await run()
    assert living() == []


def test_a_cancelled_run_ends_everything(tmp_path: Path, living: Callable[[], list[int]]):
    async def run() -> None:
        async with Supervisor(tmp_path) as supervisor:
            await supervisor.start(python("it", SLEEP, str(tmp_path)), tmp_path / "it.log")
            asyncio.get_running_loop().call_later(0.1, task.cancel)
            await supervisor.wait("it")

    async def main() -> None:
        nonlocal task
        task = asyncio.create_task(run())
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Task[None]
    asyncio.run(main())
    assert living() == []
