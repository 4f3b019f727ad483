"""A ``sim.file`` that would take all of a machine, or wait for ever, is refused in one line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.config import descriptions
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rolltop.config import RunConfig

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
MERGED = (
    "a: &a {"
    + ", ".join(f"k{n}: 1" for n in range(2000))
    + "}\n"
    + "".join(f"m{n}: {{<<: *a}}\n" for n in range(6))
)
STAIRS = "a0: &a0 [x]\n" + "".join(
    f"a{level}: &a{level} [*a{level - 1}]\n" for level in range(1, 60)
)
BOUNDED = {
    "bomb": (BOMB, "more than 10000 values, those that aliases stand for included"),
    "merged": (MERGED, "more than 10000 values"),
    "many": ("a: [" + "1, " * 10_001 + "]", "more than 10000 values"),
    "brackets": ("a: " + "[" * 5000, "line 1: more than 32 levels of sections and lists"),
    "maps": ("{a: " * 3000 + "1" + "}" * 3000, "more than 32 levels"),
    "indented": ("".join(f"{' ' * n}a:\n" for n in range(300)), "line 33: more than 32 levels"),
    "stairs": (STAIRS, "more than 32 levels"),
    "itself": ("name: &a [*a]", "line 1: *a stands for what it is part of"),
    "itself deeper": ("name: &a {b: [{c: *a}]}", "*a stands for what it is part of"),
    "unknown alias": ("name: *a", "line 1: found undefined alias"),
    "large": ("#" * (descriptions.BYTES_MAX + 1), "cannot be read: larger than 262144 bytes"),
    "closed only": ("]", "line 1: "),
    "digits": ("name: " + "9" * 5000, "Exceeds the limit"),
    "a tag": ("name: !!timestamp xx", "line 1: the tag '!!timestamp': values are plain text"),
    "a tag on a key": ("a: 1\n!!binary a: 1", "line 2: the tag '!!binary'"),
    "a tag on a list": ("a: !!set [x]", "the tag '!!set'"),
    "a tag on a section": ("a: !!python/object:x {}", "the tag '!!python/object:x'"),
    "a tag at the top": ("!!omap {a: 1}", "line 1: the tag '!!omap'"),
    "a tag of nobody's": ("a: !x 1", "the tag '!x'"),
    "a tag without a name": ("a: ! 1", "the tag '!'"),
    "a tag by a handle": ("%TAG !y! tag:yaml.org,2002:\n---\na: !y!bool x", "the tag '!!bool'"),
    "a tag that an alias repeats": ("a: &a !!int x\nb: *a", "the tag '!!int'"),
    "text in text": ("'a: &a [*a]'", "does not describe a simulator"),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_what_is_beyond_the_bounds_is_refused(case: str, tmp_path: Path) -> None:
    text, words = BOUNDED[case]
    path = tmp_path / "sim.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        descriptions.load(path)
    assert caught.value.message.startswith(f"sim.file: {path}")
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_pipe_is_not_waited_for(composed: Callable[..., RunConfig], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ConfigError, match=r"pipe\.yaml cannot be read: not a regular") as caught:
        composed("sim.file=pipe.yaml")
    assert "a regular file of 256 KiB at most" in str(caught.value.hint)


def test_a_device_is_not_read(composed: Callable[..., RunConfig]) -> None:
    with pytest.raises(ConfigError, match=r"sim\.file: /dev/zero cannot be read"):
        composed("sim.file=/dev/zero")


def test_a_sparse_file_of_any_size_is_not_read(
    composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    with (tmp_path / "big.yaml").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ConfigError, match="larger than"):
        composed("sim.file=big.yaml")


def test_aliases_within_the_bounds_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "sim.yaml"
    path.write_text("a: &a {b: [1, 2]}\nc: [*a, *a]\nd: {<<: *a, e: 3}\nf: &f 1\ng: *f\n")
    loaded = descriptions.load(path)
    assert loaded["c"] == [{"b": [1, 2]}, {"b": [1, 2]}]
    assert loaded["d"] == {"b": [1, 2], "e": 3}
    assert loaded["g"] == 1


def test_the_bounds_are_met_exactly(tmp_path: Path) -> None:
    path = tmp_path / "sim.yaml"
    path.write_text("a: " + "[" * 31 + "]" * 31)
    assert descriptions.load(path)["a"] == eval("[" * 31 + "]" * 31)  # noqa: S307
    path.write_text("a: " + "[" * 32 + "]" * 32)
    with pytest.raises(ConfigError, match="levels"):
        descriptions.load(path)


def test_what_gives_nothing_yet_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A kernel's log is regular by its name, and read without waiting gives nothing at all."""
    there, here = os.pipe()
    (tmp_path / "log.yaml").touch()
    regular = os.stat(tmp_path / "log.yaml")  # noqa: PTH116
    os.set_blocking(there, False)
    monkeypatch.setattr("rolltop.files.os.open", lambda *_: there)
    monkeypatch.setattr("rolltop.files.os.fstat", lambda _: regular)
    with pytest.raises(ConfigError, match=r"log\.yaml cannot be read: not a regular") as caught:
        descriptions.load(tmp_path / "log.yaml")
    os.close(here)
    assert "a regular file of 256 KiB at most" in str(caught.value.hint)


@pytest.mark.parametrize("named", ["a.yaml", "b.yaml", "a.yaml/x.yaml"])
def test_links_in_a_circle_are_refused(
    named: str, composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    with pytest.raises(ConfigError) as caught:
        composed(f"sim.file={named}")
    place = f"sim.file: {tmp_path / named} cannot be read: its links lead in a circle"
    assert caught.value.message == place
    assert caught.value.hint == "name the file itself"


@given(st.text("&*ab[]{}:,-# \n<|>'\"!%@$0", max_size=60))
def test_no_text_gets_more_than_a_complaint(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    try:
        assert descriptions.load(path)
    except ConfigError as error:
        assert "\n" not in error.message  # noqa: PT017
