"""The command line, its exit statuses and its exceptions, from the code."""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, cast

import click
import typer

from rolltop import errors
from rolltop.cli.main import app
from rolltop.model.run import ExitStatus
from scripts.pages.markdown import code, sentence, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUSES = {
    ExitStatus.OK: "All rollouts were completed; the command did what it was asked.",
    ExitStatus.SOME_ABANDONED: "The run ended, but some rollouts were abandoned.",
    ExitStatus.USAGE: "Wrong usage or configuration; nothing was started.",
    ExitStatus.PROCESS_FAILED: "A process could not start, or died; the summary names it.",
    ExitStatus.OUT_OF_MEMORY: "A process ran out of memory.",
    ExitStatus.CANCELLED: "The run was cancelled or timed out.",
    ExitStatus.NOT_ENOUGH_DATA: "There is not enough data for the question.",
    ExitStatus.TELEMETRY_MISSING: "Telemetry is missing, and `telemetry.strict=true` asked for it.",
    ExitStatus.OUR_FAULT: "A fault of rolltop itself; `ROLLTOP_DEBUG=1` prints where.",
}


def exit_statuses() -> str:
    """Return the table of exit statuses."""
    rows = [(str(int(status)), _STATUSES[status]) for status in ExitStatus]
    return table(("status", "meaning"), rows)


def exceptions() -> str:
    """Return the exception tree, and what each exception says."""
    tree = inspect.cleandoc(errors.__doc__ or "").partition("::")[2].strip("\n")
    drawn, _, _ = textwrap.dedent(tree).partition("\n\n")
    rows = [
        (code(name), sentence(inspect.getdoc(kind) or ""), str(kind.exit_status))
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.RolltopError)
    ]
    return f"```text\n{drawn}\n```\n\n" + table(("exception", "meaning", "exit status"), rows)


def cli() -> str:
    """Return every command with its arguments and options."""
    group = cast("click.Group", typer.main.get_command(app))
    context = click.Context(group, info_name="rolltop")
    return "\n\n".join(
        _command(command, click.Context(command, info_name=name, parent=context))
        for name, command in group.commands.items()
    )


def _command(command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f"## `{context.command_path}`",
        inspect.cleandoc(command.help or "").replace("``", "`"),
        f"```text\n{context.command_path} {usage}\n```",
    ]
    rows = list(_parameters(command, context))
    if rows:
        parts.append(table(("argument or option", "meaning", "default"), rows))
    return "\n\n".join(parts)


def _parameters(command: click.Command, context: click.Context) -> Iterator[tuple[str, str, str]]:
    for parameter in command.get_params(context):
        if parameter.name == "help":
            continue
        name = parameter.human_readable_name
        if isinstance(parameter, click.Option):
            name = ", ".join((*parameter.opts, *parameter.secondary_opts))
        yield code(name), getattr(parameter, "help", None) or "", code(_default(parameter))


def _default(parameter: click.Parameter) -> str:
    value = parameter.default
    return "" if value is None or callable(value) or value in (False, ()) else str(value)
