"""Read the answers of Prometheus's HTTP API. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rolltop.model.series import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_NEVER = "0001-01-01"
"""The date with which Go writes a time that was never set."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?:[0-9]+(?:ms|[smhdw]))+")
_DURATION_PART = re.compile(r"([0-9]+)(ms|[smhdw])")


class MalformedError(ValueError):
    """An answer is not what the HTTP API of Prometheus sends; the text says why."""


@dataclass(frozen=True)
class ScrapedTarget:
    """A target as Prometheus sees it.

    Attributes:
        pool: The scrape configuration that it belongs to.
        url: What is fetched.
        labels: What is attached to its series.
        health: ``up``, ``down``, or ``unknown`` before the first scrape.
        last_scrape_s: When it was last scraped, unix seconds; None if never.
        last_error: Why the last scrape failed, empty where it did not.
        interval_s: Seconds between two scrapes; None where the server does not say.
    """

    pool: str
    url: str
    labels: dict[str, str] = field(default_factory=dict)
    health: str = "unknown"
    last_scrape_s: float | None = None
    last_error: str = ""
    interval_s: float | None = None


def parse_data(body: bytes) -> Any:
    """Return the ``data`` of an answer that reports success.

    Raises:
        MalformedError: It is no such answer.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"it is not whole JSON: {error}") from error
    if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
        raise MalformedError("it has no status and data")
    return answer["data"]


def parse_error(body: bytes) -> str | None:
    """Return what Prometheus complains of, None where the body is not an error of its API."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("status") != "error":
        return None
    return str(answer.get("error") or answer.get("errorType") or "no reason given")


def parse_series(data: Any) -> list[Series]:
    """Return the series of a query's result, in the order of the answer.

    A scalar is one series without labels. ``NaN``, ``+Inf`` and ``-Inf`` stay what they are.

    Raises:
        MalformedError: The result is no vector, matrix or scalar.
    """
    try:
        kind, result = data["resultType"], data["result"]
        if kind == "scalar":
            return [_series({}, [result])]
        if kind == "vector":
            return [_series(one["metric"], [one["value"]]) for one in result if "value" in one]
        if kind == "matrix":
            return [_series(one["metric"], one["values"]) for one in result if "values" in one]
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"a result that cannot be read: {error!r}") from error
    raise MalformedError(f"the result is a {kind}, not numbers over time")


def parse_label_sets(data: Any) -> list[dict[str, str]]:
    """Return the label sets of ``/api/v1/series``.

    Raises:
        MalformedError: They are none.
    """
    if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
        raise MalformedError("it holds no label sets")
    return [_labels(one) for one in data]


def parse_strings(data: Any) -> list[str]:
    """Return a list of label names or values.

    Raises:
        MalformedError: It is none.
    """
    if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
        raise MalformedError("it holds no list of texts")
    return data


def parse_targets(data: Any) -> list[ScrapedTarget]:
    """Return the active targets of ``/api/v1/targets``.

    Raises:
        MalformedError: They cannot be read.
    """
    try:
        return [_target(one) for one in data["activeTargets"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedError(f"a target that cannot be read: {error!r}") from error


def parse_time(text: str) -> float | None:
    """Return an RFC 3339 time in unix seconds, None for Go's time that was never set.

    Raises:
        ValueError: It is no time.
    """
    if text.startswith(_NEVER):
        return None
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return when.timestamp()


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as ``1m30s`` or ``250ms``, None if it is none."""
    if not _DURATION.fullmatch(text):
        return None
    return float(sum(int(n) * _UNITS_S[unit] for n, unit in _DURATION_PART.findall(text)))


def merge(parts: Iterable[Sequence[Series]]) -> list[Series]:
    """Join parts of the same series, which follow each other in time, by their labels."""
    pieces: dict[tuple[tuple[str, str], ...], list[Series]] = {}
    for part in parts:
        for series in part:
            pieces.setdefault(tuple(sorted(series.labels.items())), []).append(series)
    return [_joined(found) for found in pieces.values()]


def _joined(pieces: list[Series]) -> Series:
    if len(pieces) == 1:
        return pieces[0]
    times = np.concatenate([piece.t_s for piece in pieces])
    values = np.concatenate([piece.values for piece in pieces])
    return Series(pieces[0].labels, times, values)


def _series(labels: Any, points: Sequence[Sequence[Any]]) -> Series:
    times: NDArray[np.float64] = np.array([point[0] for point in points], dtype=np.float64)
    values: NDArray[np.float64] = np.array([float(point[1]) for point in points], np.float64)
    return Series(_labels(labels), times, values)


def _labels(labels: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in labels.items()}


def _target(one: dict[str, Any]) -> ScrapedTarget:
    return ScrapedTarget(
        pool=one["scrapePool"],
        url=one["scrapeUrl"],
        labels=_labels(one["labels"]),
        health=one["health"],
        last_scrape_s=parse_time(one["lastScrape"]),
        last_error=one["lastError"],
        interval_s=parse_duration(one.get("scrapeInterval", "")),
    )
