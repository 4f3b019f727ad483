"""The run directory is made once and never over another run."""

from __future__ import annotations

import errno
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from rolltop.errors import ConfigError
from rolltop.lifecycle.directory import (
    DirectoryWatch,
    is_full,
    new_run_directory,
    point_latest,
    render_metadata,
)
from rolltop.model.run import RunIdentity


def test_an_empty_directory_may_be_there_already(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with new_run_directory(tmp_path / "x") as paths:
        assert paths.data.is_dir()
    assert paths.logs.is_dir()


def test_others_do_not_see_into_it(tmp_path: Path) -> None:
    with new_run_directory(tmp_path / "runs" / "x"):
        pass
    folders = [tmp_path / "runs" / "x", *(tmp_path / "runs" / "x").rglob("*")]
    assert len(folders) == 7
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o750}


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with (
        pytest.raises(ConfigError, match="exists and is not empty") as caught,
        new_run_directory(tmp_path),
    ):
        pass
    assert caught.value.hint is not None
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError, match="not a directory"), new_run_directory(tmp_path / "x"):
        pass


@pytest.mark.parametrize(
    ("name", "what"), [("latest", "the link to the last run"), ("mine", "a link")]
)
def test_a_link_in_its_place_is_named(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "run")
    words = f"this is {what}, not a directory"
    with pytest.raises(ConfigError, match=words), new_run_directory(tmp_path / name):
        pass


def test_a_parent_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match="cannot be written: Not a directory"),
        new_run_directory(tmp_path / "file" / "x"),
    ):
        pass


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ConfigError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_one_that_cannot_be_filled_is_as_it_was(
    tmp_path: Path, existed: bool, failure: BaseException, raised: type[BaseException]
) -> None:
    run_dir = tmp_path / "x"
    if existed:
        run_dir.mkdir()
    with pytest.raises(raised) as caught, new_run_directory(run_dir) as paths:  # noqa: PT012
        paths.config.write_text("half")
        raise failure
    assert run_dir.exists() is existed
    assert not existed or list(run_dir.iterdir()) == []
    if raised is ConfigError:
        assert str(caught.value) == f"run.dir={run_dir}: cannot be written: No space left on device"


def test_metadata_keeps_the_offset_and_redacts(tmp_path: Path) -> None:
    identity = RunIdentity(
        run_uuid="u",
        run_name="n",
        user="me",
        started=datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=9))),
        command=("rolltop", "run", "services.driver.env.API_TOKEN=hunter2hunter2"),
    )
    text = render_metadata(identity, tmp_path)
    assert yaml.safe_load(text)["run_time"] == "2026-01-02T03:04:05+09:00"
    assert "hunter2" not in text


def test_latest_follows_the_newest_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name, runs_root=tmp_path)
        assert (tmp_path / "latest").resolve() == tmp_path / name


def test_latest_is_not_made_for_a_run_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    point_latest(tmp_path / "elsewhere", runs_root=tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_directory_called_latest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    (tmp_path / "one").mkdir()
    point_latest(tmp_path / "one", runs_root=tmp_path)
    assert not (tmp_path / "latest").is_symlink()


def test_a_directory_that_stays_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    watch = DirectoryWatch(tmp_path / "x")
    (tmp_path / "x" / "file").touch()
    assert watch.lost() is None
    watch.close()


def test_a_directory_that_was_deleted_is_lost_also_where_another_one_is(tmp_path: Path) -> None:
    run_dir = tmp_path / "x"
    run_dir.mkdir()
    watch = DirectoryWatch(run_dir)
    run_dir.rmdir()
    said = f"the run directory {run_dir} was deleted while the run went on"
    assert watch.lost() == said
    run_dir.mkdir()
    assert watch.lost() == said
    watch.close()


def test_a_directory_that_was_moved_is_lost_until_it_is_back(tmp_path: Path) -> None:
    run_dir, other = tmp_path / "x", tmp_path / "y"
    run_dir.mkdir()
    watch = DirectoryWatch(run_dir)
    run_dir.rename(other)
    assert watch.lost() == f"the run directory {run_dir} was moved to {other} while the run went on"
    other.rename(run_dir)
    assert watch.lost() is None
    watch.close()


@pytest.mark.parametrize(
    ("number", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)]
)
def test_a_full_directory_is_one_that_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, full: bool
) -> None:
    assert not is_full(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def refuse(**_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("rolltop.lifecycle.directory.tempfile.TemporaryFile", refuse)
    assert is_full(tmp_path) is full
