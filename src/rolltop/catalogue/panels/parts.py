"""PromQL and reasons that several panels share."""

from __future__ import annotations

from rolltop.catalogue.panel import PanelQuery

NO_STEP = "no worker recorded a step"
NO_CALL = "no worker recorded a call to a service"
NO_SERVER_TIME = "no service says how long a call waited and was served"


def quantiles(series: str, *, by_service: bool = False) -> tuple[PanelQuery, ...]:
    """Return mean, median and 95th percentile of a histogram over the window."""
    by = " by (service)" if by_service else ""
    le = "le, service" if by_service else "le"
    legend = "{service} " if by_service else ""
    rate = f"sum by ({le}) (rate({series}_bucket{{$run}}[$window]))"
    mean = (
        f"sum{by} (rate({series}_sum{{$run}}[$window]))"
        f" / sum{by} (rate({series}_count{{$run}}[$window]))"
    )
    return (
        PanelQuery(mean, f"{legend}mean"),
        PanelQuery(f"histogram_quantile(0.5, {rate})", f"{legend}median"),
        PanelQuery(f"histogram_quantile(0.95, {rate})", f"{legend}95th percentile"),
    )


def mean_by_service(series: str) -> PanelQuery:
    """Return the mean of a histogram over the window, per service."""
    return PanelQuery(
        f"sum by (service) (rate({series}_sum{{$run}}[$window]))"
        f" / (sum by (service) (rate({series}_count{{$run}}[$window])) > 0)",
        "{service}",
    )


def p95_by_service(series: str) -> PanelQuery:
    """Return the 95th percentile of a histogram over the window, per service."""
    return PanelQuery(
        f"histogram_quantile(0.95, sum by (le, service) (rate({series}_bucket{{$run}}[$window])))",
        "{service}",
    )


def mean_by_endpoint(seconds: str) -> PanelQuery:
    """Return seconds a call over the whole run, per instance."""
    return PanelQuery(
        f"sum by (service, endpoint) (increase({seconds}{{$run}}[$range]))"
        " / (sum by (service, endpoint) (increase(rolltop_rpc_calls_total{$run}[$range])) > 0)",
        "{endpoint}",
    )


def so_far(series: str, matchers: str = "", *, by: str = "") -> str:
    """Return a counter's count so far; that of a worker that has left still counts."""
    grouped = f"sum by ({by})" if by else "sum"
    selector = f"{matchers},$run" if matchers else "$run"
    return f"{grouped} (last_over_time({series}{{{selector}}}[$hold]))"


def mean_so_far(series: str, *, by: str = "") -> str:
    """Return the mean of a histogram since the start; absent where it has no observation."""
    return f"{so_far(f'{series}_sum', by=by)} / ({so_far(f'{series}_count', by=by)} > 0)"


def p95_so_far(series: str) -> str:
    """Return the 95th percentile of a histogram since the start."""
    return f"histogram_quantile(0.95, {so_far(f'{series}_bucket', by='le')})"
