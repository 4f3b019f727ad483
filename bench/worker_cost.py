"""What telemetry costs inside the processes of a simulator, where it cannot be seen from outside.

Three figures: the CPU of one call's whole telemetry, client and server, that of one scrape, and
that of a worker's start.
"""

from __future__ import annotations

import http.client
import resource
import statistics
import subprocess
import sys
import time

from bench import undisturbed
from bench.cpu import cpu_of, exact_cpu_of

ROUNDS = 100
CALLS = 60
"""Short rounds, interleaved, so that a burst of a neighbour falls on both; of fewer calls than the
hundred that a worker of the run makes between two scrapes."""
SCRAPES = 200
SCRAPE_EVERY_S = 0.02

STARTS = 15
_WITHOUT = """
import argparse, asyncio, concurrent.futures.thread, dataclasses, json, logging, pathlib, random
import grpc.aio

async def main():
    grpc.aio.insecure_channel("127.0.0.1:1")

asyncio.run(main())
"""
"""A worker's start: of what the reference simulation's imports, what telemetry imports too."""
_WITH = _WITHOUT.replace(
    """
async def main():
    grpc.aio.insecure_channel("127.0.0.1:1")
""",
    """
from rolltop_instrument import WorkerTelemetry

async def main():
    async with WorkerTelemetry(worker_id="0", port=0) as telemetry:
        telemetry.grpc_channel(grpc.aio.insecure_channel("127.0.0.1:1"), "renderer")
""",
)

_WORKER = """
import asyncio, sys
from rolltop_instrument import WorkerTelemetry

async def record(telemetry):
    for n in range(11):
        service, method = f"service{n % 5}", f"method{n}"
        async with telemetry.call(service, method, endpoint=f"{service}-{n}") as call:
            call.server_times(queue_s=0.001, service_s=0.01)

async def keep_recording(telemetry):
    while True:
        await record(telemetry)
        await asyncio.sleep(0.01)

async def main():
    async with WorkerTelemetry(worker_id="0", port=0, scrape_interval_s=0.1) as telemetry:
        await record(telemetry)
        recording = asyncio.create_task(keep_recording(telemetry))
        print(telemetry.page_port, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        recording.cancel()

asyncio.run(main())
"""


def scrape_cpu_s() -> float:
    """CPU-seconds that a worker spends on one scrape of its page, all of its threads.

    It has as many series as a worker of the run (583), and all of its calls' have changed since the
    scrape before.
    """
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    connection = http.client.HTTPConnection("127.0.0.1", int(worker.stdout.readline()))
    began, clock = cpu_of(worker.pid), time.monotonic()
    for _ in range(SCRAPES):
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        time.sleep(SCRAPE_EVERY_S)
    scraped, seconds = cpu_of(worker.pid) - began, time.monotonic() - clock
    began = cpu_of(worker.pid)
    time.sleep(seconds)
    idle = cpu_of(worker.pid) - began
    connection.close()
    worker.communicate()
    return max(0.0, scraped - idle) / SCRAPES


def call_cpu_s() -> tuple[float, float]:
    """What telemetry adds to one gRPC call, as a share of a call without any; and that one's CPU.

    The share is that of the rounds that were disturbed least; the seconds are the mean of all
    rounds, disturbed as a run is. Client and server are processes of their own, as in
    a run: the client's event loop is profiled too. The server takes one call at a time and works in
    a thread, as the reference simulation's do.
    """
    with _Pair() as pair:
        for kind in ("full", "bare") * 3:
            pair.calls(kind, CALLS)
        rounds = [(pair.calls("full", CALLS), pair.calls("bare", CALLS)) for _ in range(ROUNDS)]
    added, without = undisturbed.difference(*zip(*rounds, strict=True))
    return added / without, statistics.mean(bare_s for _, bare_s in rounds)


def start_cpu_s() -> float:
    """CPU-seconds that telemetry adds to the start of a worker: its import, and its page."""
    rounds = [(_cpu_of_code(_WITH), _cpu_of_code(_WITHOUT)) for _ in range(STARTS)]
    added, _ = undisturbed.difference(*zip(*rounds, strict=True))
    return added


def _cpu_of_code(code: str) -> float:
    """CPU-seconds of a Python that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class _Pair:
    """A client's and a server's process."""

    def __init__(self) -> None:
        self._server = _start("server")
        self._client = _start("client", _line(self._server))
        _line(self._client)

    def __enter__(self) -> _Pair:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._client, self._server):
            process.communicate()

    def calls(self, kind: str, n: int) -> float:
        """CPU-seconds of one of ``n`` calls, ``full`` or ``bare``, all threads of both."""
        began = self._cpu_s()
        assert self._client.stdin is not None
        self._client.stdin.write(f"{kind} {n}\n")
        self._client.stdin.flush()
        _line(self._client)
        return (self._cpu_s() - began) / n

    def _cpu_s(self) -> float:
        return exact_cpu_of(self._client.pid) + exact_cpu_of(self._server.pid)


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.call_peer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    """The next line that a process says.

    Raises:
        RuntimeError: it has ended.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a peer ended early, with status {process.wait()}")
    return line.strip()
