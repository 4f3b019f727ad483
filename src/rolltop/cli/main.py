"""``rolltop``: the commands, and how an error becomes a line and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Annotated

import typer

from rolltop import __version__
from rolltop.cli import deps, open, plot, run
from rolltop.cli.entry import AskedToEnd
from rolltop.cli.places import cure, describe
from rolltop.errors import RolltopError
from rolltop.model.run import ExitStatus

_EPILOG = """\b
Examples:
  rolltop run sim=tiny runtime.rollouts=12
  rolltop open latest

Documentation: docs/ in the source of rolltop; begin with docs/tutorial/first-run.md.
"""

app = typer.Typer(
    name="rolltop",
    epilog=_EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"rolltop {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Run parallel simulations with their telemetry on, and look at what they left."""


for _command in (run, plot, open, deps):
    _command.register(app)


def run_command_line(arguments: list[str]) -> int:
    """Run a command and return its exit status; what goes wrong is a line on standard error.

    No arguments at all ask for the help.
    """
    try:
        words = arguments or ["--help"]
        status = int(app(words, prog_name="rolltop", standalone_mode=False) or 0)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 (the last border: each becomes an exit status)
        return _status_of(error)
    return status


def _status_of(error: BaseException) -> int:
    """Say what went wrong, and return the exit status for it."""
    status: int = ExitStatus.OK
    if isinstance(error, RolltopError):
        _complain(error.message, error.hint)
        status = error.exit_status
    elif isinstance(error, typer.Exit):
        status = error.exit_code
    elif isinstance(error, typer.TyperException):
        _complain(error.format_message(), _help_for(error))
        status = ExitStatus.USAGE
    elif isinstance(error, typer.Abort | KeyboardInterrupt | AskedToEnd):
        _complain(str(error) or "cancelled", None)
        status = ExitStatus.CANCELLED
    elif isinstance(error, BrokenPipeError | SystemExit):  # the latter is what rich makes of it
        _silence_stdout()
    elif isinstance(error, OSError):
        _complain(describe(error), cure(error))
        status = ExitStatus.USAGE
    else:
        status = _our_fault(error)
    return status


def _help_for(error: typer.TyperException) -> str:
    """Return which help to read about a wrong command line: that of its command."""
    context = getattr(error, "ctx", None)
    if context is None or context.parent is None:
        return "rolltop --help lists the commands"
    return f"{context.command_path} --help lists what it takes"


def _complain(message: str, hint: str | None) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal went away
        print(f"rolltop: {message}", file=sys.stderr)
        if hint:
            print(f"  hint: {hint}", file=sys.stderr)


def _our_fault(error: BaseException) -> int:
    _complain(
        f"a fault of rolltop itself: {type(error).__name__}: {error}",
        "ROLLTOP_DEBUG=1 prints where; please report it",
    )
    if os.environ.get("ROLLTOP_DEBUG"):
        traceback.print_exception(error)
    return ExitStatus.OUR_FAULT


def _silence_stdout() -> None:
    """Keep the interpreter from complaining again when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
