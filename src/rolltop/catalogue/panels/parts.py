"""PromQL and reasons that several panels share."""

from __future__ import annotations

from rolltop.catalogue.panel import PanelQuery

NO_STEP = "no worker recorded a step"
NO_CALL = "no worker recorded a call to a service"
NO_SERVER_TIME = "no service says how long a call waited and was served"


def read_off(factor: float, low: str, high: str) -> str:
    """Return how far a percentile may be off that is read off buckets, not off the durations.

    Args:
        factor: widest ratio of neighbouring bounds between ``low`` and ``high``.
        low: bound from which on it holds, with its unit.
        high: bound up to which it holds, with its unit.
    """
    return f"A percentile is read off buckets: within a factor of {factor:g} from {low} to {high}."


def slope(series: str, matchers: str = "") -> str:
    """Return by how much a counter rises per second: the least-squares slope over the window.

    Not ``rate()``, which divides by the whole window also where a series fills but a part of it: it
    shows a warm-up of that length at the start of every run, and shares that do not add up to one.
    The slope takes the samples that are there at their times. It knows no restart of a counter; a
    run's processes are not restarted, one that ends ends the run.
    """
    selector = f"{matchers},$run" if matchers else "$run"
    return f"deriv({series}{{{selector}}}[$window])"


def quantiles(series: str) -> tuple[PanelQuery, ...]:
    """Return mean, median and 95th percentile of a histogram over the window."""
    buckets = f"sum by (le) ({slope(f'{series}_bucket')})"
    mean = f"sum({slope(f'{series}_sum')}) / (sum({slope(f'{series}_count')}) > 0)"
    return (
        PanelQuery(mean, "mean"),
        PanelQuery(f"histogram_quantile(0.5, {buckets})", "median"),
        PanelQuery(f"histogram_quantile(0.95, {buckets})", "95th percentile"),
    )


def mean_by_service(series: str) -> PanelQuery:
    """Return the mean of a histogram over the window, per service."""
    return PanelQuery(
        f"sum by (service) ({slope(f'{series}_sum')})"
        f" / (sum by (service) ({slope(f'{series}_count')}) > 0)",
        "{service}",
    )


def p95_by_service(series: str) -> PanelQuery:
    """Return the 95th percentile of a histogram over the window, per service."""
    return PanelQuery(
        f"histogram_quantile(0.95, sum by (le, service) ({slope(f'{series}_bucket')}))",
        "{service}",
    )


def so_far(series: str, matchers: str = "", *, by: str = "") -> str:
    """Return a counter's count since the start; that of a worker that has left still counts.

    Not ``increase()``, which does not count what a series has when it is first seen: one that
    appears at the first use begins with what it was used for.
    """
    grouped = f"sum by ({by})" if by else "sum"
    selector = f"{matchers},$run" if matchers else "$run"
    return f"{grouped} (last_over_time({series}{{{selector}}}[$range]))"


def mean_so_far(series: str, *, by: str = "") -> str:
    """Return the mean of a histogram since the start; absent where it has no observation."""
    return f"{so_far(f'{series}_sum', by=by)} / ({so_far(f'{series}_count', by=by)} > 0)"


def p95_so_far(series: str, *, by: str = "") -> str:
    """Return the 95th percentile of a histogram since the start."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile(0.95, {so_far(f'{series}_bucket', by=labels)})"


def at_most(value: str, bound: str) -> str:
    """Return a value without labels, or ``bound`` where it lies above that; as it is without one.

    A percentile is drawn between two bounds of a bucket: it may lie above all that was observed.
    """
    return f"({value} < {bound}) or ({bound} < {value}) or {value}"


def mean_by_endpoint(seconds: str) -> PanelQuery:
    """Return seconds a call over the whole run, per instance."""
    by = "service, endpoint"
    calls = so_far("rolltop_rpc_calls_total", by=by)
    return PanelQuery(f"{so_far(seconds, by=by)} / ({calls} > 0)", "{endpoint}")
