"""The how-to on bringing a simulator: its files and its commands, as they stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rolltop.config import RunConfig, compose
from rolltop.errors import ConfigError
from tests.config.how_to import COMMANDS, FILES, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Compose = Callable[..., RunConfig]

DESCRIPTION = FILES["mysim/conf/sim/mysim.yaml"]
TOPOLOGY = FILES["mysim/conf/topology/small.yaml"]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The files of the how-to where it puts them; the folder above ``mysim``."""
    return write(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_take_its_files(command: tuple[str, ...], written: Path) -> None:
    overrides = [word for word in command if word != "--dry-run"]
    folders = {"mysim": written / "mysim" / "conf"}
    config = compose(overrides, cwd=written, count_gpus=lambda: 0, folders=folders)
    assert config.sim.name == "mysim"
    assert config.sim.dir == folders["mysim"]
    assert config.topology_name == "small"
    assert set(config.services) == set(config.sim.services) == {"renderer", "driver"}


def test_a_topology_may_lie_beside_the_description(written: Path, composed: Compose) -> None:
    """``topology/`` beside the file itself; the shipped ones are still there."""
    (written / "topology").mkdir()
    (written / "topology" / "mine.yaml").write_text(TOPOLOGY)
    (written / "mysim.yaml").write_text(DESCRIPTION)
    assert composed("sim.file=mysim.yaml", "topology=mine").topology_name == "mine"
    with pytest.raises(ConfigError) as caught:
        composed("sim.file=mysim.yaml", "topology=yours")
    listed = str(caught.value.hint).removeprefix("there are: ").split(", ")
    assert {"1gpu", "mine"} <= set(listed)


def test_all_that_a_simulator_lacks_is_said_at_once(written: Path, composed: Compose) -> None:
    description = "sim.file=mysim/conf/sim/mysim.yaml"
    assert (written / description.removeprefix("sim.file=")).is_file()
    with pytest.raises(ConfigError, match="no such service, it has renderer, driver") as caught:
        composed(description, "topology=1gpu")
    lacking = ("physics", "controller")
    assert all(f"services.{service}" in caught.value.message for service in lacking)
    skips = (caught.value.hint or "").split()
    assert composed(description, "topology=1gpu", *skips).sim.name == "mysim"
