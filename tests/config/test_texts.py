"""What cannot be handed on to files, variables and programs is refused where it is written."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rolltop.config import compose, texts, validate
from rolltop.config.schema.sim import RUN_VARIABLES, SCENE_NAME_MAX, Scenes
from rolltop.errors import ConfigError
from rolltop.launch.guard import MARK_GUARD, MARK_PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.config import RunConfig

TOY = Path(__file__).parent / "sims" / "conf"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "environment.md"


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return a whole configuration as plain data."""
    config = compose(["topology=small"], cwd=Path("/x"), count_gpus=lambda: 0, folders={"toy": TOY})
    data: dict[str, Any] = yaml.safe_load(config.redacted_yaml())
    return data


def refused(data: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        validate(data)
    assert "\n" not in caught.value.message
    assert "\0" not in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("text", "fault"),
    [("a\0", "holds the character NUL"), ("\ud800", "is not text in UTF-8"), ("x\udcff", "UTF-8")],
)
def test_such_a_text_is_refused_wherever_it_is(
    text: str, fault: str, plain: dict[str, Any]
) -> None:
    for change, place in (
        ({"command": ["x", text]}, "sim.worker.command[1]: "),
        ({"env": {"A": text}}, "sim.worker.env.A: "),
        ({"env": {text: "x"}}, "sim.worker.env."),
        ({"image": text}, "sim.worker.image: "),
    ):
        data = copy.deepcopy(plain)
        data["sim"]["worker"] |= change
        error = refused(data)
        assert error.message.startswith(place)
        assert fault in error.message
    for section, key in (("run", "dir"), ("run", "name"), ("defines", "filesystem")):
        data = copy.deepcopy(plain)
        data[section][key] = text
        assert refused(data).message.startswith(f"{section}.{key}: ")
    data = {**plain, "defines": {"filesystem": "/x", "deep": [{"a": [text]}]}}
    assert refused(data).message.startswith("defines.deep[0].a[0]: ")


@given(st.text(st.characters()))
def test_what_is_let_pass_can_be_written(text: str) -> None:
    if texts.fault_of(text) is None:
        taken = json.loads(json.dumps(text))
        assert os.fsencode(taken) == taken.encode()
        assert "\0" not in text


def test_two_halves_of_a_character_are_one() -> None:
    assert texts.fault_of("\ud83d\ude00") is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "'' cannot be the name of a variable"),
        ("=", "'=' cannot be the name of a variable"),
        ("A=b", "'A=b' cannot be the name of a variable"),
        *(
            (name, f"{name} is one of the variables that the run itself sets")
            for name in sorted(RUN_VARIABLES)
        ),
    ],
)
def test_a_variable_that_cannot_be_set_is_refused(
    name: str, words: str, plain: dict[str, Any]
) -> None:
    for process in (plain["sim"]["worker"], plain["sim"]["services"]["brain"]):
        before = process["env"]
        process["env"] = {**before, name: "x"}
        error = refused(plain)
        process["env"] = before
        assert words in error.message
        assert error.message.startswith("sim.")
        assert error.hint == "leave the variable out, or choose another name"


def test_the_variables_of_a_run_are_those_that_the_reference_lists() -> None:
    after = PAGE.read_text().split("## That the processes of a run get")[1]
    assert set(re.findall(r"ROLLTOP_[A-Z_]+", after)) == RUN_VARIABLES
    assert {MARK_GUARD, MARK_PROCESS} <= RUN_VARIABLES


@pytest.mark.parametrize("folder", ["d\udcff"])
def test_a_current_folder_whose_name_is_no_text_is_named(
    folder: str, composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir()
    with pytest.raises(ConfigError, match=r"the current folder '.*d\\udcff'") as caught:
        composed(cwd=tmp_path / folder)
    assert "another folder" in str(caught.value.hint)


def test_nor_does_a_description_lie_in_one(
    composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    folder = tmp_path / "d\udcff"
    folder.mkdir()
    (folder / "x.yaml").write_text("name: x\n")
    (tmp_path / "x.yaml").symlink_to(folder / "x.yaml")
    with pytest.raises(ConfigError, match=r"sim\.file: .* is not text in UTF-8") as caught:
        composed("sim.file=x.yaml")
    assert caught.value.hint == "rename the folder it lies in"


@pytest.mark.parametrize(
    "name",
    [
        "{index}",
        "road-{index:04d}",
        "{index:0191d}",
        "x{index:_>5}",
        "x{index:x}-{index}",
        "x{index:#b}",
        "x{index:0>4d}",
        "x" * 191 + "{index}",
    ],
)
def test_a_scene_is_named_by_a_whole_number(name: str) -> None:
    scenes = Scenes(name=name)
    made = {scenes.name.format(index=index) for index in (*range(300), 999_999_999)}
    assert len(made) == 301
    assert max(map(len, made)) <= SCENE_NAME_MAX


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("{index:099999999999d}", "cannot be filled with {index}"),
        ("{index:09999999d}", "cannot be filled"),
        ("{index:0{index}d}", "cannot be filled"),
        ("{index:.99999999f}", "cannot be filled"),
        ("x{index:<04d}", "cannot be filled"),
        ("x{index:.0e}", "cannot be filled"),
        ("{index!r:>99999999}", "cannot be filled"),
        ("{index.__class__}", "cannot be filled"),
        ("{index[0]}", "cannot be filled"),
        ("{}", "cannot be filled"),
        ("{index", "cannot be filled"),
        ("{{index}}", "has no {index}"),
        ("{index:0201d}", "makes names of 201 characters: must be at most 200"),
        ("{index:0150d}{index:0150d}", "makes names of 300 characters"),
        ("x" * 192 + "{index}", "makes names of 201 characters"),
        ("x" * 999 + "{index}", "must be at most 200 characters long"),
        ("{index:4d}", "cannot be the name of a directory"),
        ("a/{index}", "cannot be the name of a directory"),
    ],
)
def test_a_scenes_name_is_bounded_before_it_is_made(
    name: str, words: str, plain: dict[str, Any]
) -> None:
    data = {**plain, "sim": {**plain["sim"], "scenes": {"count": 3, "name": name}}}
    with pytest.raises(ConfigError) as caught:
        validate(data)
    assert caught.value.message.startswith("sim.scenes.name: ")
    assert words in caught.value.message


@pytest.mark.parametrize("pattern", ["a{99999999999999999999}", "(" * 5000 + ")" * 5000, "("])
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str, plain: dict[str, Any]) -> None:
    worker = {**plain["sim"]["worker"], "oom_patterns": [pattern]}
    with pytest.raises(ConfigError, match=r"sim\.worker\.oom_patterns: .* no regular expression"):
        validate({**plain, "sim": {**plain["sim"], "worker": worker}})
