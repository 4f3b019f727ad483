"""Finding a way to render, and saying so when there is none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from rolltop_refsim import gl as command
from rolltop_refsim.world import gl, gl_packages
from rolltop_refsim.world.gl_packages import InstallError

NAME = "libosmesa6_22.3.6_amd64.deb"
URIS = """Reading package lists...
Building dependency tree...
The following NEW packages will be installed:
  gcc-12-base libc6 libllvm15 libosmesa6
'http://mirror/pool/main/g/gcc-12/gcc-12-base_12.2_amd64.deb' gcc-12-base_12.2_amd64.deb 1 SHA256:a
'http://mirror/pool/main/g/glibc/libc6_2.36_amd64.deb' libc6_2.36_amd64.deb 1 SHA256:b
'http://mirror/pool/main/l/libllvm15_1%3a15.0.6_amd64.deb' libllvm15_1%3a15.0.6_amd64.deb 1 MD5:c
'http://mirror/pool/main/m/mesa/libosmesa6_22.3.6_amd64.deb' libosmesa6_22.3.6_amd64.deb 1 SHA256:d
"""


@pytest.fixture
def fresh_choice() -> Iterator[None]:
    gl.choose_backend.cache_clear()
    yield
    gl.choose_backend.cache_clear()


@pytest.fixture
def no_backend(
    fresh_choice: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> pytest.MonkeyPatch:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv("ROLLTOP_REFSIM_GL_DIR", str(tmp_path / "gl"))
    monkeypatch.setattr(gl, "OSMESA_NAMES", ("libOSMesaThatNobodyHas.so.8",))
    return monkeypatch


def test_the_error_names_packages_and_command(no_backend: pytest.MonkeyPatch) -> None:
    with pytest.raises(gl.GlError) as caught:
        gl.choose_backend()
    message = str(caught.value)
    assert "libosmesa6" in message
    assert "libegl1" in message
    assert "python -m rolltop_refsim.gl --install" in message
    assert "\n" not in message


def test_check_fails_in_one_line(
    no_backend: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--check"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: no osmesa")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_check_renders(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"]) == 0
    assert capsys.readouterr().out.startswith("the camera renders with ")


def test_windowed_backends_are_refused(fresh_choice: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    with pytest.raises(gl.GlError, match="use egl or osmesa"):
        gl.choose_backend()


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLTOP_REFSIM_GL_DIR", raising=False)
    monkeypatch.delenv("ROLLTOP_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert gl.library_dir() == Path("/home/somebody/.cache/rolltop/gl")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert gl.library_dir() == Path("/xdg/rolltop/gl")
    monkeypatch.setenv("ROLLTOP_CACHE_DIR", "/rolltop")
    assert gl.library_dir() == Path("/rolltop/gl")
    monkeypatch.setenv("ROLLTOP_REFSIM_GL_DIR", "/chosen")
    assert gl.library_dir() == Path("/chosen")


def test_broken_libraries_are_not_taken(no_backend: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "gl" / "usr" / "lib"
    folder.mkdir(parents=True)
    (folder / "libOSMesaThatNobodyHas.so.8").write_bytes(b"no library")
    with pytest.raises(gl.GlError, match="libosmesa6"):
        gl.choose_backend()


def test_closure_leaves_out_what_each_system_has() -> None:
    assert gl_packages._closure(URIS) == ["libllvm15", "libosmesa6"]


def _tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "uris").write_text(URIS)
    _tool(folder, "dpkg-deb", "exit 0")
    _tool(
        folder,
        "apt-get",
        f'case "$*" in *print-uris*) cat {tmp_path}/uris;; *download*) touch {NAME};; esac',
    )
    _tool(folder, "dpkg", 'mkdir -p "$3/usr/lib" && touch "$3/usr/lib/libOSMesa.so.8"')
    return folder


def test_install_replaces_the_folder_whole(tools: Path, tmp_path: Path) -> None:
    target = tmp_path / "cache" / "gl"
    target.mkdir(parents=True)
    (target / "old").touch()
    said: list[str] = []
    gl_packages.install(target, said.append)
    assert (target / "usr/lib/libOSMesa.so.8").exists()
    assert not (target / "old").exists()
    assert list(target.parent.iterdir()) == [target]
    assert said[-1] == "unpacking libosmesa6"


def test_a_failing_apt_is_named_and_leaves_nothing(tools: Path, tmp_path: Path) -> None:
    _tool(tools, "apt-get", "echo 'E: Could not resolve the mirror' >&2; exit 100")
    target = tmp_path / "cache" / "gl"
    with pytest.raises(InstallError, match=r"apt-get ended with status 100: E: Could not resolve"):
        gl_packages.install(target, lambda _: None)
    assert list(target.parent.iterdir()) == []


def test_other_systems_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="Debian"):
        gl_packages.install(tmp_path / "gl", lambda _: None)
