"""A Prometheus in memory: what :class:`~rolltop.prometheus.query.Prometheus` asks, it answers.

It knows plain selectors (``up{job="x"}``, with ``[30s]`` behind for samples), numbers, and whole
expressions that it was told the answer of. It passes the contract of ``prometheus_contract``, as
the real one does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from rolltop.model.series import Series
from rolltop.prometheus.query import MAX_POINTS, Prometheus
from rolltop.prometheus.results import parse_duration
from rolltop.prometheus.transport import Answer, NoAnswerError, TooLateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rolltop.prometheus.results import ScrapedTarget

URL = "http://prometheus.invalid:9090"
LOOK_BACK_S = 300.0
_SELECTOR = re.compile(
    r"\s*(?P<name>[a-zA-Z_:][\w:]*)?\s*(?:\{(?P<matchers>[^{}]*)\})?\s*(?:\[(?P<window>\w+)\])?\s*"
)
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|Inf|NaN)\s*")


class _BadQueryError(Exception):
    """The expression is not one, or not one that the fake knows."""


@dataclass
class FakePrometheus:
    """A transport that answers from memory.

    Attributes:
        stored: The series; ``labels`` has ``__name__`` in it.
        answers: Expression -> what it gives, at any time; ``at`` of a query picks no sample.
        scraped: What ``targets()`` says.
        version: What ``version()`` says.
        now_s: The time of a query that names none, unix seconds; by default the newest sample.
        asked: Every expression that was asked, in order.
    """

    stored: list[Series] = field(default_factory=list)
    answers: dict[str, list[Series]] = field(default_factory=dict)
    scraped: list[ScrapedTarget] = field(default_factory=list)
    version: str = "2.42.0"
    now_s: float | None = None
    asked: list[str] = field(default_factory=list)
    _fault: Answer | NoAnswerError | None = None

    def client(self, *, timeout_s: float = 1.0) -> Prometheus:
        """Return a client that asks this fake."""
        return Prometheus(URL, timeout_s=timeout_s, transport=self)

    def refuse(self) -> None:
        """From now on refuse connections."""
        self._fault = NoAnswerError("connection refused")

    def be_late(self) -> None:
        """From now on answer too late."""
        self._fault = TooLateError("no answer within 1 s")

    def reply(self, status: int, content_type: str, body: bytes) -> None:
        """From now on answer with this, whatever is asked."""
        self._fault = Answer(status, content_type, body)

    def recover(self) -> None:
        """Answer again."""
        self._fault = None

    def get(self, path: str, timeout_s: float) -> Answer:  # noqa: ARG002 (as the protocol says)
        """Answer a GET."""
        return self._answer(path, {})

    def post(
        self,
        path: str,
        form: Mapping[str, str | Sequence[str]],
        timeout_s: float,  # noqa: ARG002 (as the protocol says)
    ) -> Answer:
        """Answer a POST."""
        return self._answer(path, form)

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _answer(self, path: str, form: Mapping[str, str | Sequence[str]]) -> Answer:
        if isinstance(self._fault, NoAnswerError):
            raise self._fault
        if self._fault is not None:
            return self._fault
        place = urlsplit(path).path
        if place in ("/-/ready", "/-/healthy", "/graph"):
            return Answer(200, "text/plain", b"Prometheus Server is Ready.\n")
        handler = self._handler(place)
        if handler is None:
            return Answer(404, "text/plain; charset=utf-8", b"404 page not found\n")
        try:
            return _json(200, {"status": "success", "data": handler(form)})
        except _BadQueryError as error:
            body = {"status": "error", "errorType": "bad_data", "error": str(error)}
            return _json(400, body)

    def _handler(self, place: str) -> Callable[[Mapping[str, Any]], Any] | None:
        handlers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "/api/v1/query": self._query,
            "/api/v1/query_range": self._query_range,
            "/api/v1/series": self._series,
            "/api/v1/labels": lambda _: sorted({name for s in self.stored for name in s.labels}),
            "/api/v1/targets": self._targets,
            "/api/v1/status/buildinfo": lambda _: {"version": self.version},
            "/api/v1/status/runtimeinfo": lambda _: {"storageRetention": "100y"},
            "/api/v1/status/tsdb": self._head,
        }
        values = re.fullmatch(r"/api/v1/label/([a-zA-Z_]\w*)/values", place)
        if values:
            name = values[1]
            return lambda _: sorted({s.labels[name] for s in self.stored if name in s.labels})
        return handlers.get(place)

    def _query(self, form: Mapping[str, Any]) -> dict[str, Any]:
        promql = form["query"]
        self.asked.append(promql)
        at = float(form["time"]) if "time" in form else self._now()
        if promql in self.answers:
            found = [(s.labels, (at, s.values[-1])) for s in self.answers[promql] if s.values.size]
            return _vector(found)
        if _NUMBER.fullmatch(promql):
            return {"resultType": "scalar", "result": [at, _text(float(promql))]}
        selector = _Selector.parse(promql)
        chosen = [s for s in self.stored if selector.takes(s.labels)]
        if selector.window_s is not None:
            return _matrix([(s.labels, _within(s, at - selector.window_s, at)) for s in chosen])
        return _vector([(s.labels, (at, v)) for s in chosen if (v := _value_at(s, at)) is not None])

    def _query_range(self, form: Mapping[str, Any]) -> dict[str, Any]:
        promql = form["query"]
        self.asked.append(promql)
        start, end, step = (round(float(form[key]) * 1000) for key in ("start", "end", "step"))
        if (end - start) // step + 1 > MAX_POINTS:
            raise _BadQueryError(
                "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the "
                "query resolution (?step=XX)"
            )
        if promql in self.answers:
            return _matrix([(s.labels, _points(s)) for s in self.answers[promql]])
        times = np.arange(start, end + 1, step) / 1000
        if _NUMBER.fullmatch(promql):
            return _matrix([({}, [(t, float(promql)) for t in times])])
        selector = _Selector.parse(promql)
        if selector.window_s is not None:
            raise _BadQueryError(
                'invalid expression type "range vector" for range query, must be Scalar or '
                "instant Vector"
            )
        chosen = [s for s in self.stored if selector.takes(s.labels)]
        return _matrix([(s.labels, _stepped(s, times)) for s in chosen])

    def _series(self, form: Mapping[str, Any]) -> list[dict[str, str]]:
        selectors = [_Selector.parse(text) for text in form["match[]"]]
        start, end = float(form["start"]), float(form["end"])
        return [
            s.labels
            for s in self.stored
            if any(one.takes(s.labels) for one in selectors) and _within(s, start, end)
        ]

    def _targets(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"activeTargets": [_target(one) for one in self.scraped]}

    def _head(self, _: Mapping[str, Any]) -> dict[str, Any]:
        times = [t for s in self.stored for t in (s.t_s[0], s.t_s[-1]) if s.t_s.size]
        low, high = (min(times), max(times)) if times else (1.0, 0.0)
        return {"headStats": {"minTime": int(low * 1000), "maxTime": int(high * 1000)}}

    def _now(self) -> float:
        newest = max((float(s.t_s[-1]) for s in self.stored if s.t_s.size), default=0.0)
        return newest if self.now_s is None else self.now_s


@dataclass(frozen=True)
class _Selector:
    """A parsed selector."""

    matchers: tuple[tuple[str, str, str], ...]
    window_s: float | None

    @classmethod
    def parse(cls, promql: str) -> _Selector:
        found = _SELECTOR.fullmatch(promql)
        if found is None or not (found["name"] or found["matchers"]):
            raise _BadQueryError(f"parse error: the fake does not know {promql!r}")
        matchers = [("__name__", "=", found["name"])] if found["name"] else []
        text = (found["matchers"] or "").strip()
        place = 0
        while place < len(text):
            one = _MATCHER.match(text, place)
            if one is None:
                raise _BadQueryError(f"parse error: unexpected {text[place:]!r}")
            matchers.append((one[1], one[2], one[3]))
            place = one.end()
        window = parse_duration(found["window"]) if found["window"] else None
        return cls(tuple(matchers), window)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is chosen; an absent label is an empty one."""
        return all(_matches(labels.get(n, ""), kind, value) for n, kind, value in self.matchers)


def _matches(have: str, kind: str, want: str) -> bool:
    same = have == want if kind in ("=", "!=") else re.fullmatch(want, have) is not None
    return same is (kind in ("=", "=~"))


def _value_at(series: Series, at: float) -> float | None:
    """Return the newest value at a time that is no older than five minutes."""
    index = int(np.searchsorted(series.t_s, at, side="right")) - 1
    if index < 0 or at - series.t_s[index] > LOOK_BACK_S:
        return None
    return float(series.values[index])


def _points(series: Series) -> list[tuple[float, float]]:
    return list(zip(series.t_s.tolist(), series.values.tolist(), strict=True))


def _within(series: Series, start: float, end: float) -> list[tuple[float, float]]:
    return [(t, v) for t, v in _points(series) if start <= t <= end]


def _stepped(series: Series, times: Iterable[float]) -> list[tuple[float, float]]:
    return [(float(t), v) for t in times if (v := _value_at(series, float(t))) is not None]


def _vector(found: Iterable[tuple[Mapping[str, str], tuple[float, float]]]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [t, _text(v)]} for labels, (t, v) in found]
    return {"resultType": "vector", "result": result}


def _matrix(
    found: Iterable[tuple[Mapping[str, str], Sequence[tuple[float, float]]]],
) -> dict[str, Any]:
    result = [
        {"metric": labels, "values": [[t, _text(v)] for t, v in points]}
        for labels, points in found
        if points
    ]
    return {"resultType": "matrix", "result": result}


def _target(one: ScrapedTarget) -> dict[str, Any]:
    from datetime import UTC, datetime

    scraped = one.last_scrape_s
    when = "0001-01-01T00:00:00Z"
    if scraped is not None:
        when = datetime.fromtimestamp(scraped, UTC).isoformat()
    return {
        "scrapePool": one.pool,
        "scrapeUrl": one.url,
        "labels": one.labels,
        "health": one.health,
        "lastScrape": when,
        "lastError": one.last_error,
        "scrapeInterval": f"{round((one.interval_s or 1) * 1000)}ms",
    }


def _text(value: float) -> str:
    """Return a value as Go writes it."""
    if value != value:  # noqa: PLR0124 (NaN)
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))


def _json(status: int, body: Mapping[str, Any]) -> Answer:
    return Answer(status, "application/json", json.dumps(body).encode())
