"""The scheduler's process: ``python -m rolltop_refsim.scheduler --port 9000 ...``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from rolltop_refsim.inputs import InputError, read_endpoints, read_rollouts
from rolltop_refsim.rpc.scheduler_pb2_grpc import add_SchedulerServicer_to_server
from rolltop_refsim.rpc.serving import ServeError, Stop, serve, set_up_logging
from rolltop_refsim.scheduler.ledger import Ledger
from rolltop_refsim.scheduler.service import SchedulerService
from rolltop_refsim.scheduler.slots import SlotTable

_log = logging.getLogger("rolltop_refsim.scheduler")
_GRACE_S = 0.2
"""Short: the streams of workers that still wait do not end by themselves."""


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rolltop_refsim.scheduler", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rollouts-file", type=Path, required=True)
    parser.add_argument("--endpoints-file", type=Path, required=True)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--nr-workers", type=int, required=True)
    parser.add_argument("--max-retries", type=int, default=2)
    return parser.parse_args(argv)


async def _run(arguments: argparse.Namespace) -> int:
    ledger = Ledger(
        rollouts=read_rollouts(arguments.rollouts_file),
        slots=SlotTable(read_endpoints(arguments.endpoints_file)),
        nr_workers=arguments.nr_workers,
        max_retries=arguments.max_retries,
    )
    service = SchedulerService(ledger, arguments.run_dir)
    stop = Stop()
    stop.on_signals()
    _log.info("%d rollouts, %d at once", len(ledger.rollouts), ledger.slots.capacity)

    def register(server: object) -> None:
        add_SchedulerServicer_to_server(service, server)  # type: ignore[no-untyped-call]

    try:
        return await serve(arguments.port, register, stop=stop, grace_s=_GRACE_S)
    finally:
        await service.close()
        _log.info(
            "ended: %d completed, %d abandoned, %d failed attempts of %d rollouts",
            ledger.completed,
            ledger.abandoned,
            ledger.failed_attempts,
            len(ledger.rollouts),
        )


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM; return 0, 1 for a port that is taken, 2 for input that cannot be used."""
    set_up_logging()
    arguments = _arguments(sys.argv[1:] if argv is None else argv)
    try:
        return asyncio.run(_run(arguments))
    except ServeError as error:
        _log.error("%s", error)
        return 1
    except (InputError, ValueError) as error:
        _log.error("%s", error)
        return 2


if __name__ == "__main__":
    sys.exit(main())
