"""The services as one worker sees them: a channel per instance, kept for the worker's life."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

from rolltop_refsim.rpc.channel import open_channel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import grpc
    from rolltop_instrument import WorkerTelemetry

    from rolltop_refsim.rpc import scheduler_pb2


_SESSIONS = {"start_session": "session", "close_session": "session"}
"""Once a rollout each: one label for both keeps a worker's page within its 550 series."""


class Fleet:
    """Opens a channel at the first rollout that needs an instance, and shares it after that."""

    def __init__(self, telemetry: WorkerTelemetry) -> None:
        self._telemetry = telemetry
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._stubs: dict[str, Any] = {}

    def stubs(self, instances: Mapping[str, scheduler_pb2.Instance]) -> dict[str, Any]:
        """Return a generated stub for the instance of every service."""
        return {service: self._stub(service, instance) for service, instance in instances.items()}

    async def close(self) -> None:
        """Close all channels."""
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))

    def _stub(self, service: str, instance: scheduler_pb2.Instance) -> Any:
        stub = self._stubs.get(instance.name)
        if stub is None:
            channel = self._telemetry.grpc_channel(
                open_channel(instance.address),
                service,
                endpoint=instance.name,
                rename_methods=_SESSIONS,
            )
            generated = importlib.import_module(f"rolltop_refsim.rpc.{service}_pb2_grpc")
            stub = getattr(generated, f"{service.capitalize()}Stub")(channel)
            self._channels[instance.name] = channel
            self._stubs[instance.name] = stub
        return stub
