"""Unpacking Debian packages: real packages and dpkg, a stand-in for apt and its network."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from rolltop.errors import DependencyError
from rolltop.prometheus import debian
from rolltop.prometheus import install as module
from rolltop.prometheus.binary import Source
from rolltop.prometheus.debian import parse_versions, render_apt_conf, unpack_debian
from rolltop.prometheus.install import find_or_install, install
from rolltop.prometheus.places import debian_dir

PROGRAM = """#!/bin/sh
case "$1" in
--version) echo 'prometheus, version {version} (branch: x)' ;;
--help) printf 'Flags:\\n      --web.local-assets=""\\n' ;;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*update*) {update} ;;
*download*) cp {pool}/*.deb . ;;
esac
"""
APT_CACHE = """#!/bin/sh
cat {pool}/stanzas
"""


class Archive:
    """A package archive in a folder, and an apt that knows no other."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.pool = root / "pool"
        self.pool.mkdir()
        self.log = root / "apt.log"
        (self.pool / "stanzas").touch()
        bin_dir = root / "bin"
        bin_dir.mkdir()
        self._write(bin_dir / "apt-cache", APT_CACHE)
        self._write(bin_dir / "apt-get", APT_GET, update="exit 0")
        self.env = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "HOME": str(root / "home")}
        monkeypatch.setenv("PATH", self.env["PATH"])

    def fail_update(self, words):
        self._write(self.root / "bin/apt-get", APT_GET, update=f"echo '{words}' >&2; exit 100")

    def add(self, package, version, files):
        tree = self.root / f"tree-{package}-{version}"
        control = f"Package: {package}\nVersion: {version}\nArchitecture: all\n"
        control += "Maintainer: nobody <nobody@example.com>\nDescription: a test\n"
        for name, text in {"DEBIAN/control": control, **files}.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
            (tree / name).chmod(0o755)
        deb = self.pool / f"{package}.deb"
        subprocess.run(
            ["dpkg-deb", "--build", "--root-owner-group", tree, deb],
            check=True,
            capture_output=True,
        )
        with (self.pool / "stanzas").open("a") as stanzas:
            stanzas.write(f"{control}\n")
        return deb

    def add_prometheus(self, version="2.42.0"):
        program = PROGRAM.format(version=version)
        files = {"usr/bin/prometheus": program, "usr/share/doc/x": "long", "etc/x": "1"}
        return self.add("prometheus", version, files)

    def _write(self, path, text, update="exit 0"):
        path.write_text(text.format(log=self.log, pool=self.pool, update=update))
        path.chmod(0o755)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    return Archive(tmp_path, monkeypatch)


def listing(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_an_empty_home_gets_a_prometheus(archive):
    archive.add_prometheus()
    told = []
    binary = install(told.append, archive.env)
    place = debian_dir(archive.env) / "prometheus-2.42.0"
    assert binary.path == place / "usr/bin/prometheus"
    assert binary.source is Source.CACHE
    assert listing(debian_dir(archive.env)) == [".lock", "prometheus-2.42.0/usr/bin/prometheus"]
    assert len(told) == 3
    assert find_or_install(env=archive.env).path == binary.path


def test_nothing_of_the_system_is_touched(archive):
    """apt gets its own state, and is only asked to update that and to download."""
    archive.add_prometheus()
    install(env=archive.env)
    for line in archive.log.read_text().splitlines():
        assert line.startswith(f"-c {debian_dir(archive.env)}/.unpacking-")
        assert "install" not in line.split()
    conf = render_apt_conf(archive.root, "me")
    assert f'Dir::State::lists "{archive.root}/lists";' in conf
    assert f'Dir::Cache "{archive.root}/cache";' in conf
    assert 'DPkg::Lock::Timeout "300";' in conf


def test_the_configuration_is_one_for_apt(tmp_path):
    """The real apt reads it, and drops the hooks that would work on the system's state."""
    conf = tmp_path / "apt.conf"
    conf.write_text(render_apt_conf(tmp_path, "me"))
    done = subprocess.run(
        ["apt-config", "-c", conf, "dump"], capture_output=True, text=True, check=True
    )
    assert f'Dir::State::lists "{tmp_path}/lists";' in done.stdout
    assert "APT::Update::" not in done.stdout
    assert "DPkg::Post-Invoke::" not in done.stdout


def test_what_is_there_is_not_unpacked_again(archive):
    archive.add_prometheus()
    first = install(env=archive.env).path.stat()
    downloads = archive.log.read_text().count("download")
    assert install(env=archive.env).path.stat().st_ino == first.st_ino
    assert archive.log.read_text().count("download") == downloads


def test_a_broken_one_is_replaced(archive):
    archive.add_prometheus()
    binary = install(env=archive.env)
    binary.path.write_text("")
    assert install(env=archive.env).version.text == "2.42.0"


def test_a_newer_one_is_preferred(archive):
    archive.add_prometheus("2.42.0")
    install(env=archive.env)
    (archive.pool / "stanzas").write_text("")
    archive.add_prometheus("2.53.0")
    install(env=archive.env)
    assert find_or_install(env=archive.env).version.text == "2.53.0"


def test_two_at_once(archive):
    archive.add_prometheus()
    found, told = [], []
    threads = [
        threading.Thread(target=lambda: found.append(install(told.append, archive.env)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({binary.path for binary in found}) == 1
    assert len(found) == 4
    assert archive.log.read_text().count("download") == 1


def test_what_a_killed_one_left_is_removed(archive):
    left = debian_dir(archive.env) / ".unpacking-old/root/usr/bin"
    left.mkdir(parents=True)
    archive.add_prometheus()
    install(env=archive.env)
    assert not left.exists()


def test_killed_half_way_nothing_is_taken(archive):
    """kill -9 while it unpacks: what is left is never found, and the next one cleans it."""
    archive.add_prometheus()
    (archive.root / "bin/tar").write_text("#!/bin/sh\nkill -9 $PPID\n")
    (archive.root / "bin/tar").chmod(0o755)
    code = "from rolltop.prometheus.install import install; install()"
    environment = {**archive.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60)
    assert done.returncode == -9
    assert list(debian_dir(archive.env).glob(".unpacking-*"))
    (archive.root / "bin/tar").unlink()
    assert install(env=archive.env).version.text == "2.42.0"
    assert list(debian_dir(archive.env).glob(".unpacking-*")) == []


def assert_nothing_left(archive):
    assert listing(debian_dir(archive.env)) == [".lock"]


def test_a_damaged_package(archive):
    deb = archive.add_prometheus()
    deb.write_bytes(deb.read_bytes()[:-200])
    with pytest.raises(DependencyError, match=r"cannot unpack prometheus\.deb"):
        install(env=archive.env)
    assert_nothing_left(archive)


def test_a_full_disk(archive):
    archive.add_prometheus()
    (archive.root / "bin/tar").write_text("#!/bin/sh\necho 'No space left on device' >&2; exit 2\n")
    (archive.root / "bin/tar").chmod(0o755)
    with pytest.raises(DependencyError, match="No space left") as caught:
        install(env=archive.env)
    assert "ROLLTOP_CACHE_DIR" in caught.value.hint
    assert_nothing_left(archive)


def test_too_little_room_is_said_before_apt_is_asked(archive, monkeypatch):
    monkeypatch.setattr(module, "ROOM_BYTES", 1 << 60)
    with pytest.raises(DependencyError, match="MB are needed"):
        install(env=archive.env)
    assert not archive.log.exists()
    assert_nothing_left(archive)


def test_a_program_that_does_not_run_here(archive):
    archive.add("prometheus", "2.42.0", {"usr/bin/prometheus": "#!/bin/sh\necho hello\n"})
    with pytest.raises(DependencyError, match="is not Prometheus"):
        install(env=archive.env)
    assert_nothing_left(archive)


def test_sources_that_have_none(archive):
    archive.fail_update("E: Failed to fetch: could not resolve")
    with pytest.raises(DependencyError) as caught:
        install(env=archive.env)
    assert "have no prometheus" in caught.value.message
    assert "E: Failed to fetch: could not resolve" in caught.value.message
    assert "https://prometheus.io/download" in caught.value.hint


def test_a_source_that_fails_beside_one_that_has_it(archive):
    archive.add_prometheus()
    archive.fail_update("E: Failed to fetch from another source")
    assert install(env=archive.env).version.text == "2.42.0"


def test_no_debian(archive, monkeypatch):
    monkeypatch.setenv("PATH", str(archive.root / "nowhere"))
    with pytest.raises(DependencyError, match="no apt-get") as caught:
        install(env=archive.env)
    assert "ROLLTOP_PROMETHEUS" in caught.value.hint


@pytest.mark.parametrize(("libc", "says"), [("glibc 2.31", "glibc 2.31"), ("", "another C")])
def test_a_library_that_is_too_old(archive, monkeypatch, libc, says):
    monkeypatch.setattr(module.os, "confstr", lambda _: libc)
    with pytest.raises(DependencyError, match=rf"needs glibc 2\.34.*{says}"):
        install(env=archive.env)


def test_a_cache_that_cannot_be_made(archive):
    (archive.root / "file").touch()
    env = {**archive.env, "ROLLTOP_CACHE_DIR": str(archive.root / "file")}
    with pytest.raises(DependencyError) as caught:
        install(env=env)
    assert str(archive.root / "file") in caught.value.message
    assert "ROLLTOP_CACHE_DIR" in caught.value.hint


def test_one_that_was_named_is_not_replaced_by_an_installed_one(archive):
    archive.add_prometheus()
    with pytest.raises(DependencyError, match="does not exist"):
        find_or_install(env={**archive.env, "ROLLTOP_PROMETHEUS": "/nowhere/prometheus"})
    assert not archive.log.exists()


def test_several_packages_in_one_folder(archive):
    archive.add("main", "1:2", {"usr/share/main": "1"})
    archive.add("extra", "3", {"usr/share/extra": "1", "usr/share/doc/extra": "1"})
    into = archive.root / "into"
    place = unpack_debian(
        ("main",), into, optional=("extra", "absent"), exclude=("./usr/share/doc",)
    )
    assert place == into / "main-1:2"
    assert listing(place) == ["usr/share/extra", "usr/share/main"]


def test_a_command_that_does_not_end(archive, monkeypatch):
    monkeypatch.setattr(debian, "COMMAND_TIMEOUT_S", 0.2)
    (archive.root / "bin/apt-get").write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(DependencyError, match=r"apt-get did not end within 0\.2 s"):
        install(env=archive.env)
    assert_nothing_left(archive)


def test_the_first_stanza_counts():
    text = "Package: a\nVersion: 2\n\nPackage: a\nVersion: 1\n\nPackage: b\nVersion: 1:3-4~x\n"
    assert parse_versions(text) == {"a": "2", "b": "1:3-4~x"}
    assert parse_versions("N: Unable to locate package\nVersion: 1\n") == {}
