"""What the tests of rolltop_instrument share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from rolltop_instrument import WorkerTelemetry, _guest

Read = Callable[..., float | None]


@pytest.fixture(autouse=True)
def _faults_show() -> Iterator[None]:
    """A fault of ours fails the test, where a host would only see a line in its log."""
    _guest.reraise_faults(True)
    yield
    _guest.reraise_faults(False)


@pytest.fixture
def faults_are_hidden() -> None:
    """As in a host."""
    _guest.reraise_faults(False)


async def until(condition: Callable[[], object]) -> None:
    """Return when ``condition()`` holds; ten seconds are too long."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for knows no events
            await asyncio.sleep(0.005)


@pytest.fixture(name="until")
def _until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """``await until(lambda: ...)``."""
    return until


def page(
    text: str, *, openmetrics: bool = False
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    parse = parse_openmetrics if openmetrics else parse_text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.fixture
def parsed() -> Callable[..., dict[tuple[str, frozenset[tuple[str, str]]], float]]:
    """Parses a page with prometheus_client's own parsers."""
    return page


@pytest.fixture
def value() -> Read:
    """``value(telemetry, name, **labels)``: a sample of the page without ``worker_id``, or None."""

    def read(telemetry: WorkerTelemetry, name: str, **labels: str) -> float | None:
        key = (name, frozenset({"worker_id": telemetry.worker_id, **labels}.items()))
        return page(telemetry.render()).get(key)

    return read
