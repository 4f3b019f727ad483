"""Copies of databases: whole, and without a trace on the original."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from rolltop.errors import PrometheusError
from rolltop.model.series import Series
from rolltop.prometheus import database
from rolltop.prometheus.database import (
    blocks,
    copy_data,
    copy_sparse,
    has_samples,
    is_database,
)


@pytest.fixture(scope="module")
def two_blocks(make_blocks, tmp_path_factory):
    """A database with two blocks, as a run of three hours leaves them."""
    times = 1_700_000_000.0 + 60.0 * np.arange(180)
    series = [Series({"__name__": "steps"}, times, np.arange(180.0))]
    return make_blocks(series, tmp_path_factory.mktemp("blocks") / "data")


@pytest.fixture
def data(two_blocks, tmp_path):
    """The same with a head, and with what a server that was killed leaves."""
    folder = tmp_path / "data"
    shutil.copytree(two_blocks, folder)
    for name, content in {
        "wal/00000000": b"first",
        "wal/00000001": b"second" + bytes(3 << 20),
        "wal/checkpoint.00000002/00000000": b"checkpoint",
        "wal/checkpoint.00000003.tmp/00000000": b"half a checkpoint",
        "chunks_head/000001": b"chunks" + bytes(8 << 20),
        "lock": b"",
        "queries.active": bytes(20_001),
        "01HFAKE.tmp-for-creation/meta.json": b"{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / blocks(folder)[0].replace("0", "1")).mkdir()  # a block without its meta.json
    return folder


def state(folder):
    """Everything that a copy must not change."""
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes() if path.is_file() else None,
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_all_that_counts_is_copied_and_nothing_else(data, tmp_path):
    before = state(data)
    copy = tmp_path / "copy"
    copy_data(data, copy)
    assert state(data) == before
    copied = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    head = {"wal/00000000", "wal/00000001", "chunks_head/000001"}
    head.add("wal/checkpoint.00000002/00000000")
    assert {name for name in copied if not name.startswith("01")} == head
    assert blocks(copy) == blocks(data)
    for name in copied:
        assert (copy / name).read_bytes() == (data / name).read_bytes()


def test_blocks_are_linked_and_the_rest_is_not(data, tmp_path):
    copy = tmp_path / "copy"
    copy_data(data, copy)
    block = blocks(data)[0]
    for name in (f"{block}/index", f"{block}/chunks/000001", f"{block}/meta.json"):
        assert (copy / name).samefile(data / name)
    for name in ("wal/00000000", "chunks_head/000001"):
        assert not (copy / name).samefile(data / name)


def test_blocks_are_copied_where_they_cannot_be_linked(data, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(database.os, "link", refuse)
    copy_data(data, tmp_path / "copy")
    block = blocks(data)[0]
    assert not (tmp_path / f"copy/{block}/index").samefile(data / block / "index")
    assert (tmp_path / f"copy/{block}/index").read_bytes() == (data / block / "index").read_bytes()


def test_another_file_system(data):
    """Shared memory is one of its own on every Linux."""
    other = Path("/dev/shm") / f"rolltop-test-{os.getpid()}"
    try:
        copy_data(data, other)
        assert blocks(other) == blocks(data)
        assert (other / "wal/00000000").read_bytes() == b"first"
    finally:
        shutil.rmtree(other)


def test_zeros_take_no_room(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    with source.open("wb") as file:
        file.write(b"x" * 10)
        file.truncate(64 << 20)
    copy_sparse(source, target)
    assert target.stat().st_size == 64 << 20
    assert target.stat().st_blocks * 512 <= 2 << 20
    assert target.read_bytes() == source.read_bytes()


def test_a_head_that_changes_meanwhile_is_copied_again(data, tmp_path, monkeypatch):
    """A server makes a checkpoint and drops segments between the listing and the copying."""
    real, seen = database.copy_sparse, []

    def copy(source, target):
        if not seen:
            (data / "wal/00000000").unlink()
            (data / "wal/checkpoint.00000004").mkdir()
            (data / "wal/checkpoint.00000004/00000000").write_bytes(b"newer")
        seen.append(source)
        real(source, target)

    monkeypatch.setattr(database, "copy_sparse", copy)
    copy_data(data, tmp_path / "copy")
    assert not (tmp_path / "copy/wal/00000000").exists()
    assert (tmp_path / "copy/wal/checkpoint.00000004/00000000").read_bytes() == b"newer"


def test_a_head_that_never_rests_is_given_up(data, tmp_path, monkeypatch):
    def vanish(source, target):
        raise FileNotFoundError(source)

    monkeypatch.setattr(database, "copy_sparse", vanish)
    with pytest.raises(PrometheusError, match="changed each of the 5 times"):
        copy_data(data, tmp_path / "copy")


def test_a_block_that_is_deleted_meanwhile_is_left_out(data, tmp_path, monkeypatch):
    gone, kept = blocks(data)
    real = database._link_block

    def link(source, target):
        if source.name == gone:
            shutil.rmtree(source)
        real(source, target)

    monkeypatch.setattr(database, "_link_block", link)
    copy_data(data, tmp_path / "copy")
    assert blocks(tmp_path / "copy") == [kept]


@pytest.mark.parametrize("kind", ["absent", "empty", "a file"])
def test_no_database(tmp_path, kind):
    source = tmp_path / "data"
    if kind == "empty":
        source.mkdir()
    elif kind == "a file":
        source.touch()
    with pytest.raises(PrometheusError) as caught:
        copy_data(source, tmp_path / "copy")
    assert str(source) in caught.value.message
    assert "telemetry.enabled=false" in caught.value.hint
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_cannot_be_written(data, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PrometheusError) as caught:
        copy_data(data, tmp_path / "file/copy")
    assert "file" in caught.value.message
    assert "TMPDIR" in caught.value.hint


def test_a_head_alone_is_a_database(tmp_path):
    assert not is_database(tmp_path)
    (tmp_path / "wal").mkdir()
    assert is_database(tmp_path)


def test_samples_lie_in_blocks_or_in_a_log_that_is_not_empty(two_blocks, tmp_path):
    assert has_samples(two_blocks)
    assert not has_samples(tmp_path / "absent")
    (tmp_path / "wal").mkdir()
    (tmp_path / "wal" / "00000000").touch()
    assert not has_samples(tmp_path)
    (tmp_path / "wal" / "00000000").write_bytes(b"a record")
    assert has_samples(tmp_path)
