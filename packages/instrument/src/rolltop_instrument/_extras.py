"""What to say when the grpc extra is missing."""

from __future__ import annotations

from types import ModuleType


def require_grpc() -> ModuleType:
    """The module ``grpc``.

    Raises:
        ImportError: grpcio is not installed; says how to get it.
    """
    try:
        import grpc.aio
    except ImportError as error:
        raise ImportError(
            "recording gRPC needs grpcio, which is not installed: "
            "pip install 'rolltop-instrument[grpc]'"
        ) from error
    return grpc
