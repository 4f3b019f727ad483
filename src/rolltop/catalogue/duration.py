"""Times as Prometheus writes them."""

from __future__ import annotations

from rolltop.errors import ConfigError


def duration(seconds: float) -> str:
    """Return seconds as Prometheus writes them: ``5s``, and ``250ms`` below its whole seconds.

    Raises:
        ConfigError: They are fewer than a millisecond, or not a number.
    """
    milliseconds = round(seconds * 1000) if abs(seconds) < float("inf") else 0
    if milliseconds < 1:
        raise ConfigError(
            f"an interval of {seconds} s is too short for Prometheus", hint="0.001 s is the least"
        )
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
