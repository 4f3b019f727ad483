from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rolltop.config.devices import count_gpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ``nvidia-smi`` to be written; nothing else is on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "nvidia-smi"


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_the_drivers_files_are_counted(tmp_path: Path, program: Path) -> None:
    write(program, "echo 'GPU 0: x'")
    for bus in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "driver" / "nvidia" / "gpus" / bus).mkdir(parents=True)
    assert count_gpus(tmp_path) == 2


def test_a_driver_without_gpus_has_none(tmp_path: Path, program: Path) -> None:
    write(program, "echo 'GPU 0: x'")
    (tmp_path / "driver" / "nvidia" / "gpus").mkdir(parents=True)
    assert count_gpus(tmp_path) == 0


def test_without_files_the_program_is_asked(tmp_path: Path, program: Path) -> None:
    write(program, "echo 'GPU 0: H200 (UUID: GPU-1)'; echo '  MIG 1g: x'; echo 'GPU 1: H200'")
    assert count_gpus(tmp_path) == 2


@pytest.mark.parametrize(
    "script", ["echo 'GPU 0: x'; exit 9", "echo 'No devices were found'", "kill -9 $$"]
)
def test_a_program_that_fails_finds_none(script: str, tmp_path: Path, program: Path) -> None:
    write(program, script)
    assert count_gpus(tmp_path) == 0


def test_neither_files_nor_program(tmp_path: Path, program: Path) -> None:
    assert count_gpus(tmp_path) == 0
    program.write_text("not a program")
    program.chmod(0o755)
    assert count_gpus(tmp_path) == 0
