"""RUN on a command line."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rolltop.errors import RunNotFoundError
from rolltop.lifecycle.runs import is_run, list_runs, resolve_run, uuid_of

FIRST = "1b2c3d4e-0000-4000-8000-000000000001"
SECOND = "1b2c9999-0000-4000-8000-000000000002"


def make_run(root, name, uuid=None, mtime=None):
    folder = root / name
    (folder / "prometheus").mkdir(parents=True)
    if uuid:
        (folder / "run_metadata.yaml").write_text(f"run_name: demo\nrun_uuid: {uuid}\n")
    if mtime:
        os.utime(folder, (mtime, mtime))
    return folder


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "runs"
    make_run(root, "2026-11-30T10-00-00Z-demo-1b2c3d4e", FIRST, 100)
    make_run(root, "own-name", SECOND, 200)
    (root / "notes").mkdir()
    return root


def test_latest(root):
    (root / "latest").symlink_to("own-name")
    assert resolve_run("latest", root).run_dir == root / "own-name"


@pytest.mark.parametrize("link", [None, "gone"])
def test_no_latest(root, link):
    if link:
        (root / "latest").symlink_to(link)
    with pytest.raises(RunNotFoundError) as caught:
        resolve_run("latest", root)
    assert str(root / "latest") in caught.value.message
    assert "own-name" in caught.value.hint


def test_a_directory_anywhere(tmp_path, root):
    run = make_run(tmp_path, "elsewhere")
    assert resolve_run(str(run), root).run_dir == run


def test_a_directory_of_the_root(root):
    assert resolve_run("own-name", root).run_dir == root / "own-name"


@pytest.mark.parametrize("text", [FIRST, FIRST[:8], FIRST[:5], FIRST.upper(), FIRST[:12]])
def test_the_start_of_a_uuid(root, text):
    assert resolve_run(text, root).run_dir.name == "2026-11-30T10-00-00Z-demo-1b2c3d4e"


def test_a_uuid_without_metadata_is_in_the_name(root):
    run = make_run(root, "2026-11-30T10-00-00Z-demo-77aabbcc")
    assert resolve_run("77aa", root).run_dir == run


def test_a_start_of_several_names_them(root):
    with pytest.raises(RunNotFoundError) as caught:
        resolve_run("1b2c", root)
    assert "2 runs" in caught.value.message
    assert "own-name" in caught.value.message
    assert "more of the uuid" in caught.value.hint


def test_a_typing_error_names_the_nearest(root):
    with pytest.raises(RunNotFoundError) as caught:
        resolve_run("own-nmae", root)
    assert "'own-nmae'" in caught.value.message
    assert caught.value.hint.endswith("own-name")


def test_an_unknown_uuid_names_the_newest_runs(root):
    with pytest.raises(RunNotFoundError) as caught:
        resolve_run("ffff", root)
    assert "own-name, 2026-11-30T10-00-00Z-demo-1b2c3d4e" in caught.value.hint


def test_no_runs_at_all(tmp_path):
    with pytest.raises(RunNotFoundError) as caught:
        resolve_run("ffff", tmp_path / "runs")
    assert "there are no runs" in caught.value.hint


@pytest.mark.parametrize("text", ["notes", "."])
def test_a_directory_of_something_else(root, text, monkeypatch):
    monkeypatch.chdir(root / "notes")
    with pytest.raises(RunNotFoundError, match="not the directory of a run"):
        resolve_run(text, root)


def test_the_newest_comes_first_and_links_do_not_count(root):
    (root / "latest").symlink_to("own-name")
    assert [run.name for run in list_runs(root)] == [
        "own-name",
        "2026-11-30T10-00-00Z-demo-1b2c3d4e",
    ]


@pytest.mark.parametrize("name", ["run_metadata.yaml", "summary.json", "prometheus"])
def test_what_makes_a_run(tmp_path, name):
    assert not is_run(tmp_path)
    (tmp_path / name).touch()
    assert is_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "uuid"),
    [
        (f"run_uuid: {FIRST}\n", FIRST),
        (f"a: 1\nrun_uuid: '{FIRST}'\n", FIRST),
        (f'run_uuid: "{FIRST}"', FIRST),
        (f"  run_uuid: {FIRST}", None),
        ("run_uuid:\n", None),
        ("", None),
    ],
)
def test_the_uuid_of_the_metadata(tmp_path, text, uuid):
    (tmp_path / "run_metadata.yaml").write_text(text)
    assert uuid_of(tmp_path) == uuid


def test_metadata_that_cannot_be_read(tmp_path):
    (tmp_path / "run_metadata.yaml").mkdir()
    assert uuid_of(tmp_path) is None
    assert uuid_of(tmp_path / "absent") is None


@settings(max_examples=50)
@given(text=st.text(max_size=20))
@example(text="~0")
@example(text="~\x00")
def test_any_text_is_a_run_or_not_found(text, tmp_path_factory):
    root = tmp_path_factory.getbasetemp() / "no-runs"
    try:
        resolve_run(text, root)
    except RunNotFoundError as error:
        message = error.message
    else:
        message = "a directory"
    assert message
