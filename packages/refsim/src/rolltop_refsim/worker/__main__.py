"""A worker's process: ``python -m rolltop_refsim.worker --worker-id 0 --metrics-port 9001 ...``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from rolltop_instrument import WorkerTelemetry

from rolltop_refsim.rpc.channel import open_channel
from rolltop_refsim.rpc.scheduler_pb2_grpc import SchedulerStub
from rolltop_refsim.rpc.serving import set_up_logging
from rolltop_refsim.worker.agent import Agent, SchedulerLostError, Settings
from rolltop_refsim.worker.fleet import Fleet

_log = logging.getLogger("rolltop_refsim.worker")
_TERMINATED = 128 + signal.SIGTERM


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rolltop_refsim.worker", description=__doc__)
    parser.add_argument("--worker-id", required=True)
    parser.add_argument("--metrics-port", type=int, required=True)
    parser.add_argument("--scheduler", required=True, help="its address, host:port")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=60, help="steps of a rollout")
    parser.add_argument("--call-timeout-s", type=float, default=120.0, help="deadline of a call")
    return parser.parse_args(argv)


async def _work(arguments: argparse.Namespace) -> None:
    settings = Settings(
        worker_id=arguments.worker_id,
        run_dir=arguments.run_dir,
        steps=arguments.steps,
        call_timeout_s=arguments.call_timeout_s,
    )
    async with (
        WorkerTelemetry.from_environment(
            worker_id=settings.worker_id, port=arguments.metrics_port
        ) as telemetry,
        open_channel(arguments.scheduler) as channel,
    ):
        fleet = Fleet(telemetry)
        stub = SchedulerStub(channel)  # type: ignore[no-untyped-call]
        try:
            await Agent(settings, stub, fleet, telemetry).run()
        finally:
            await fleet.close()
    _log.info("nothing is left to do")


async def _run(arguments: argparse.Namespace) -> int:
    work = asyncio.create_task(_work(arguments))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        _log.info("told to stop")
        return _TERMINATED
    except SchedulerLostError as lost:
        _log.error("%s", lost)
        return 1
    return 0


def main(argv: list[str] | None = None) -> int:
    """Work until all rollouts have ended; return 0, 1 on failure, 143 when told to stop before."""
    set_up_logging()
    return asyncio.run(_run(_arguments(sys.argv[1:] if argv is None else argv)))


if __name__ == "__main__":
    sys.exit(main())
