"""Ask a Prometheus over its HTTP API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rolltop.errors import QueryError
from rolltop.prometheus.transport import Answer, HttpTransport, NoAnswerError, TooLateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rolltop.model.series import Series
    from rolltop.prometheus.results import ScrapedTarget
    from rolltop.prometheus.transport import Transport

T = TypeVar("T")
MAX_POINTS = 11_000
"""Points of a series that Prometheus gives in one answer; a longer range is asked in parts."""
TIMEOUT_S = 30.0
_SHOWN = 120
_OK = 200


class Prometheus:
    """A Prometheus to ask; it may be used by several threads at once.

    Args:
        url: Its address, ``http://127.0.0.1:9090``; a path that it is served under is kept.
        timeout_s: Seconds that a request may take.
        transport: What carries the requests, HTTP by default.
    """

    def __init__(
        self, url: str, *, timeout_s: float = TIMEOUT_S, transport: Transport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self._transport: Transport = transport or HttpTransport(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later question opens them again."""
        self._transport.close()

    def query(self, promql: str, at: float | None = None) -> list[Series]:
        """Return the value of each series at a time, or its samples for a range selector.

        Args:
            promql: The expression; a scalar gives one series without labels.
            at: Unix seconds, by default now.

        Raises:
            QueryError: Prometheus did not answer, or refused.
        """
        from rolltop.prometheus.results import parse_series

        form = {"query": promql}
        if at is not None:
            form["time"] = _time(at)
        return self._ask("/api/v1/query", form, parse_series, promql)

    def query_range(self, promql: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """Return the values of each series over time; more than 11,000 points are asked in parts.

        Args:
            promql: The expression.
            start_s: The first time, unix seconds.
            end_s: The last time, included if it lies on a step.
            step_s: Seconds between two values, 0.001 at least.

        Raises:
            QueryError: Prometheus did not answer, or refused, or the range is none.
        """
        from rolltop.prometheus.results import merge, parse_series

        return merge(
            self._ask(
                "/api/v1/query_range",
                {"query": promql, "start": start, "end": end, "step": step},
                parse_series,
                promql,
            )
            for start, end, step in _parts(promql, start_s, end_s, step_s)
        )

    def series(
        self, matchers: str | Sequence[str], start_s: float, end_s: float
    ) -> list[dict[str, str]]:
        """Return the label sets, ``__name__`` among them, of series in a time range.

        Args:
            matchers: Selectors, such as ``up{job="x"}``; a series needs to match one of them.
            start_s: Begin, unix seconds.
            end_s: End, unix seconds.

        Raises:
            QueryError: Prometheus did not answer, or refused.
        """
        from rolltop.prometheus.results import parse_label_sets

        wanted = [matchers] if isinstance(matchers, str) else list(matchers)
        form = {"match[]": wanted, "start": _time(start_s), "end": _time(end_s)}
        return self._ask("/api/v1/series", form, parse_label_sets, ", ".join(wanted))

    def labels(self) -> list[str]:
        """Return all label names.

        Raises:
            QueryError: Prometheus did not answer.
        """
        from rolltop.prometheus.results import parse_strings

        return self._ask("/api/v1/labels", None, parse_strings)

    def label_values(self, name: str) -> list[str]:
        """Return all values of a label; those of ``__name__`` are the names of the series.

        Raises:
            QueryError: Prometheus did not answer, or ``name`` cannot be a label.
        """
        from rolltop.prometheus.results import parse_strings

        return self._ask(f"/api/v1/label/{name}/values", None, parse_strings, name)

    def targets(self) -> list[ScrapedTarget]:
        """Return the targets that are scraped, with the time of their last scrape.

        Raises:
            QueryError: Prometheus did not answer.
        """
        from rolltop.prometheus.results import parse_targets

        return self._ask("/api/v1/targets?state=active", None, parse_targets)

    def runtime_info(self) -> dict[str, Any]:
        """Return what the server says of its state: ``storageRetention``, ``startTime`` ...

        Raises:
            QueryError: Prometheus did not answer.
        """
        return self._ask("/api/v1/status/runtimeinfo", None, _table)

    def version(self) -> str:
        """Return the server's version.

        Raises:
            QueryError: Prometheus did not answer.
        """
        return self._ask(
            "/api/v1/status/buildinfo", None, lambda data: str(_table(data)["version"])
        )

    def head_range(self) -> tuple[float, float] | None:
        """Return the first and last time (unix seconds) of what lies in no block, None if empty.

        Raises:
            QueryError: Prometheus did not answer.
        """
        return self._ask("/api/v1/status/tsdb", None, _head_range)

    def ready(self) -> bool:
        """Whether it answers and can be asked."""
        return self.page("/-/ready")

    def page(self, path: str) -> bool:
        """Whether it serves a page at a path."""
        try:
            return self._transport.get(path, self.timeout_s).status == _OK
        except NoAnswerError:
            return False

    def _ask(
        self,
        path: str,
        form: Mapping[str, str | Sequence[str]] | None,
        parse: Callable[[Any], T],
        about: str = "",
    ) -> T:
        """Send a request and read the answer; every way to fail becomes a QueryError."""
        from rolltop.prometheus.results import MalformedError, parse_data

        try:
            answer = (
                self._transport.get(path, self.timeout_s)
                if form is None
                else self._transport.post(path, form, self.timeout_s)
            )
            return parse(parse_data(_body(answer)))
        except TooLateError as error:
            hint = "ask for less at once: a shorter range, a longer step, fewer series"
            raise self._error(str(error), about, hint) from error
        except NoAnswerError as error:
            hint = "is it running, and is this its address?"
            raise self._error(str(error), about, hint) from error
        except _RefusedError as error:
            raise self._error(f"refused: {error}", about, error.hint) from error
        except (MalformedError, KeyError, TypeError, ValueError) as error:
            reason = f"its answer cannot be read: {error}"
            raise self._error(reason, about, "is this the address of a Prometheus?") from error

    def _error(self, reason: str, about: str, hint: str) -> QueryError:
        shown = about if len(about) <= _SHOWN else f"{about[:_SHOWN]}..."
        what = f" ({shown})" if shown else ""
        return QueryError(f"Prometheus at {self.url}: {reason}{what}", hint=hint)


class _RefusedError(Exception):
    """Prometheus, or something in its place, answered with an error."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


_HINTS = {
    400: "look at the expression",
    404: "is this the address of a Prometheus?",
    422: "look at the expression, or ask for less: a shorter range, a longer step",
    503: "it starts or stops, or the query took too long: try again, ask for less",
}


def _body(answer: Answer) -> bytes:
    """Return the body of a JSON answer that reports success."""
    from rolltop.prometheus.results import parse_error

    if answer.status == _OK and "json" in answer.content_type:
        return answer.body
    complaint = parse_error(answer.body)
    if complaint is None:
        kind = answer.content_type.partition(";")[0] or "nothing"
        raise _RefusedError(f"HTTP {answer.status} with {kind} instead of JSON", _HINTS[404])
    raise _RefusedError(complaint, _HINTS.get(answer.status, f"it was HTTP {answer.status}"))


def _table(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError("it holds no table")
    return data


def _head_range(data: Any) -> tuple[float, float] | None:
    head = _table(data)["headStats"]
    first, last = int(head["minTime"]), int(head["maxTime"])
    return (first / 1000, last / 1000) if first <= last else None


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        raise QueryError(f"{seconds} is no time", hint="a time is in unix seconds")
    return f"{seconds:.3f}"


def _parts(
    promql: str, start_s: float, end_s: float, step_s: float
) -> Iterator[tuple[str, str, str]]:
    """Yield start, end and step of each question, as text: whole milliseconds, so none drifts."""
    if not (math.isfinite(start_s) and math.isfinite(end_s) and start_s <= end_s):
        raise QueryError(
            f"from {start_s} to {end_s} is no range ({promql[:_SHOWN]})", hint="unix seconds"
        )
    step = round(step_s * 1000) if math.isfinite(step_s) else 0
    if step < 1:
        raise QueryError(f"a step of {step_s} s is too short", hint="0.001 s is the least")
    start, end = round(start_s * 1000), round(end_s * 1000)
    while start <= end:
        last = min(end, start + (MAX_POINTS - 1) * step)
        yield f"{start / 1000:.3f}", f"{last / 1000:.3f}", f"{step / 1000:.3f}"
        start += MAX_POINTS * step
