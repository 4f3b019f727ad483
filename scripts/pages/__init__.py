"""The generated blocks of the documentation: one function a block, Markdown out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.pages import alpasim, commands, configuration, files, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BLOCKS: Mapping[str, Callable[[], str]] = {
    "alpasim-rules": alpasim.rules,
    "alpasim-series": alpasim.series,
    "cli": commands.cli,
    "config": configuration.config,
    "exceptions": commands.exceptions,
    "exit-statuses": commands.exit_statuses,
    "metrics": telemetry.metrics,
    "panels": telemetry.panels,
    "rules": telemetry.rules,
    "run-directory": files.run_directory,
    "simulator": configuration.simulator,
    "summary": files.summary,
    "templates": configuration.templates,
    "topologies": configuration.topologies,
}
"""Name of the block in a page -> what writes it."""
