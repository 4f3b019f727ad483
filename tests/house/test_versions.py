"""One version for all packages, written where tools look for it."""

from __future__ import annotations

import re
import tomllib

import pytest
import rolltop_instrument

import rolltop
from scripts.repository import ROOT

PROJECTS = ("", "packages/instrument", "packages/refsim", "examples/tiny")


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_packages_say_what_the_projects_say():
    assert rolltop.__version__ == project("")["version"]
    assert rolltop_instrument.__version__ == project("packages/instrument")["version"]


@pytest.mark.parametrize("folder", PROJECTS)
def test_there_is_one_version(folder):
    assert project(folder)["version"] == rolltop.__version__


@pytest.mark.parametrize("folder", PROJECTS)
def test_ours_depend_on_exactly_that_one(folder):
    ours = [d for d in project(folder)["dependencies"] if d.startswith("rolltop")]
    assert [d for d in ours if not d.endswith(f"=={rolltop.__version__}")] == []


def test_the_changelog_has_a_place_for_what_is_new():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "Unreleased" or headings[0].startswith(rolltop.__version__)
