"""What "Bring your own simulator" tells to write is what a run takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rolltop.config import RunConfig, compose
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    Compose = Callable[..., RunConfig]

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "bring-your-simulator.md"
DESCRIPTION, TOPOLOGY = re.findall(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL)
COMMAND = re.findall(r"rolltop run (sim\.file=\S+) (topology=\S+)", HOW_TO.read_text())


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The files of the how-to where it puts them; the folder above ``mysim``."""
    for path, text in (("sim/mysim.yaml", DESCRIPTION), ("topology/small.yaml", TOPOLOGY)):
        file = tmp_path / "mysim" / "conf" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return tmp_path


def test_its_command_takes_its_files(written: Path) -> None:
    (overrides,) = set(COMMAND)
    config = compose(overrides, cwd=written, count_gpus=lambda: 0)
    assert config.sim.name == "mysim"
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
    assert {"1gpu", "mine"} <= set(re.findall(r"\w+", caught.value.hint or ""))


def test_all_that_a_simulator_lacks_is_said_at_once(written: Path, composed: Compose) -> None:
    description = "sim.file=mysim/conf/sim/mysim.yaml"
    with pytest.raises(ConfigError, match="no such service, it has renderer, driver") as caught:
        composed(description, "topology=1gpu")
    lacking = ("physics", "controller")
    assert all(f"services.{service}" in caught.value.message for service in lacking)
    skips = (caught.value.hint or "").split()
    assert composed(description, "topology=1gpu", *skips).sim.name == "mysim"
