"""One instance of a service: ``python -m rolltop_tiny.service --instance renderer-0 ...``.

JSON lines over TCP. It serves one call at a time, and says in each reply how long the call waited
for its turn and how long it was served: so rolltop can tell a busy service from a slow one.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rolltop_instrument import StampedSlot, stamped_call

from rolltop_tiny.world import METHODS

CRASHED = 3


class Instance:
    """Answers calls in turn, each in ``work_ms`` milliseconds, and fails as ``fault`` says."""

    def __init__(self, service: str, work_ms: float, fault: dict[str, Any]) -> None:
        self.service = service
        self.function = METHODS[service]
        self.fault = fault
        self.turn_s = (work_ms + fault.get("delay_ms", 0.0)) / 1000
        self.slot = StampedSlot(1)
        self.served = 0
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its other side closes it."""
        with suppress(ConnectionError, asyncio.CancelledError):
            async for line in reader:
                writer.write(json.dumps(await self.answer(json.loads(line))).encode() + b"\n")
                await writer.drain()
                self.count()
        writer.close()

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply: ``value`` or ``error``, with ``queue_s`` and ``service_s``."""
        with stamped_call() as stamps:
            async with self.slot:
                await asyncio.sleep(self.turn_s)  # stands for work, costs no CPU
                if self.fails(request):
                    said: dict[str, Any] = {"error": f"{self.function.__name__} failed on request"}
                else:
                    said = {"value": self.function(request["state"])}
        return {**said, "queue_s": stamps.queue_s, "service_s": stamps.service_s}

    def fails(self, request: dict[str, Any]) -> bool:
        """Decide by what the call is, not by chance: the same run fails in the same places."""
        if self.fault.get("fail_method") not in (None, self.function.__name__):
            return False
        which = f"{self.function.__name__} {request['which']}"
        lot = int.from_bytes(hashlib.sha256(which.encode()).digest()[:8], "big") / 2**64
        return bool(lot < self.fault.get("fail_ratio", 0.0))

    def count(self) -> None:
        """Crash after as many calls as were asked for."""
        self.served += 1
        if self.served == self.fault.get("crash_after") and not self.ended.done():
            asked = f"sim.faults.{self.service}.crash_after={self.served}"
            print(f"{asked} ends this service", flush=True)  # noqa: T201
            self.ended.set_result(CRASHED)

    def stop(self) -> None:
        """End with status 0, on SIGTERM."""
        if not self.ended.done():
            self.ended.set_result(0)


async def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or a crash on request; return the exit status."""
    service = arguments.instance.rpartition("-")[0]
    work_ms = float(os.environ.get("TINY_WORK_MS", "1"))
    faults = json.loads(arguments.faults_file.read_text())
    instance = Instance(service, work_ms, faults.get(service, {}))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, instance.stop)
    # The launcher asks nothing but whether this port is open: it opens when we are ready to serve.
    async with await asyncio.start_server(instance.serve, "127.0.0.1", arguments.port):
        print(f"{arguments.instance} serves on port {arguments.port}", flush=True)  # noqa: T201
        return await instance.ended


def main() -> int:
    """Return the exit status; whatever is printed is in ``logs/<instance>.log``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--instance", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--faults-file", type=Path, required=True)
    try:
        return asyncio.run(run(parser.parse_args()))
    except OSError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main())
