"""The documentation says what is so: links lead somewhere, commands exist, pages are current."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from rolltop.catalogue.panels import PANELS
from rolltop.cli.main import app
from rolltop.config import compose
from scripts.generate_docs import fill, main, names_in
from scripts.repository import ROOT, name, pages, python_files, shell_lines

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PANEL = re.compile(r"\[([^\]]*)\]\(\S*reference/panels\.md\)")
NOT_OURS = ("sim=mysim", "sim.file=mysim/conf/sim/mysim.yaml")
"""The simulator that a reader writes."""
PAGES = pages()


def anchors_of(text):
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor in anchors_of(aim.read_text(encoding="utf-8")), target


def test_panels_that_are_named_exist():
    """A page names a panel by a link to the list of them."""
    titles = {panel.title for panel in PANELS}
    named = {
        (name(page), text)
        for page in PAGES
        for text in PANEL.findall(page.read_text(encoding="utf-8"))
    }
    assert len(named) >= 5
    assert {(page, text) for page, text in named if text not in titles} == set()


def commands_of(program):
    """Return (page, words) of every command that the pages show, without the program itself."""
    shown = {(name(page), line) for page in PAGES for line in shell_lines(page.read_text("utf-8"))}
    for page, line in sorted(shown):
        words = shlex.split(line)
        if words[0].rpartition("/")[2] == program and not set(words) & set(NOT_OURS):
            yield pytest.param(words[1:], id=f"{page}: {line}")


@pytest.mark.parametrize("words", list(commands_of("make")))
def test_make_targets_exist(words):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(targets)


@pytest.mark.parametrize("words", list(commands_of("rolltop")))
def test_commands_of_rolltop_are_understood(words, tmp_path):
    command = typer.main.get_command(app).commands[words[0]]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known
    if words[0] == "run":
        compose([word for word in words[1:] if not word.startswith("-")], cwd=tmp_path)


def test_the_readme_begins_with_what_it_is_for():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert shell_lines(text)[:2] == ["make demo", "make test"]
    for library in ("libegl1", "libegl-mesa0", "libopengl0", "libgl1-mesa-dri"):
        assert library in text


def test_generated_blocks_are_as_the_code_has_them(capsys):
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_a_block_is_replaced_and_the_rest_kept():
    page = "a\n<!-- generated: x -->\nold\n<!-- end of x -->\nb\n"
    new = fill(page, {"x": lambda: "new"})
    assert new == "a\n<!-- generated: x -->\n\nnew\n\n<!-- end of x -->\nb\n"
    assert fill(new, {"x": lambda: "new"}) == new
    assert names_in(new) == ["x"]


def test_a_block_that_nobody_writes_is_an_error():
    with pytest.raises(KeyError):
        fill("<!-- generated: x -->\n<!-- end of x -->", {})


VARIABLE = re.compile(r"\bROLLTOP_[A-Z_]+[A-Z]\b")


def test_environment_variables_are_documented_and_used():
    shipped = python_files("src", "packages/instrument/src", "packages/refsim/src", "examples")
    used = {v for path in shipped for v in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    assert used == set(VARIABLE.findall(page))


def test_the_readme_shows_what_the_demo_says():
    said = (ROOT / "docs/images/demo-output.txt").read_text(encoding="utf-8")
    assert said.startswith("rollouts")
    assert f"```text\n{said}```" in (ROOT / "README.md").read_text(encoding="utf-8")
