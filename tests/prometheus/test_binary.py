"""Finding a Prometheus, and every kind of thing that is none."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolltop.errors import DependencyError
from rolltop.prometheus import binary as module
from rolltop.prometheus.binary import (
    Source,
    Version,
    find_prometheus,
    inspect,
    parse_flags,
    parse_version,
    tool_version,
)
from rolltop.prometheus.places import cache_dir, debian_dir

VERSION_TEXT = "prometheus, version {} (branch: HEAD, revision: 1234)\n  go version: go1.22\n"
DEBIAN_HELP = """usage: prometheus [<flags>]

Flags:
  -h, --help                     Show context-sensitive help (also try
                                 --help-long and --help-man).
      --web.local-assets="/usr/share/prometheus/web/"
      --storage.tsdb.use-lockfile
                                 Like upstream's --storage.tsdb.no-lockfile.
"""
UPSTREAM_HELP = """usage: prometheus [<flags>]

Flags:
  -h, --[no-]help                Show help.
      --[no-]storage.tsdb.no-lockfile
                                 Do not create lockfile in data directory.
"""


GOOD_VERSION = VERSION_TEXT.format("2.45.0")


def write_program(path, version=GOOD_VERSION, help_text=UPSTREAM_HELP, body=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "#!/bin/sh\n"
        f"{body}\n"
        f"case \"$1\" in\n--version) cat <<'E'\n{version}\nE\n;;\n"
        f"--help) cat >&2 <<'E'\n{help_text}\nE\n;;\nesac\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def env(tmp_path):
    """An environment with nothing in it: no Prometheus on the PATH, an empty cache."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "ROLLTOP_CACHE_DIR": str(tmp_path / "cache")}


def test_the_real_one_can_be_used(binary):
    assert binary.path.is_absolute()
    assert binary.version.numbers >= (2, 31, 0)
    assert {"config.file", "storage.tsdb.path", "web.listen-address"} <= binary.flags
    assert binary.promtool is not None
    assert tool_version(binary.promtool) == binary.version.text


def test_the_variable_comes_first(env, tmp_path):
    write_program(tmp_path / "bin/prometheus")
    named = write_program(tmp_path / "own/prom", VERSION_TEXT.format("3.1.0"))
    found = find_prometheus({**env, "ROLLTOP_PROMETHEUS": str(named)})
    assert (found.path, found.source, found.version.numbers) == (named, Source.VARIABLE, (3, 1, 0))


def test_the_path_comes_before_the_cache(env, tmp_path):
    on_path = write_program(tmp_path / "bin/prometheus")
    write_program(debian_dir(env) / "prometheus-2.50.0/usr/bin/prometheus")
    assert find_prometheus(env).path == on_path


def test_an_old_one_on_the_path_is_passed_over(env, tmp_path):
    write_program(tmp_path / "bin/prometheus", VERSION_TEXT.format("2.24.1+ds"))
    cached = write_program(debian_dir(env) / "prometheus-2.50.0/usr/bin/prometheus")
    assert find_prometheus(env).path == cached


def test_the_newest_of_the_cache_comes_first(env):
    for version in ("2.9.0", "2.53.3+ds1-1", "2.42.0+ds-5"):
        write_program(
            debian_dir(env) / f"prometheus-{version}/usr/bin/prometheus",
            VERSION_TEXT.format(version if version != "2.9.0" else "2.31.0"),
        )
    assert find_prometheus(env).version.text == "2.53.3+ds1-1"


def test_a_broken_one_of_the_cache_is_passed_over(env):
    write_program(debian_dir(env) / "prometheus-2.53.0/usr/bin/prometheus", "what?")
    good = write_program(debian_dir(env) / "prometheus-2.42.0/usr/bin/prometheus")
    assert find_prometheus(env).path == good


def test_what_an_installation_left_half_done_is_never_taken(env):
    write_program(debian_dir(env) / ".unpacking-x/root/usr/bin/prometheus")
    with pytest.raises(DependencyError, match="no Prometheus"):
        find_prometheus(env)


def test_none_at_all_names_the_places_and_the_cure(env):
    with pytest.raises(DependencyError) as caught:
        find_prometheus(env)
    assert str(debian_dir(env)) in caught.value.message
    assert "rolltop deps --install" in caught.value.hint
    assert "ROLLTOP_PROMETHEUS" in caught.value.hint


def test_all_that_cannot_be_used_are_named(env, tmp_path):
    write_program(tmp_path / "bin/prometheus", VERSION_TEXT.format("2.24.1"))
    with pytest.raises(DependencyError) as caught:
        find_prometheus(env)
    assert str(tmp_path / "bin/prometheus") in caught.value.message
    assert "2.24.1: 2.31 or newer is needed" in caught.value.message


def test_one_that_was_named_is_never_replaced_by_another(env, tmp_path):
    write_program(tmp_path / "bin/prometheus")
    with pytest.raises(DependencyError) as caught:
        find_prometheus({**env, "ROLLTOP_PROMETHEUS": str(tmp_path / "absent")})
    assert "ROLLTOP_PROMETHEUS" in caught.value.message
    assert "does not exist" in caught.value.message
    assert "unset ROLLTOP_PROMETHEUS" in caught.value.hint


def bad(path, kind):
    if kind == "a folder":
        path.mkdir(parents=True)
    elif kind == "not executable":
        write_program(path).chmod(0o644)
    elif kind == "another machine's":
        path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
        path.chmod(0o755)
    elif kind == "another program":
        write_program(path, "promtool, version 2.45.0 (branch: HEAD)")
    elif kind == "garbage":
        write_program(path, "\x01\x02 prometheus 2")
    elif kind == "too old":
        write_program(path, VERSION_TEXT.format("2.30.3"))
    elif kind == "too new a library":
        write_program(path, "", body='echo "/lib/libc.so.6: version \\`GLIBC_2.34\' not found" >&2')
    return path


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("a folder", "is a folder"),
        ("not executable", "may not be executed"),
        ("another machine's", "not a program for this machine"),
        ("another program", "is not Prometheus"),
        ("garbage", "is not Prometheus"),
        ("too old", "is Prometheus 2.30.3: 2.31 or newer"),
        ("too new a library", "needs GLIBC_2.34"),
    ],
)
def test_says_why_it_cannot_be_used(tmp_path, kind, says):
    path = tmp_path / "prom"
    with pytest.raises(DependencyError, match=says) as caught:
        inspect(bad(path, kind), Source.VARIABLE)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_one_that_gives_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PROBE_TIMEOUT_S", 0.2)
    path = write_program(tmp_path / "prom", body="exec sleep 60")
    with pytest.raises(DependencyError, match=r"no answer to --version within 0.2 s"):
        inspect(path, Source.VARIABLE)


def is_gone(pid):
    """Wait for a process that was killed: it may take a moment to go."""
    for _ in range(1000):
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_nothing_is_left_of_one_that_gives_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PROBE_TIMEOUT_S", 2.0)
    body = f"sleep 1000 & echo $! >{tmp_path}/pid; wait"
    path = write_program(tmp_path / "prom", body=body)
    with pytest.raises(DependencyError, match="no answer to --version"):
        inspect(path, Source.VARIABLE)
    assert is_gone((tmp_path / "pid").read_text().strip())


def test_nothing_is_left_of_one_that_starts_others_and_answers(tmp_path):
    """They hold its output open, which is no reason to wait for them."""
    path = write_program(tmp_path / "prom", body=f"sleep 1000 & echo $! >>{tmp_path}/pids")
    assert inspect(path, Source.VARIABLE).version.numbers == (2, 45, 0)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert all(is_gone(pid) for pid in pids)


def test_one_that_never_stops_talking_is_not_listened_to(tmp_path):
    path = write_program(tmp_path / "prom", body="exec yes")
    with pytest.raises(DependencyError, match="is not Prometheus"):
        inspect(path, Source.VARIABLE)


def test_flags_are_those_of_the_build(tmp_path):
    debian = inspect(write_program(tmp_path / "a/usr/bin/p", help_text=DEBIAN_HELP), Source.PATH)
    upstream = inspect(write_program(tmp_path / "b/usr/bin/p"), Source.PATH)
    options = {"config": tmp_path / "c.yml", "data": tmp_path / "data", "port": 1234}
    assert debian.flavour == "debian"
    assert "--storage.tsdb.use-lockfile" in debian.command(**options)
    assert upstream.flavour == "upstream"
    assert not [flag for flag in upstream.command(**options) if "lockfile" in flag]
    for one in (debian, upstream):
        command = one.command(**options)
        assert "--web.listen-address=127.0.0.1:1234" in command
        assert "--storage.tsdb.retention.time=100y" in command
        assert not [flag for flag in command if "lifecycle" in flag or "admin" in flag]


def test_pages_need_their_files(tmp_path):
    path = write_program(tmp_path / "usr/bin/prometheus", help_text=DEBIAN_HELP)
    assert not inspect(path, Source.CACHE).has_pages
    web = tmp_path / "usr/share/prometheus/web"
    (web / "templates").mkdir(parents=True)
    (web / "templates/graph.html").touch()
    (web / "static").mkdir()
    (web / "static/jquery").symlink_to("../../../javascript/jquery")
    assert not inspect(path, Source.CACHE).has_pages, "its library is missing"
    (tmp_path / "usr/share/javascript/jquery").mkdir(parents=True)
    found = inspect(path, Source.CACHE)
    assert found.has_pages
    command = found.command(config=tmp_path, data=tmp_path, port=1)
    assert f"--web.local-assets={web}" in command


def test_upstream_carries_its_pages(tmp_path):
    assert inspect(write_program(tmp_path / "prometheus"), Source.PATH).has_pages


def test_the_real_one_knows_all_flags(binary, tmp_path):
    """A flag that it does not know ends it before it looks at its configuration."""
    config = tmp_path / "prometheus.yml"
    command = binary.command(config=config, data=tmp_path / "data", port=9)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode != 0
    assert "flag" not in done.stderr
    assert str(config) in done.stderr


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"HOME": "/h"}, "/h/.cache/rolltop"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/rolltop"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "relative"}, "/h/.cache/rolltop"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x", "ROLLTOP_CACHE_DIR": "/own"}, "/own"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(env, place):
    assert str(cache_dir(env)) == place


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (VERSION_TEXT.format("2.42.0+ds"), Version((2, 42, 0), "2.42.0+ds")),
        (VERSION_TEXT.format("v3.0.0-rc.1"), Version((3, 0, 0), "3.0.0-rc.1")),
        ("WARN something\n" + VERSION_TEXT.format("2.31.0"), Version((2, 31, 0), "2.31.0")),
        ("promtool, version 2.42.0", None),
        ("prometheus, version 2.42", None),
        ("", None),
    ],
)
def test_versions(text, version):
    assert parse_version(text) == version


def test_versions_compare_by_their_numbers():
    assert Version((2, 9, 0), "2.9.0") < Version((2, 31, 0), "2.31.0")


@given(st.tuples(*[st.integers(0, 10**9 - 1)] * 3), st.text("az019.", max_size=9).map("+{}".format))
def test_any_version_is_read_back(numbers, tail):
    text = ".".join(map(str, numbers)) + tail
    assert parse_version(VERSION_TEXT.format(text)) == Version(numbers, text)


@given(st.text())
def test_no_text_breaks_the_parsers(text):
    assert parse_version(text) is None or text
    assert all(flag in text for flag in parse_flags(text))


FLAGS = st.text("az019.-", max_size=12).map("f{}".format)


@given(st.sets(FLAGS, max_size=8), st.booleans())
def test_any_flags_are_read_back(flags, negatable):
    no = "[no-]" if negatable else ""
    lines = [f"      --{no}{flag}=VALUE  Not --{flag}x, nor\n          --other." for flag in flags]
    assert parse_flags("\n".join(lines)) == flags
