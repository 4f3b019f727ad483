"""How much later a worker's event loop runs its callbacks while its page is scraped."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from time import perf_counter

from rolltop_instrument import WorkerTelemetry

from bench.rows import BenchRow

SERIES = 500
WINDOW_S = 0.6
ROUNDS = 24
TICK_S = 0.002

_SCRAPER = """
import http.client, sys, time
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for line in sys.stdin:
    end = time.monotonic() + float(line)
    while time.monotonic() < end:
        began = time.monotonic()
        connection.request("GET", "/metrics")
        connection.getresponse().read()
        time.sleep(max(0.0, began + 0.1 - time.monotonic()))
    print("scraped", flush=True)
"""


def run() -> list[BenchRow]:
    """Measure the 99th percentile of the loop's lag in short windows with scrapes and without.

    Calls go on all the while, so that each scrape has everything to make anew.

    The windows are interleaved, each with scrapes has six of them, and the lower quartiles of the
    windows' percentiles are compared: the lag that other processes cause on a shared machine is
    larger than ours and comes in bursts, which the quieter windows escape.
    """
    quiet, scraped = (_lower_quartile(lags) for lags in asyncio.run(_measure()))
    added = max(0.0, scraped - quiet)
    return [BenchRow.at_most("worker_page_lag", added, "ms", bound=2.0, baseline=quiet)]


def _lower_quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]


async def _measure() -> tuple[list[float], list[float]]:
    quiet, scraped = [], []
    async with WorkerTelemetry(worker_id="0", port=0, scrape_interval_s=0.1) as telemetry:
        calls = await _fill(telemetry)
        calling = asyncio.create_task(_keep_calling(telemetry, calls))
        scraper = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _SCRAPER,
            str(telemetry.page_port),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert scraper.stdin is not None
        assert scraper.stdout is not None
        for _ in range(ROUNDS):
            quiet.append(await _p99_lag_ms())
            scraper.stdin.write(f"{WINDOW_S}\n".encode())
            await scraper.stdin.drain()
            scraped.append(await _p99_lag_ms())
            await scraper.stdout.readline()
        scraper.stdin.close()
        await scraper.wait()
        calling.cancel()
    return quiet, scraped


async def _fill(telemetry: WorkerTelemetry) -> list[tuple[str, str, str]]:
    """Calls until the page has its 500 series; service, method and endpoint of each."""
    calls: list[tuple[str, str, str]] = []
    while telemetry.render().count("\n") - telemetry.render().count("\n#") < SERIES:
        n = len(calls)
        service = f"service{n % 5}"
        calls.append((service, f"method{n // 5}", f"{service}-{n}"))
        await _call(telemetry, *calls[-1])
    return calls


async def _keep_calling(telemetry: WorkerTelemetry, calls: list[tuple[str, str, str]]) -> None:
    """All calls every tenth of a second: each scrape finds them changed, and their notes."""
    while True:
        for call in calls:
            await _call(telemetry, *call)
        await asyncio.sleep(0.1)


async def _call(telemetry: WorkerTelemetry, service: str, method: str, endpoint: str) -> None:
    async with telemetry.call(service, method, endpoint=endpoint) as call:
        call.server_times(queue_s=0.001, service_s=0.01)


async def _p99_lag_ms() -> float:
    """The 99th percentile, in ms, of how late a timer's coroutine runs in one window."""
    lags = []
    end = perf_counter() + WINDOW_S
    while (began := perf_counter()) < end:
        await asyncio.sleep(TICK_S)
        lags.append(perf_counter() - began - TICK_S)
    return statistics.quantiles(lags, n=100)[98] * 1e3
