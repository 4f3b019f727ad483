"""Look at a run's data: a Prometheus on a copy of them, for as long as somebody looks.

The run itself is never written to: it may still go on, may have been killed, may lie in a folder
that only its owner can write to, and may be looked at by several at once.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rolltop.errors import AnalysisError, ConfigError, PrometheusError
from rolltop.launch.ports import PortLeases, is_free
from rolltop.logs import tail
from rolltop.prometheus import tether
from rolltop.prometheus.binary import Binary, find_prometheus
from rolltop.prometheus.database import blocks, copy_data, has_samples
from rolltop.prometheus.places import cache_dir
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.scrape import NOTHING
from rolltop.prometheus.server import wait_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rolltop.model.run import RunPaths

READY_TIMEOUT_S = 120.0
"""A long write-ahead log takes its time to replay: 0.6 s for 1.6 million samples."""
_STOP_TIMEOUT_S = 10.0
_PORTS_TRIED = 3
_NO_SAMPLES = (
    "a run has some a few seconds after its Prometheus was ready; none with telemetry.enabled=false"
)
_CONFIG, _DATA, _LOG = "prometheus.yml", "data", "prometheus.log"
_PREFIX = "rolltop-view-"
_TAKEN = "address already in use"


@dataclass(frozen=True)
class View:
    """A Prometheus on a copy of a run's data.

    Attributes:
        prometheus: Asks it.
        pid: The server's process.
        binary: What it is.
        log: What it writes.
        span: The first and last time of its samples, unix seconds; None where it has none.
        process: What keeps the server; it ends when the server does.
    """

    prometheus: Prometheus
    pid: int
    binary: Binary
    log: Path
    span: tuple[float, float] | None

    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """Its address."""
        return self.prometheus.url

    def wait(self) -> None:
        """Return never, as long as the server runs.

        Raises:
            PrometheusError: It ended.
        """
        status = self.process.wait()
        said = " | ".join(tail(self.log, 5))
        raise PrometheusError(f"Prometheus ended with exit status {status}: {said}")


@contextmanager
def viewing(run: RunPaths) -> Iterator[Prometheus]:
    """Give a Prometheus to ask about a run's data; it and its copy of them are gone afterwards.

    Args:
        run: The run.

    Raises:
        AnalysisError: The run has no samples.
        DependencyError: There is no Prometheus.
        PrometheusError: The data cannot be read, or the server did not start.
    """
    with open_view(run) as view:
        yield view.prometheus


@contextmanager
def open_view(
    run: RunPaths, *, port: int | None = None, binary: Binary | None = None
) -> Iterator[View]:
    """Give a view of a run's data; the server and its copy of the data are gone afterwards.

    Args:
        run: The run.
        port: Where the server listens on loopback, by default a free port.
        binary: The Prometheus to use, by default the one that is found.

    Raises:
        AnalysisError: The run has no samples.
        ConfigError: The port is taken.
        DependencyError: There is no Prometheus.
        PrometheusError: The data cannot be read, or the server did not start.
    """
    if not has_samples(run.data):
        raise AnalysisError(f"there are no samples in {run.data}", hint=_NO_SAMPLES)
    binary = binary or find_prometheus()
    if port is not None and not is_free(port):
        raise ConfigError(f"port {port} is taken", hint="choose another, or leave out --port")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_place_for_copy(run.data)))
    try:
        data = folder / _DATA
        copy_data(run.data, data)
        with _serving(binary, folder, data, port) as (server, prometheus):
            span = data_span(data, prometheus)
            yield View(prometheus, server.pid, binary, folder / _LOG, span, server.process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def data_span(data: Path, prometheus: Prometheus) -> tuple[float, float] | None:
    """Return the first and last time of a database's samples, unix seconds, None if it has none.

    Args:
        data: The database that ``prometheus`` serves: its blocks say their times themselves.
        prometheus: Knows the times of what lies in no block.
    """
    spans = [span for span in (prometheus.head_range(),) if span]
    for block in blocks(data):
        meta = json.loads((data / block / "meta.json").read_text(encoding="utf-8"))
        spans.append((meta["minTime"] / 1000, meta["maxTime"] / 1000))
    if not spans:
        return None
    return min(first for first, _ in spans), max(last for _, last in spans)


@dataclass(frozen=True)
class _Server:
    """A Prometheus on its tether."""

    process: subprocess.Popen[bytes]
    pid: int

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """End it, and wait for that; the folder is the caller's to remove."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):  # it may have ended by itself
                self.process.stdin.write(tether.KEEP)
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()  # takes the server with it
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def _serving(
    binary: Binary, folder: Path, data: Path, port: int | None
) -> Iterator[tuple[_Server, Prometheus]]:
    """Start the server, and end it afterwards."""
    (folder / _CONFIG).write_text(NOTHING, encoding="utf-8")
    with PortLeases() as leases:
        if port is None:
            server, url = _start_somewhere(binary, folder, data, leases)
        else:
            server, url = _start(binary, folder, data, port)
        try:
            with Prometheus(url) as prometheus:
                yield server, prometheus
        finally:
            server.stop()


def _start_somewhere(
    binary: Binary, folder: Path, data: Path, leases: PortLeases
) -> tuple[_Server, str]:
    """Start the server on a free port, on another one if somebody else is quicker to bind it."""
    for _ in range(_PORTS_TRIED - 1):
        try:
            return _start(binary, folder, data, leases.lease()[0])
        except PrometheusError as error:
            if _TAKEN not in error.message:
                raise
    return _start(binary, folder, data, leases.lease()[0])


def _start(binary: Binary, folder: Path, data: Path, port: int) -> tuple[_Server, str]:
    """Start the server and return it with its address once it can be asked."""
    log = folder / _LOG
    url = f"http://127.0.0.1:{port}"
    server = _spawn(binary.command(config=folder / _CONFIG, data=data, port=port), folder, log)
    try:
        wait_ready(url, READY_TIMEOUT_S, is_alive=server.is_alive, log=log)
    except BaseException:
        server.stop()
        raise
    return server, url


def _spawn(command: tuple[str, ...], folder: Path, log: Path) -> _Server:
    python = [sys.executable, "-I", "-S", tether.__file__]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*python, str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            bufsize=0,
            start_new_session=True,
        )
    line = process.stdout.readline() if process.stdout is not None else b""
    if not line.strip().isdigit():
        _Server(process, process.pid).stop()
        said = " ".join(tail(log, 1)) or "no reason given"
        raise PrometheusError(f"{command[0]} could not be started: {said}")
    return _Server(process, int(line))


def _place_for_copy(data: Path) -> Path:
    """Return a folder for the copy: one where the blocks can be linked, if there is one."""
    usual = Path(tempfile.gettempdir())
    for place in (usual, cache_dir()):
        try:
            if place.is_dir() and place.stat().st_dev == data.stat().st_dev:
                return place
        except OSError:
            continue
    return usual
