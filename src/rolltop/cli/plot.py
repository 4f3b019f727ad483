"""``rolltop plot``: draw a run's plot again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run's directory, `latest`, or the start of its uuid."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the picture goes instead of the run directory."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was drawn as JSON.")] = False,
) -> int:
    """Draw metrics_plot.png of a run from the data that it left, be it one that was killed."""
    from rolltop.errors import ConfigError
    from rolltop.lifecycle.replot import replot
    from rolltop.lifecycle.runs import resolve_run
    from rolltop.report.text import throughput_line

    if output is not None:
        _require_place(output)
    paths = resolve_run(run, Path.cwd() / "runs")
    report = replot(paths, output=output)
    if report.plot is None:
        reason = report.missing.get((output or paths.plot).name, "unknown")
        raise ConfigError(
            f"the plot cannot be made: {reason}", hint="--output FILE puts it elsewhere"
        )
    if as_json:
        record = {"plot": str(report.plot), **report.panels.model_dump()}
        print(json.dumps(record, indent=2))
        return 0
    empty = f", {len(report.panels.empty)} empty" if report.panels.empty else ""
    print(f"plot      {report.plot} ({report.panels.drawn} panels{empty})")
    print(f"speed     {throughput_line(report.throughput)}")
    return 0


def _require_place(output: Path) -> None:
    """Refuse a place where no file can be written.

    Raises:
        ConfigError: It is a directory, or its folder is not there.
    """
    from rolltop.errors import ConfigError

    if output.is_dir():
        raise ConfigError(
            f"--output {output} is a directory",
            hint=f"name a file in it: --output {output / 'metrics_plot.png'}",
        )
    if not output.parent.exists():
        raise ConfigError(
            f"--output {output}: the folder {output.parent} is not there",
            hint="make it first, or choose another",
        )
    if not output.parent.is_dir():
        raise ConfigError(
            f"--output {output}: {output.parent} is a file, not a folder",
            hint="choose a folder",
        )
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"--output {output}: nothing can be written in {output.parent}",
            hint="choose a place that you may write to",
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot")(plot)
