"""``result.json`` of a rollout: how it ended, and how well it drove."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RolloutResult:
    """What ``{run_dir}/rollouts/<scene>/<uuid>/result.json`` says."""

    status: Literal["completed", "abandoned"]
    uuid: str
    scene: str
    seed: int
    steps: int
    attempts: int
    first_wave: bool
    duration_s: float
    """Of the last attempt."""
    worker_id: str
    quality: dict[str, float | int | bool] | None
    error: str | None


def write_result(run_dir: Path, result: RolloutResult) -> Path:
    """Write the file whole or not at all, and return its path; raises ``OSError``."""
    folder = run_dir / "rollouts" / result.scene / result.uuid
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "result.json"
    temporary = folder / f".result.json.{os.getpid()}"
    try:
        temporary.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return target
