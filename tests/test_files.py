"""A file is there whole, or as it was."""

from __future__ import annotations

import os
import stat

import pytest

from rolltop.files import read_file, replace_file


@pytest.mark.parametrize(("mode", "umask"), [(0o640, 0o000), (0o640, 0o077), (0o644, 0o077)])
def test_it_has_its_content_and_mode_whatever_the_umask(tmp_path, mode, umask):
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "a", "ü\n", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "a").read_bytes() == "ü\n".encode()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_no_trace(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("mine")
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "a", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_temporary_file_lies_where_it_was_told(tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    with pytest.raises(OSError, match="absent"):
        replace_file(tmp_path / "absent" / "x", "[]", staging=staging)
    assert list(staging.iterdir()) == []


def test_a_file_of_somebody_else_is_read_within_bounds(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert read_file(tmp_path / "a", max_bytes=3) == b"123"
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_file(tmp_path / "a", max_bytes=2)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="not a regular file"):
            read_file(tmp_path / name, max_bytes=2)
