from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rolltop.config import simulators
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_installed_packages_are_found_by_their_entry_points() -> None:
    folders = simulators.installed_folders()
    assert {"driving", "tiny"} <= folders.keys()
    assert {"driving", "tiny"} <= set(simulators.names_of(folders))


def test_finding_does_not_import_the_simulator() -> None:
    code = (
        "import sys; from rolltop.config.simulators import installed_folders; "
        "assert installed_folders(); "
        "sys.exit(bool({'rolltop_refsim', 'rolltop_tiny', 'hydra'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_room_does_not_import_hydra() -> None:
    code = "import sys, rolltop.config; sys.exit('hydra' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("package", ["no_such_package_at_all", "no.such.package", "json"])
def test_a_package_that_is_not_there_is_left_out(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name = "ghost"
        value = package

    monkeypatch.setattr(simulators, "entry_points", lambda group: [Entry()])
    assert simulators.installed_folders() == {}


def test_one_package_may_bring_several(tmp_path: Path) -> None:
    (tmp_path / "sim").mkdir()
    for name in ("b", "a"):
        (tmp_path / "sim" / f"{name}.yaml").touch()
    assert simulators.names_of({"x": tmp_path}) == ("a", "b")


@pytest.mark.parametrize(
    ("names", "chosen"), [(("a", "driving", "z"), "driving"), (("mine",), "mine")]
)
def test_the_default_simulator(names: tuple[str, ...], chosen: str) -> None:
    assert simulators.default_name(names) == chosen


def test_two_to_choose_from_is_a_question() -> None:
    with pytest.raises(ConfigError, match="which simulator") as caught:
        simulators.default_name(("a", "b"))
    assert caught.value.hint == "sim=a; there are: a, b"
