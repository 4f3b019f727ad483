"""The command line, its exit statuses and its exceptions, from the code."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import typer

from rolltop import errors
from rolltop.cli.main import app
from rolltop.model.run import ExitStatus
from scripts.pages.markdown import code, sentence, table

_STATUSES = {
    ExitStatus.OK: "All rollouts were completed; the command did what it was asked.",
    ExitStatus.SOME_ABANDONED: "The run ended, but some rollouts were abandoned.",
    ExitStatus.USAGE: "Wrong usage or configuration, and nothing was started; or a place that is "
    "full, not writable or taken away, also where only the summary could not be written.",
    ExitStatus.PROCESS_FAILED: "A process could not start, or died; the summary names it.",
    ExitStatus.OUT_OF_MEMORY: "A process ran out of memory.",
    ExitStatus.CANCELLED: "The run was cancelled or timed out.",
    ExitStatus.NOT_ENOUGH_DATA: "There is not enough data for the question.",
    ExitStatus.TELEMETRY_MISSING: "Telemetry failed, and `telemetry.strict=true` makes that count.",
    ExitStatus.OUR_FAULT: "A fault of rolltop itself; `ROLLTOP_DEBUG=1` prints where.",
}


def exit_statuses() -> str:
    """Return the table of exit statuses."""
    rows = [(str(int(status)), _STATUSES[status]) for status in ExitStatus]
    return table(("status", "meaning"), rows)


def exceptions() -> str:
    """Return the exception tree, and what each exception says."""
    tree, _, _ = inspect.cleandoc(errors.__doc__ or "").partition("::\n\n")[2].partition("\n\n")
    drawn = textwrap.dedent(tree)
    rows = [
        (code(name), sentence(inspect.getdoc(kind) or ""), str(kind.exit_status))
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.RolltopError)
    ]
    return f"```text\n{drawn}\n```\n\n" + table(("exception", "meaning", "exit status"), rows)


def cli() -> str:
    """Return every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, command) for name, command in group.commands.items())


def _command(name: str, command: Any) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f"## `rolltop {name}`",
        inspect.cleandoc(command.help or "").replace("``", "`"),
        f"```text\nrolltop {name} {usage}\n```",
    ]
    rows = [_parameter(parameter) for parameter in command.params if parameter.name != "help"]
    if rows:
        parts.append(table(("argument or option", "meaning", "default"), rows))
    return "\n\n".join(parts)


def _parameter(parameter: Any) -> tuple[str, str, str]:
    option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if option else parameter.metavar or parameter.name
    given = parameter.default not in (None, False, ())
    return code(name), parameter.help or "", code(str(parameter.default) if given else "")
