"""Our series as a collector of prometheus_client, for a host that serves a page of its own."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from rolltop_instrument._cells import Family, Registry


class _WorkerCollector(Collector):
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[MetricFamily]:
        """All families with samples, as of now."""
        self._registry.refresh()
        for family in self._registry.families.values():
            if len(family):
                yield _converted(family)


def _converted(family: Family) -> MetricFamily:
    metric = family.metric
    converted = MetricFamily(metric.family, metric.help, metric.kind, metric.unit)
    for name, labels, value in family.samples():
        converted.add_sample(name, labels, value)
    return converted


def prometheus_registry(registry: Registry) -> CollectorRegistry:
    """A registry of prometheus_client's with our series and nothing else."""
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(_WorkerCollector(registry))
    return collectors
