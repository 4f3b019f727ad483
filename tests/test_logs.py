"""The end of a log, whatever is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.logs import redact_log, tail


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ()),
        (b"\n\n  \n", ()),
        (b"one", ("one",)),
        (b"one\n\ntwo  \n", ("one", "two")),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"10%\r50%\r100%\r\ndone", ("100%", "done")),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07text", ("red text",)),
        (b"nul\x00\x07 byte\xff", ("nul byte\N{REPLACEMENT CHARACTER}",)),
        ("traffic é 漢".encode(), ("traffic é 漢",)),
        (b"x password=hunter2 y", ("x password=[redacted] y",)),
    ],
)
def test_a_log_is_shown_as_it_reads(tmp_path, data, expected):
    log = tmp_path / "a.log"
    log.write_bytes(data)
    assert tail(log) == expected


def test_the_last_lines_are_shown(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {i}\n" for i in range(1000)))
    assert tail(log, 3) == ("line 997", "line 998", "line 999")


def test_no_log_says_nothing(tmp_path):
    assert tail(tmp_path / "none.log") == ()
    assert tail(tmp_path) == ()


def test_a_huge_log_is_read_at_its_end_only(tmp_path):
    log = tmp_path / "a.log"
    with log.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\nthe end\n")
    assert tail(log) == ("the end",)


def test_a_line_that_never_ends_is_cut(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 1_000_000)
    (line,) = tail(log, max_chars=100)
    assert line == "x" * 94 + " [...]"


def test_a_line_of_which_half_was_read_is_dropped(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"12345 secret half\nwhole\n")
    assert tail(log, max_bytes=12) == ("whole",)


@given(data=st.binary(max_size=2000), lines=st.integers(1, 30), chars=st.integers(10, 80))
def test_any_bytes_give_short_clean_lines(tmp_path_factory, data, lines, chars):
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_bytes(data)
    shown = tail(log, lines, max_chars=chars, max_bytes=1000)
    assert len(shown) <= lines
    assert all(0 < len(line) <= chars for line in shown)
    assert not any(set(line) & {"\n", "\r", "\0", "\x1b"} for line in shown)


KEY = b"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"DB_PASSWORD=hunter2hunter2\n", b"DB_PASSWORD=[redacted]\n"),
        (
            b"a\xff\x00\x1b[1mred\x1b[0m\r\ntoken: abc\xff",
            b"a\xff\x00\x1b[1mred\x1b[0m\r\ntoken: [redacted]",
        ),
        (b"\x1b[1mpassword\x1b[0m=hunter2", b"password=[redacted]"),
        (
            b"one\n" + KEY + b"two\n",
            b"one\n-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\ntwo\n",
        ),
        (b"one\n" + KEY[:40], b"one\n-----BEGIN RSA PRIVATE KEY-----[redacted]"),
    ],
)
def test_a_log_that_is_kept_has_no_secrets(tmp_path, data, expected):
    log = tmp_path / "a.log"
    log.write_bytes(data)
    log.chmod(0o666)
    assert redact_log(log)
    assert log.read_bytes() == expected
    assert log.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


@given(lines=st.lists(st.binary(max_size=200), max_size=20))
def test_a_log_without_secrets_is_not_touched(tmp_path_factory, lines):
    log = tmp_path_factory.getbasetemp() / "harmless.log"
    data = b"\n".join(
        b"step=3 took 0.2 s " + line.replace(b"=", b"").replace(b":", b"") for line in lines
    )
    log.unlink(missing_ok=True)
    log.write_bytes(data)
    before = log.stat().st_ino
    assert redact_log(log)
    assert (log.read_bytes(), log.stat().st_ino) == (data, before)


def test_a_log_that_is_too_long_is_left(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(b"password=hunter2\n" * 10)
    assert not redact_log(log, largest=100)
    assert log.read_bytes().startswith(b"password=hunter2\n")
