"""Addresses of a view's web pages: those that its server really has, at the run's own time."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from rolltop.catalogue.questions import ANYTHING, GRAPHS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rolltop.catalogue.questions import Graph
    from rolltop.prometheus.query import Prometheus

GRAPH_PATHS = ("/query", "/graph", "/classic/graph")
"""Prometheus 3, 2, and Debian's builds, which have only the pages of 1; no server has another's."""
_MINUTE_S = 60
_LEAST_RANGE_S = 60


def graph_path(prometheus: Prometheus) -> str | None:
    """Return the path of the server's graph page, None if it serves none."""
    return next((path for path in GRAPH_PATHS if prometheus.page(path)), None)


def graphs_of(names: Collection[str]) -> tuple[Graph, ...]:
    """Return the graphs for which a database has the series, by the names of all its series."""
    return tuple(graph for graph in GRAPHS if graph.needs in names) or (ANYTHING,)


def graph_url(
    url: str, path: str, graphs: Sequence[Graph], span: tuple[float, float] | None
) -> str:
    """Return the address of a page that shows expressions over a run's time.

    Args:
        url: The server's address.
        path: Its graph page.
        graphs: What is drawn, one below the other.
        span: Begin and end, unix seconds; None: the page's default, the last hour. The classic
            page knows an end by the minute only, so that a run is shown up to the next one.
    """
    parameters: dict[str, str] = {}
    for index, graph in enumerate(graphs):
        parameters[f"g{index}.expr"] = graph.expr
        parameters[f"g{index}.tab"] = "0"
        if span is not None:
            end_s = math.ceil(span[1] / _MINUTE_S) * _MINUTE_S
            range_s = max(_LEAST_RANGE_S, math.ceil(end_s - span[0]))
            when = datetime.fromtimestamp(end_s, UTC)
            parameters[f"g{index}.range_input"] = f"{range_s}s"
            parameters[f"g{index}.end_input"] = f"{when:%Y-%m-%d %H:%M:%S}"
    return f"{url}{path}?{urlencode(parameters, quote_via=quote)}"
