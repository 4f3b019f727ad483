"""What of the documentation is generated: blocks of pages, and whole files."""

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

FILES: Mapping[str, Callable[[], str]] = {
    "reference/schemas/simulator.schema.json": configuration.simulator_schema,
    "reference/schemas/summary.schema.json": files.summary_schema,
}
"""Path below ``docs/`` of a file that is generated as a whole -> what writes it."""
