"""Hosts a service in a process: a plain class becomes a server with health and time stamps."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grpc
from rolltop_instrument.grpc_server import timed_server

from rolltop_refsim.faults import Fault, FaultsError, read_fault
from rolltop_refsim.rpc.serving import ServeError, Stop, serve, set_up_logging
from rolltop_refsim.services.station import CallError, Station

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICES = ("renderer", "driver", "controller", "physics", "trafficsim")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """What an instance is started with."""

    service: str
    port: int
    instance: str
    n_concurrent: int = 1
    cache_size: int = 2
    fault: Fault = field(default_factory=Fault)


class Host:
    """One instance of a service."""

    def __init__(self, options: Options, stop: Stop) -> None:
        """Raises :class:`FaultsError` for a method that the service does not have."""
        self.options = options
        self.methods = _methods(options.service)
        self._stop = stop
        self._class = _implementation(options.service)
        self._implementation: Any = None
        fault = options.fault
        if fault.fail_method is not None and fault.fail_method not in self.methods:
            raise FaultsError(
                f"sim.faults.{options.service}.fail_method: unknown method {fault.fail_method!r}; "
                f"known are {', '.join(self.methods)}"
            )
        self._station = Station(
            options.instance, n_concurrent=options.n_concurrent, fault=fault, stop=stop
        )

    async def run(self, started: Callable[[int], None] | None = None) -> int:
        """Serve until told to stop; return the exit status."""
        try:
            return await serve(
                self.options.port,
                self._register,
                stop=self._stop,
                warm_up=self._warm_up,
                started=started,
            )
        finally:
            self._station.close()

    async def _warm_up(self) -> None:
        """Make the implementation, in the thread that it will work in."""
        self._implementation = await self._station.in_thread(lambda: self._class(self.options))

    def _register(self, server: grpc.aio.Server) -> None:
        name = self.options.service
        generated = importlib.import_module(f"rolltop_refsim.rpc.{name}_pb2_grpc")
        add = getattr(generated, f"add_{name.capitalize()}Servicer_to_server")
        handlers = {
            method: self._station.handler(
                method, self._call(method), inline=method in self._class.inline
            )
            for method in self.methods
        }
        add(SimpleNamespace(**handlers), timed_server(server))

    def _call(self, method: str) -> Callable[[Any], Any]:
        def call(request: Any) -> Any:
            if self._implementation is None:
                raise CallError(grpc.StatusCode.UNAVAILABLE, "is starting")
            return getattr(self._implementation, method)(request)

        return call


def _implementation(service: str) -> Any:
    """Import the class that implements a service; what is heavy it imports when it is made."""
    module = importlib.import_module(f"rolltop_refsim.services.{service}")
    return getattr(module, service.capitalize())


def _methods(service: str) -> tuple[str, ...]:
    descriptor = importlib.import_module(f"rolltop_refsim.rpc.{service}_pb2").DESCRIPTOR
    return tuple(m.name for m in descriptor.services_by_name[service.capitalize()].methods)


def parse_options(argv: list[str]) -> Options:
    """Read the command line of an instance; exits with 2 where it cannot be used."""
    parser = argparse.ArgumentParser(prog="rolltop_refsim.services")
    parser.add_argument("service", choices=SERVICES)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--instance", help="its name in the run; default: SERVICE-0")
    parser.add_argument("--n-concurrent", type=int, default=1)
    parser.add_argument("--cache-size", type=int, default=2, help="scenes kept by the renderer")
    parser.add_argument("--faults-file", type=Path)
    given = parser.parse_args(argv)
    if given.n_concurrent < 1 or given.cache_size < 1:
        parser.error("--n-concurrent and --cache-size must be at least 1")
    return Options(
        service=given.service,
        port=given.port,
        instance=given.instance or f"{given.service}-0",
        n_concurrent=given.n_concurrent,
        cache_size=given.cache_size,
        fault=read_fault(given.faults_file, given.service),
    )


def main(argv: list[str]) -> int:
    """Run an instance until SIGTERM.

    Returns:
        0; 1 where it could not serve or get ready; 2 for input that cannot be used; 3 for the
        crash of ``sim.faults``.
    """
    set_up_logging()
    for library in ("OPENBLAS", "OMP", "MKL"):  # one call at a time: more threads only spin
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    try:
        options = parse_options(argv)
        return asyncio.run(_run(options))
    except FaultsError as error:
        _log.error("%s", error)
        return 2
    except ServeError as error:
        _log.error("%s", error)
        return 1
    except Exception:  # noqa: BLE001 (whatever it is: the log says it, the status tells)
        _log.exception("cannot go on")
        return 1


async def _run(options: Options) -> int:
    stop = Stop()
    stop.on_signals()
    return await Host(options, stop).run()
