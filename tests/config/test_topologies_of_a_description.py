"""Topologies beside a description: bounded as it is, and before rolltop's own of their name."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rolltop.errors import ConfigError
from tests.config.test_bad_descriptions import GOOD
from tests.config.test_description_bounds import BOUNDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.config import RunConfig

    Compose = Callable[..., RunConfig]

SMALL = """\
# @package _global_
services: {a: {gpus: [0]}}
runtime: {endpoints: {a: {n_concurrent_rollouts: 7}}}
"""
SIM = "sim.file=mine/mine.yaml"


@pytest.fixture
def topologies(tmp_path: Path) -> Path:
    """The folder ``topology/`` beside the description ``mine/mine.yaml``."""
    folder = tmp_path / "mine" / "topology"
    folder.mkdir(parents=True)
    (folder.parent / "mine.yaml").write_text(GOOD)
    (folder / "fine.yaml").write_text(SMALL)
    return folder


def refusal(composed: Compose, name: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        composed(SIM, f"topology={name}")
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("case", sorted(BOUNDED.keys() - {"text in text"}))
def test_a_topology_beyond_the_bounds_is_refused(
    case: str, composed: Compose, topologies: Path
) -> None:
    text, words = BOUNDED[case]
    (topologies / "x.yaml").write_text(text)
    error = refusal(composed, "x")
    assert error.message.startswith(f"topology=x: {topologies}/x.yaml")
    assert words in error.message
    assert composed(SIM, "topology=fine").topology().capacity == 7


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device", "nothing"])
def test_what_is_no_file_says_so(
    kind: str, composed: Compose, topologies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(topologies)
    path = Path("x.yaml")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(path))
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "not-there")
    error = refusal(composed, "x")
    said = {"nothing": "No such file", "folder": "Is a directory"}.get(kind, "not a regular file")
    assert f"topology=x: {topologies}/x.yaml cannot be read: {said}" in error.message
    assert kind == "nothing" or "a regular file of 256 KiB" in str(error.hint)
    assert "fine" in str(refusal(composed, "y").hint)
    assert "x" not in str(refusal(composed, "y").hint).split(": ")[1].split(", ")


@pytest.mark.parametrize("text", ["[1]", "text", "~"])
def test_what_has_no_keys_is_no_topology(text: str, composed: Compose, topologies: Path) -> None:
    (topologies / "x.yaml").write_text(text)
    assert "x.yaml does not describe a topology" in refusal(composed, "x").message


def test_what_a_topology_takes_in_is_bounded_too(composed: Compose, topologies: Path) -> None:
    (topologies / "base.yaml").write_text(SMALL)
    more = topologies / "more.yaml"
    more.write_text("# @package _global_\ndefaults: [base]\nruntime: {nr_workers: 3}\n")
    assert composed(SIM, "topology=more").runtime.nr_workers == 3
    (topologies / "base.yaml").write_text(BOUNDED["bomb"][0])
    assert "topology=base: " in refusal(composed, "more").message


@pytest.mark.parametrize(
    ("texts", "loop"),
    [
        ({"a": "[a]"}, "topology/a -> topology/a"),
        ({"a": "[b]", "b": "[a]"}, "topology/a -> topology/b -> topology/a"),
        (
            {"a": "[b]", "b": "[_self_, {/topology: c}]", "c": "[b]"},
            "topology/b -> topology/c -> topology/b",
        ),
    ],
)
def test_defaults_that_lead_back_are_named(
    texts: dict[str, str], loop: str, composed: Compose, topologies: Path
) -> None:
    for name, defaults in texts.items():
        (topologies / f"{name}.yaml").write_text(f"defaults: {defaults}\n")
    error = refusal(composed, "a")
    assert error.message.endswith(f"its defaults lead back to itself: {loop}"), error.message
    first = error.message.split(" -> ")[-1].removeprefix("topology/")
    assert error.message.startswith(f"topology={first}: {topologies / first}.yaml: ")
    assert f"out of the defaults of topology/{first}" in str(error.hint)


@pytest.mark.parametrize(
    "defaults",
    [
        "3",
        "{a: b}",
        "null",
        "[null]",
        "[3]",
        "['']",
        "['???']",
        "[{'': a}]",
        "[{'/': a}]",
        "[{'override @b': a}]",
        "[{a: {b: c}}]",
    ],
)
def test_defaults_that_are_no_list_of_files_are_refused(
    defaults: str, composed: Compose, topologies: Path
) -> None:
    (topologies / "x.yaml").write_text(f"defaults: {defaults}\n")
    error = refusal(composed, "x")
    place = f"topology=x: {topologies}/x.yaml: defaults is a list of files to take in, not "
    assert error.message.startswith(place)
    assert error.hint == "defaults: [NAME], or [/GROUP: NAME]"


@pytest.mark.parametrize("out", ["../../../x", "../x"])
def test_a_file_elsewhere_is_bounded_too(out: str, composed: Compose, topologies: Path) -> None:
    for above in topologies.parents[:2]:
        (above / "x.yaml").write_text(BOUNDED["bomb"][0])
    refusal(composed, out)


def test_an_own_topology_goes_before_the_shipped_one_and_a_line_says_so(
    composed: Compose, topologies: Path
) -> None:
    (topologies / "1gpu.yaml").write_text(SMALL)
    config = composed(SIM, "topology=1gpu")
    assert config.topology().capacity == 7
    assert config.notes == (
        f"topology=1gpu is {topologies}/1gpu.yaml, not rolltop's own of that name",
    )
    assert composed(SIM, "topology=fine").notes == ()


def test_so_does_a_packages_before_those_of_others(composed: Compose, tmp_path: Path) -> None:
    for name, workers in (("a", 3), ("b", 5)):
        for group, text in (
            ("sim", GOOD.replace("name: x", f"name: {name}")),
            ("topology", SMALL.replace("endpoints", f"nr_workers: {workers}, endpoints")),
        ):
            (tmp_path / name / group).mkdir(parents=True)
            file = name if group == "sim" else "2gpu"
            (tmp_path / name / group / f"{file}.yaml").write_text(text)
    folders = {"a": tmp_path / "a", "b": tmp_path / "b"}
    for name, workers in (("a", 3), ("b", 5)):
        config = composed(f"sim={name}", "topology=2gpu", folders=folders)
        assert config.runtime.nr_workers == workers
        assert config.sim.dir == folders[name]
        assert len(config.notes) == 1
    assert composed("sim=a", "sim=b", "topology=2gpu", folders=folders).sim.dir == folders["b"]


def test_other_files_beside_a_description_are_not_rolltops(
    composed: Compose, topologies: Path
) -> None:
    """A project may have a ``config.yaml`` and a ``site/`` that mean something else."""
    (topologies.parent / "config.yaml").write_text("[")
    (topologies.parent / "site").mkdir()
    (topologies.parent / "site" / "default.yaml").write_text("[")
    assert composed(SIM, "topology=fine").sim.name == "x"


def test_the_programs_of_a_description_are_named_from_its_folder(
    composed: Compose, topologies: Path, tmp_path: Path
) -> None:
    assert composed(SIM, "topology=fine").sim.dir == topologies.parent
    package = tmp_path / "package"
    (package / "conf" / "sim").mkdir(parents=True)
    (package / "conf" / "sim" / "mine.yaml").write_text(GOOD)
    (package / "conf" / "topology").symlink_to(topologies)
    by_file = composed("sim.file=package/conf/sim/mine.yaml", "topology=fine")
    installed = composed("sim=mine", "topology=fine", folders={"x": package / "conf"})
    assert by_file.sim.dir == installed.sim.dir == package / "conf"


@pytest.mark.parametrize("key", ["dir", "file"])
def test_where_a_description_lies_is_not_its_own_to_say(
    key: str, composed: Compose, topologies: Path
) -> None:
    (topologies.parent / "mine.yaml").write_text(f"{GOOD}{key}: /somewhere\n")
    with pytest.raises(ConfigError, match=f"sim.{key}: is filled in by rolltop"):
        composed(SIM, "topology=fine")


@pytest.mark.parametrize(
    "name", ["it's", "a ${x} b", "a\\${x}", "back\\slash", "end\\", "a,b [c]", "a:", "ü {port}"]
)
def test_a_folder_may_have_any_name(name: str, composed: Compose, tmp_path: Path) -> None:
    (tmp_path / name / "topology").mkdir(parents=True)
    (tmp_path / name / "mine.yaml").write_text(GOOD)
    (tmp_path / name / "topology" / "fine.yaml").write_text(SMALL)
    config = composed("sim.file=mine.yaml", "topology=fine", "run.dir=r", cwd=tmp_path / name)
    assert config.topology().capacity == 7
    assert config.sim.file == tmp_path / name / "mine.yaml"
    assert config.sim.dir == tmp_path / name
    assert config.run.dir == tmp_path / name / "r"
    assert config.defines["filesystem"] == str(tmp_path / name / "data")
