"""Write file-SD files so that Prometheus never sees half of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolltop.files import replace_file
from rolltop.prometheus.scrape import target_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rolltop.model.target import TargetGroup


def write_targets(folder: Path, groups: Sequence[TargetGroup]) -> None:
    """Write the targets of a run into the folder that its ``prometheus.yml`` names.

    Args:
        folder: ``RunPaths.targets``, made if absent.
        groups: All targets of the run.

    Raises:
        ConfigError: A target or a label cannot be one; nothing is written then.
        OSError: A file cannot be written.
    """
    files = target_files(groups)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        replace_file(folder / name, text, staging=folder.parent)
