"""Faults on request (``sim.faults``): delays, failures and crashes, the same for the same seed.

The file is a JSON object, service -> fault; ``{}`` means none::

    {"driver": {"delay_ms": 60, "fail_ratio": 0.03, "fail_method": "drive", "crash_after": null}}
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

CRASH_EXIT_STATUS = 3


class FaultsError(ValueError):
    """A faults file that cannot be used; the message names the file, the place and the cure."""


@dataclass(frozen=True)
class Fault:
    """What one service does wrong."""

    delay_ms: float = 0.0
    """Held in the service's slot at every call, in milliseconds, without burning CPU."""
    fail_ratio: float = 0.0
    """The part of the calls that fail, 0 to 1."""
    fail_method: str | None = None
    """The method whose calls fail; None: every method's."""
    crash_after: int | None = None
    """How many calls are served before the process exits with status 3."""

    def fails(self, method: str, *, scene: str, seed: int, attempt: int, step: int) -> bool:
        """Whether this call fails: a pure function of its arguments, alike on every machine."""
        if self.fail_ratio <= 0 or self.fail_method not in (None, method):
            return False
        text = f"{method}\0{scene}\0{seed}\0{attempt}\0{step}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self.fail_ratio * 2.0**64


def read_fault(path: Path | None, service: str) -> Fault:
    """Read the fault of one service; raises :class:`FaultsError` for a file that cannot be used."""
    if path is None:
        return Fault()
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FaultsError(f"{path}: cannot be read as JSON: {error}") from error
    return parse_faults(raw, where=str(path)).get(service, Fault())


def parse_faults(raw: Any, *, where: str = "sim.faults") -> dict[str, Fault]:
    """Turn the JSON object into faults by service; an unknown key is an error."""
    if not isinstance(raw, dict):
        raise FaultsError(f"{where}: an object of faults by service is wanted, not {raw!r}")
    return {service: _parse_fault(fault, f"{where}: {service}") for service, fault in raw.items()}


def _parse_fault(raw: Any, where: str) -> Fault:
    if not isinstance(raw, dict):
        raise FaultsError(f"{where}: an object is wanted, not {raw!r}")
    known = [f.name for f in fields(Fault)]
    for key in raw:
        if key not in known:
            raise FaultsError(f"{where}: unknown key {key!r}; known are {', '.join(known)}")
    method = raw.get("fail_method")
    if method is not None and not isinstance(method, str):
        raise FaultsError(f"{where}.fail_method: a method's name is wanted, not {method!r}")
    crash_after = raw.get("crash_after")
    if crash_after is not None and (type(crash_after) is not int or crash_after < 1):
        raise FaultsError(f"{where}.crash_after: a whole number from 1, not {crash_after!r}")
    return Fault(
        delay_ms=_number(raw, "delay_ms", where, most=3_600_000.0),
        fail_ratio=_number(raw, "fail_ratio", where, most=1.0),
        fail_method=method,
        crash_after=crash_after,
    )


def _number(raw: dict[str, Any], key: str, where: str, *, most: float) -> float:
    value = raw.get(key)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise FaultsError(f"{where}.{key}: a number from 0 to {most:g} is wanted, not {value!r}")
    return float(value)
