"""A real Prometheus on the data of simulated runs."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from rolltop.prometheus.install import find_or_install
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.server import wait_ready
from tests.report.simulated import SimulatedRun, openmetrics, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rolltop.prometheus.binary import Binary


@pytest.fixture(scope="session")
def binary() -> Binary:
    return find_or_install()


@contextlib.contextmanager
def serving(run: SimulatedRun, folder: Path, binary: Binary) -> Iterator[Prometheus]:
    """Serve what was scraped of a run, as Prometheus has it on disk."""
    with serving_text(openmetrics(run), folder, binary) as prometheus:
        yield prometheus


@contextlib.contextmanager
def serving_text(scraped: str, folder: Path, binary: Binary) -> Iterator[Prometheus]:
    """Serve samples in OpenMetrics, as Prometheus has them on disk."""
    text, config = folder / "run.om", folder / "prometheus.yml"
    text.write_text(scraped)
    config.write_text("{}\n")
    assert binary.promtool is not None
    subprocess.run(
        [binary.promtool, "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        check=True,
        capture_output=True,
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = binary.command(config=config, data=folder / "data", port=port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_ready(url, 30, is_alive=lambda: process.poll() is None, log=folder / "log")
        with Prometheus(url) as prometheus:
            yield prometheus
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def driving_run() -> SimulatedRun:
    return simulate(SimulatedRun(warm_up_s=12.0))


@pytest.fixture(scope="session")
def prometheus(
    driving_run: SimulatedRun, tmp_path_factory: pytest.TempPathFactory, binary: Binary
) -> Iterator[Prometheus]:
    """A Prometheus that holds :func:`driving_run`."""
    with serving(driving_run, tmp_path_factory.mktemp("driving"), binary) as served:
        yield served
