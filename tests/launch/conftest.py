"""What the tests of launching share: programs to start, and a search for what they leave behind."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rolltop.launch import proctree
from rolltop.launch.supervisor import Supervisor
from rolltop.model.plan import ProcessPlan, Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PROGRAMS = Path(__file__).parent / "programs"


def living_with(mark: str) -> list[int]:
    """The living processes that have a text in their arguments or environment; zombies are dead."""
    wanted = os.fsencode(mark)
    found = []
    for proc in proctree.scan().values():
        about = [
            proctree.read_file(f"/proc/{proc.pid}/{file}", 1 << 20) or b""
            for file in ("cmdline", "environ")
        ]
        if proc.alive and proc.pid != os.getpid() and any(wanted in text for text in about):
            found.append(proc.pid)
    return found


@pytest.fixture
def living(tmp_path: Path) -> Callable[[], list[int]]:
    """Every process of this test: those with its folder in arguments or environment."""
    return lambda: living_with(str(tmp_path))


def wait_until(holds: Callable[[], bool], what: str, limit_s: float = 30.0) -> None:
    """Wait for something that must come; the limit only ends a test that hangs."""
    until = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until, f"never came: {what}"
        time.sleep(0.02)


async def eventually(holds: Callable[[], bool], what: str, limit_s: float = 30.0) -> None:
    """``wait_until`` for tests that run in the loop."""
    await asyncio.to_thread(wait_until, holds, what, limit_s)


@pytest.fixture
def unused_tcp_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def supervisor(tmp_path: Path) -> AsyncIterator[Supervisor]:
    environment = {**os.environ, "TEST_FOLDER": str(tmp_path)}
    log = tmp_path / "guard.log"
    async with Supervisor(tmp_path, environment=environment, guard_log=log) as it:
        yield it
    assert living_with(str(tmp_path)) == []
    assert log.read_text() == ""


def python(name: str, code: str, *args: str, **plan: object) -> ProcessPlan:
    """A process that runs a few lines of Python."""
    argv = (sys.executable, "-I", "-S", "-c", code, *args)
    return ProcessPlan(name, Role.WORKER, argv, **plan)


def program(name: str, *args: str, **plan: object) -> ProcessPlan:
    """A process that runs a program of this folder."""
    argv = (sys.executable, "-S", str(PROGRAMS / f"{name}.py"), *args)
    return ProcessPlan(name, Role.WORKER, argv, **plan)
