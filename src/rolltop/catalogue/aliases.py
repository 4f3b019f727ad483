"""Names that another simulator gives to the services of a configuration."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE_ALIASES: Mapping[str, str] = MappingProxyType(
    {"sensorsim": "renderer", "traffic": "trafficsim"}
)
"""AlpaSim's telemetry name -> the name of the configuration."""


def canonical_service(name: str) -> str:
    """Return the configuration's name of a service, whatever its telemetry calls it."""
    return SERVICE_ALIASES.get(name, name)


def canonical_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels with the value of ``service`` under the configuration's name."""
    result = dict(labels)
    if "service" in result:
        result["service"] = canonical_service(result["service"])
    return result
