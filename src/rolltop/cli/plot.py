"""``rolltop plot``: draw a run's plot again."""

from __future__ import annotations

import json
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
        typer.Option("--output", "-o", help="Where the PNG goes instead of the run directory."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was drawn as JSON.")] = False,
) -> int:
    """Draw metrics_plot.png of a run from the data that it left, be it one that was killed."""
    from rolltop.cli.places import place_for_picture, refused
    from rolltop.lifecycle.replot import replot
    from rolltop.lifecycle.runs import resolve_run
    from rolltop.report.text import throughput_line

    given = None if output is None else place_for_picture("--output", output)
    paths = resolve_run(run, Path.cwd() / "runs")
    report = replot(paths, output=given)
    if isinstance(report.plot_error, OSError):
        if output is None:
            raise refused(str(paths.plot), report.plot_error, "--output FILE puts it elsewhere")
        raise refused(f"--output {output}", report.plot_error)
    if report.plot_error is not None:
        raise report.plot_error
    if as_json:
        record = {"plot": str(report.plot), **report.panels.model_dump()}
        print(json.dumps(record, indent=2))
        return 0
    empty = f", {len(report.panels.empty)} empty" if report.panels.empty else ""
    print(f"plot      {report.plot} ({report.panels.drawn} panels{empty})")
    print(f"speed     {throughput_line(report.throughput)}")
    return 0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plot", short_help="Draw the plot of a run again, also of one that was killed.")(
        plot
    )
