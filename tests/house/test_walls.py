"""Walls that are lists of what is allowed; import-linter holds the others (.importlinter)."""

from __future__ import annotations

import ast
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from scripts.repository import name, python_files

STDLIB = sys.stdlib_module_names

ALLOWED = {
    "packages/instrument/src": {"rolltop_instrument", "prometheus_client", "grpc"},
    "packages/refsim/src": {
        "rolltop_refsim", "rolltop_instrument",
        "google", "grpc", "grpc_health", "grpc_tools", "mujoco", "numpy",
    },
    "examples/tiny/src": {"rolltop_tiny", "rolltop_instrument"},
    "src/rolltop/analysis": {"rolltop.analysis", "rolltop.model", "rolltop.errors", "numpy"},
    "src/rolltop/model": {"rolltop.model", "numpy"},
    "src/rolltop/errors.py": set(),
    "src/rolltop/launch/guard.py": {"rolltop.launch", "rolltop.logs"},
    "src/rolltop/logs.py": {"rolltop.files", "rolltop.model.redact"},  # the guard has no more
    "src/rolltop/model/redact.py": set(),
    "src/rolltop/files.py": set(),
}  # fmt: skip


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_allowed(module, allowed):
    return module.partition(".")[0] in STDLIB or any(
        module == one or module.startswith(f"{one}.") for one in allowed
    )


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_nothing_else(folder):
    paths = python_files(folder)
    assert paths
    foreign = {
        f"{name(path)}: {module}"
        for path in paths
        for module in imports_of(path)
        if not is_allowed(module, ALLOWED[folder])
    }
    assert foreign == set()


def needed_by(distribution):
    """Return all that pip installs with a distribution, without extras."""
    needed = set()
    for text in metadata.requires(distribution) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed |= {requirement.name} | needed_by(requirement.name)
    return needed


def test_the_instrument_alone_pulls_prometheus_client_and_no_more():
    assert needed_by("rolltop-instrument") == {"prometheus-client"}


def test_rolltop_does_not_pull_a_simulator():
    assert not {"rolltop-refsim", "rolltop-tiny", "mujoco"} & needed_by("rolltop")
