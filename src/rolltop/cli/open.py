"""``rolltop open``: a Prometheus on a copy of a run's data, until Ctrl-C."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rolltop.lifecycle.view import View
    from rolltop.model.run import RunPaths

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def open_run(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A directory, `latest`, or the start of a uuid.")
    ] = "latest",
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where to listen.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print address and pid as one line of JSON.")
    ] = False,
) -> int:
    """Look at a run's telemetry: start a Prometheus on a copy of its data, until Ctrl-C.

    The run itself is never written to; it may still go on.
    """
    from rolltop.lifecycle.runs import resolve_run
    from rolltop.lifecycle.view import open_view

    paths = resolve_run(run, Path.cwd() / "runs")
    try:
        with _stoppable(), open_view(paths, port=port) as view:
            opened = _look(view)
            print(opened.as_json() if as_json else opened.as_text(paths), flush=True)
            view.wait()
    except _StopError:
        return 0
    return 0


@dataclass(frozen=True)
class Opened:
    """What is printed once the server is ready.

    Attributes:
        view: The server.
        graph: The address of a page with all queries in it; None where the server has no pages.
        page: The address of the same page with the run's time and the shortest query.
        queries: What is worth a look, to be pasted there: title and PromQL.
    """

    view: View
    graph: str | None
    page: str | None = None
    queries: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> str:
        """Return one line of JSON; ``span`` is in unix seconds."""
        import json

        view = self.view
        answer = {"url": view.url, "pid": view.pid, "graph": self.graph, "span": view.span}
        return json.dumps(answer)

    def as_text(self, paths: RunPaths) -> str:
        """Return lines for a person."""
        view = self.view
        lines = [f"Prometheus {view.binary.version} on a copy of {paths.data}{_during(view.span)}"]
        if self.page:
            lines.append(f"  page    {self.page}")
        else:
            lines.append(
                "  no web pages: their files are missing (rolltop deps says how to get them)"
            )
        lines.append(f"  API     {view.url}/api/v1/query?query=up")
        if self.queries:
            lines.append("Queries worth asking:")
        for title, promql in self.queries:
            lines += [f"  {title}:", promql]
        lines.append("Ctrl-C ends it.")
        return "\n".join(lines)


def _look(view: View) -> Opened:
    from rolltop.catalogue.questions import ANYTHING
    from rolltop.lifecycle.pages import graph_path, graph_url, graphs_of

    graphs = graphs_of(view.prometheus.label_values("__name__"))
    queries = tuple((graph.title, graph.expr) for graph in graphs)
    path = graph_path(view.prometheus)
    if path is None:
        return Opened(view, None, queries=queries)
    return Opened(
        view,
        graph=graph_url(view.url, path, graphs, view.span),
        page=graph_url(view.url, path, (ANYTHING,), view.span),
        queries=queries,
    )


def _during(span: tuple[float, float] | None) -> str:
    if span is None:
        return ": there are no samples in it"
    first, last = (datetime.fromtimestamp(when, UTC) for when in span)
    return f", {first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} UTC"


class _StopError(BaseException):
    """Somebody wants it to end. No Exception: nothing on the way may take it for a failure."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn the first signal that asks for an end into an exception; more change nothing.

    A signal that is ignored (``nohup``) stays ignored.
    """

    def stop(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise _StopError

    before = {n: h for n in _SIGNALS if (h := signal.getsignal(n)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("open", short_help="Look at a run's telemetry in Prometheus.")(open_run)
