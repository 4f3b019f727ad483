"""What others may rely on; a change here is a change for somebody's simulator."""

from __future__ import annotations

import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys
from importlib.resources import files

import rolltop_instrument
import rolltop_instrument.server
from rolltop_instrument import WorkerTelemetry

BLOCK_GRPC = """
import sys

class NoGrpc:
    def find_spec(self, name, path=None, target=None):
        if name == "grpc" or name.startswith("grpc."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoGrpc())
"""

USE_WITHOUT_GRPC = """
import asyncio
import rolltop_instrument
from rolltop_instrument import StampedExecutor, StampedSlot, WorkerTelemetry, current_stamps
from rolltop_instrument.server import StampedSlot as same

async def main():
    async with WorkerTelemetry(port=0) as telemetry:
        async with telemetry.rollout():
            with telemetry.step():
                async with telemetry.call("renderer", "render", endpoint="renderer-0") as call:
                    async with StampedSlot(1):
                        await StampedExecutor(1).run(sum, [1, 2])
                    stamps = current_stamps()
                    call.server_times(queue_s=stamps.queue_s, service_s=stamps.service_s)
        assert "rolltop_rpc_server_service_seconds_count" in telemetry.render()
        assert await telemetry.retry("driver", lambda: asyncio.sleep(0, 1)) == 1
        try:
            telemetry.grpc_interceptors("renderer")
        except ImportError as error:
            print(error)
    assert WorkerTelemetry(enabled=False).grpc_interceptors("renderer") == []
    try:
        from rolltop_instrument.grpc_server import ServerTimingInterceptor
    except ImportError as error:
        print(error)
    assert "grpc" not in __import__("sys").modules

asyncio.run(main())
"""


def test_the_public_names() -> None:
    assert rolltop_instrument.__all__ == [
        "Backoff",
        "StampedExecutor",
        "StampedSlot",
        "Stamps",
        "WorkerTelemetry",
        "__version__",
        "current_stamps",
        "retry",
        "stamped_call",
    ]
    assert rolltop_instrument.server.__all__ == [
        "StampedExecutor",
        "StampedSlot",
        "Stamps",
        "current_stamps",
        "stamped_call",
    ]
    for module in (rolltop_instrument, rolltop_instrument.server):
        assert all(hasattr(module, name) for name in module.__all__)


def test_a_workers_public_methods() -> None:
    public = [name for name, _ in inspect.getmembers(WorkerTelemetry) if not name.startswith("_")]
    assert public == [
        "batch_size",
        "call",
        "first_wave_discarded",
        "from_environment",
        "grpc_channel",
        "grpc_interceptors",
        "observation_barrier",
        "page_port",
        "registry",
        "render",
        "renderer_started",
        "retry",
        "rollout",
        "rollout_abandoned",
        "scene_loaded",
        "set_job_queue_depth",
        "step",
    ]


def test_public_modules() -> None:
    modules = [m.name for m in pkgutil.iter_modules(rolltop_instrument.__path__)]
    assert [name for name in modules if not name.startswith("_")] == [
        "grpc_channel",
        "grpc_client",
        "grpc_server",
        "names",
        "server",
        "worker",
    ]


def test_it_is_typed_and_its_version_is_the_packages() -> None:
    assert files(rolltop_instrument).joinpath("py.typed").is_file()
    assert rolltop_instrument.__version__ == importlib.metadata.version("rolltop-instrument")


def test_without_grpc_everything_else_works_and_the_cure_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCK_GRPC + USE_WITHOUT_GRPC],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout.splitlines()
        == [
            "recording gRPC needs grpcio, which is not installed: "
            "pip install 'rolltop-instrument[grpc]'"
        ]
        * 2
    )


def test_importing_it_does_not_import_what_only_some_need() -> None:
    heavy = "{'grpc', 'prometheus_client', 'numpy'} & set(sys.modules)"
    code = f"import rolltop_instrument, sys; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
