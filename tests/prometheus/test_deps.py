"""``rolltop deps``: what is said of what is there, and of what is not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from rolltop.cli import deps
from rolltop.errors import DependencyError
from rolltop.prometheus import install as install_module
from rolltop.prometheus import survey as module
from rolltop.prometheus.survey import survey


@pytest.fixture
def run():
    """Return a function that runs the command and gives its status and output."""
    app = typer.Typer()
    deps.register(app)

    def run(*arguments):
        done = CliRunner().invoke(app, list(arguments), standalone_mode=False)
        if done.exception:
            raise done.exception
        return done.return_value, done.stdout

    return run


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """An environment without any Prometheus."""
    for name in ("ROLLTOP_PROMETHEUS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROLLTOP_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_all_is_there(run, binary):
    status, text = run()
    assert status == 0
    for word in (str(binary.path), str(binary.version), str(binary.promtool)):
        assert word in text
    assert "missing" not in text


def test_all_is_there_as_json(run, binary):
    status, text = run("--json")
    answer = json.loads(text)
    assert status == 0
    assert answer["complete"] is True
    found = {one["name"]: one for one in answer["dependencies"]}
    assert set(found) == {"prometheus", "promtool", "pages"}
    assert found["prometheus"]["place"] == str(binary.path)
    assert found["promtool"]["version"] == str(binary.version)


def test_nothing_is_there(run, nothing):
    status, text = run()
    assert status == 2
    assert text.count("missing") == 3
    assert "to get it: run `rolltop deps --install`" in text
    status, text = run("--json")
    assert status == 2
    assert json.loads(text)["complete"] is False


def test_one_that_cannot_be_used_is_named(run, nothing, monkeypatch):
    monkeypatch.setenv("ROLLTOP_PROMETHEUS", "/nowhere/prometheus")
    status, text = run()
    assert status == 2
    assert "/nowhere/prometheus (ROLLTOP_PROMETHEUS) does not exist" in text
    assert "unset ROLLTOP_PROMETHEUS" in text


def test_what_is_there_is_not_installed_again(run, binary, monkeypatch):
    monkeypatch.setattr(install_module, "install", None)
    assert run("--install")[0] == 0


def test_an_installation_that_fails_is_an_error(run, nothing):
    with pytest.raises(DependencyError, match="no apt-get"):
        run("--install")


@pytest.mark.parametrize("source", list(module.Source))
def test_parts_that_are_missing_are_optional(binary, monkeypatch, source):
    flags = binary.flags | {"web.local-assets"}
    bare = replace(binary, assets=None, promtool=None, source=source, flags=flags)
    monkeypatch.setattr(module, "find_prometheus", lambda _: bare)
    prometheus, promtool, pages = survey()
    assert prometheus.found
    assert not promtool.found
    assert not promtool.needed
    assert not pages.found
    assert not pages.needed
    assert promtool.cure
    assert pages.cure
