"""``rolltop run``: drive rollouts with their telemetry on."""

from __future__ import annotations

import io
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rolltop.cli.entry import NOTHING_STARTED, AskedToEnd

if TYPE_CHECKING:
    from rolltop.lifecycle.prepare import PreparedRun
    from rolltop.lifecycle.run import RunResult

_WIDE = 1_000_000
"""Columns of what is no terminal: it has no width to fold at."""
_HELP_OVERRIDES = (
    "What differs from the defaults, in Hydra's grammar: topology=2gpu, runtime.nr_workers=4, "
    "run.dir=runs/x, sim.faults.driver.delay_ms=60."
)

_HELP_STRICT = (
    "Exit with 7 if telemetry failed that the run started, or that every run has. An exporter that "
    "this run does not have is not counted."
)


def run(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="OVERRIDE", help=_HELP_OVERRIDES)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and start nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary, or the plan, as JSON.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help=_HELP_STRICT)] = False,
) -> int:
    """Drive a simulation: start its services and workers, measure them, leave a plot and a summary.

    Progress goes to standard error, the result to standard output.
    """
    words = [*(overrides or []), *(["telemetry.strict=true"] if strict else [])]
    try:
        return _run(words, dry_run=dry_run, as_json=as_json)
    except (AskedToEnd, KeyboardInterrupt):  # from its first process on, a run ends by itself
        raise AskedToEnd(NOTHING_STARTED) from None


def _run(words: list[str], *, dry_run: bool, as_json: bool) -> int:
    from rolltop.config import compose
    from rolltop.lifecycle.prepare import prepare

    cwd = Path.cwd()
    config = compose(words, cwd=cwd)
    prepared = prepare(config, ["rolltop", "run", *words], cwd=cwd)
    if dry_run:
        prepared.leases.release()
        return _print_plan(prepared, as_json=as_json)
    return _drive(prepared, cwd=cwd, as_json=as_json)


def _drive(prepared: PreparedRun, *, cwd: Path, as_json: bool) -> int:
    from rolltop.lifecycle.progress import make_progress
    from rolltop.lifecycle.run import execute

    result = execute(prepared, make_progress(sys.stderr), runs_root=cwd / "runs")
    try:
        _print_result(prepared, result, as_json=as_json)
        sys.stdout.flush()
    except OSError:  # the terminal went away; the result lies in summary.json
        pass
    return int(result.exit_status)


def _print_result(prepared: PreparedRun, result: RunResult, *, as_json: bool) -> None:
    from rolltop.report.summary import render_summary
    from rolltop.report.text import render_text_summary

    if as_json:
        print(render_summary(result.summary), end="")
        return
    directory = _short(prepared.paths.run_dir)
    plot = prepared.paths.plot
    failure = result.summary.failure
    log = prepared.paths.log_of(failure.process) if failure is not None else None
    lines = render_text_summary(
        result.summary,
        plot=Path(_short(plot)) if plot.exists() else None,
        open_command=shlex.join([_program(), "open", directory]) if result.samples else None,
        failure_log=Path(_short(log)) if log is not None and log.exists() else None,
    )
    print("\n".join(lines))


def _print_plan(prepared: PreparedRun, *, as_json: bool) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rolltop.launch.plan_text import describe_plan, render_plan

    if as_json:
        print(render_plan(prepared.plan), end="")
        return 0
    text = io.StringIO()
    console = Console() if sys.stdout.isatty() else Console(file=text, width=_WIDE)
    for warning in prepared.plan.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    for table in describe_plan(prepared.plan):
        shown = Table(title=table.title, title_justify="left", box=None, pad_edge=False)
        for column in table.columns:
            shown.add_column(column, overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(cell) for cell in row))
        console.print(shown, "")
    for line in text.getvalue().splitlines():
        print(line.rstrip())
    return 0


def _program() -> str:
    """Return what starts rolltop from here: its name if the shell finds it, else its path."""
    started = Path(sys.argv[0]).absolute()
    return "rolltop" if shutil.which("rolltop") == str(started) else _short(started)


def _short(path: Path) -> str:
    """Return a path as a person would type it: relative to here if it lies below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", short_help="Drive a simulation and measure it.")(run)
