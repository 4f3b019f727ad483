"""``rolltop deps``: which Prometheus is used, and how to get one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rolltop.model.run import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolltop.prometheus.survey import Dependency


def deps(
    install: Annotated[
        bool, typer.Option("--install", help="Get what is missing, into your cache, without root.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Say which programs rolltop uses, where they are, and how to get those that are missing.

    Exits with 0 if all that is needed is there, else with 2.
    """
    from rolltop.prometheus.survey import survey

    if install:
        from rolltop.prometheus.install import find_or_install

        find_or_install(_tell)
    found = survey()
    if as_json:
        _print_json(found)
    else:
        _print_table(found)
    complete = all(one.found for one in found if one.needed)
    return int(ExitStatus.OK if complete else ExitStatus.USAGE)


def _tell(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


def _print_json(found: Sequence[Dependency]) -> None:
    import json
    from dataclasses import asdict

    complete = all(one.found for one in found if one.needed)
    answer = {"complete": complete, "dependencies": [asdict(one) for one in found]}
    print(json.dumps(answer, indent=2))


def _print_table(found: Sequence[Dependency]) -> None:
    width = max(len(one.name) for one in found)
    for one in found:
        print(f"{one.name:{width}}  {_state(one)}")
        indent = " " * (width + 2)
        if one.problem:
            print(f"{indent}{one.problem}")
        if one.cure:
            print(f"{indent}to get it: {one.cure}")


def _state(one: Dependency) -> str:
    if not one.found:
        return f"missing ({'needed' if one.needed else 'optional'}: {one.purpose})"
    version = f"{one.version}  " if one.version else ""
    return f"{version}{one.place}  ({one.source}; {one.purpose})"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("deps", short_help="Say which programs are used, and get what is missing.")(deps)
