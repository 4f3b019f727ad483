"""A real Prometheus: found or unpacked once, one server with known data for all queries."""

from __future__ import annotations

import subprocess

import pytest

from rolltop.launch.ports import PortLeases
from rolltop.prometheus.install import find_or_install
from rolltop.prometheus.query import Prometheus
from rolltop.prometheus.scrape import NOTHING
from rolltop.prometheus.server import wait_ready
from rolltop.testing.prometheus_contract import history, render_openmetrics


@pytest.fixture(scope="session")
def binary():
    """The Prometheus that a user would get."""
    return find_or_install()


@pytest.fixture(scope="session")
def make_blocks(binary):
    """Return a function that turns series into the blocks of a database."""

    def make(series, folder):
        text = folder.parent / f"{folder.name}.om"
        text.write_text(render_openmetrics(series))
        subprocess.run(
            [binary.promtool, "tsdb", "create-blocks-from", "openmetrics", "-q", text, folder],
            check=True,
            capture_output=True,
        )
        return folder

    return make


@pytest.fixture(scope="session")
def served(binary, make_blocks, tmp_path_factory):
    """The address of a Prometheus with the series of the contract."""
    folder = tmp_path_factory.mktemp("served")
    config, log = folder / "prometheus.yml", folder / "log"
    config.write_text(NOTHING)
    data = make_blocks(history(), folder / "data")
    with PortLeases() as leases, log.open("wb") as output:
        (port,) = leases.lease()
        command = binary.command(config=config, data=data, port=port)
        with subprocess.Popen(command, stdout=output, stderr=output) as server:
            try:
                url = f"http://127.0.0.1:{port}"
                wait_ready(url, 60.0, is_alive=lambda: server.poll() is None, log=log)
                yield url
            finally:
                server.terminate()


@pytest.fixture
def real(served):
    """A client of it."""
    with Prometheus(served) as prometheus:
        yield prometheus
