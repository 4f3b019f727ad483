"""Worker and service telemetry for a parallel simulator: rollouts, steps, calls, event loop.

The worker's side is ``WorkerTelemetry``; a service's side is in ``rolltop_instrument.server``; the
names on the wire are in ``rolltop_instrument.names``. gRPC is needed only for its interceptors.
"""

from __future__ import annotations

from rolltop_instrument._retry import Backoff, retry
from rolltop_instrument._version import __version__
from rolltop_instrument.server import (
    StampedExecutor,
    StampedSlot,
    Stamps,
    current_stamps,
    stamped_call,
)
from rolltop_instrument.worker import WorkerTelemetry

__all__ = [
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
