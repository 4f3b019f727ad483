"""What a user writes, composed and validated. Hydra is known in this room alone."""

from __future__ import annotations

from rolltop.config.compose import compose, validate
from rolltop.config.schema import RunConfig

__all__ = ["RunConfig", "compose", "validate"]
