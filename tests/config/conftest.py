"""A simulator of the tests' own, found as an installed one would be."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rolltop.config import RunConfig, compose

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDERS = {"toy": Path(__file__).parent / "sims" / "conf"}
UUID = "11111111-2222-3333-4444-555555555555"
STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def composed(tmp_path: Path) -> Callable[..., RunConfig]:
    """Compose on a node without GPUs that knows the toy simulator alone, on its own topology."""
    plain: Callable[..., RunConfig] = partial(
        compose,
        cwd=tmp_path,
        run_uuid=UUID,
        started=STARTED,
        count_gpus=lambda: 0,
        folders=FOLDERS,
    )

    def call(*overrides: str, **changes: Any) -> RunConfig:
        chosen = any(text.startswith("topology=") for text in overrides)
        return plain([*([] if chosen else ["topology=small"]), *overrides], **changes)

    return call
