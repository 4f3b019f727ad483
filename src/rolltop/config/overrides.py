"""Read what the user wrote, in Hydra's override grammar, before Hydra composes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.config import simulators
from rolltop.config.complaints import is_at_or_below
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import Override

GROUPS = ("deploy", "topology", "sim", "site")
SIM_OF_FILE = "__file__"
"""The option of the group ``sim`` that stands for ``sim.file``."""
GRAMMAR = (
    "key=value, +key=value or ~key; quote a value that holds any of , = [ ] { } as in key='a,b'"
)


@dataclass(frozen=True)
class Request:
    """Overrides that Hydra can take, those on groups apart; the simulator's file, if any."""

    groups: tuple[str, ...]
    values: tuple[str, ...]
    sim_file: Path | None


def read(overrides: Sequence[str], cwd: Path, known_sims: tuple[str, ...]) -> Request:
    """Return what is asked for, with a simulator in any case.

    Args:
        overrides: As the user wrote them.
        cwd: The directory that ``sim.file`` starts from.
        known_sims: What ``sim=`` can be.

    Raises:
        ConfigError: An override cannot be read, or has no place here.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create()
    groups, values = [], []
    sim_file: Path | None = None
    for text in overrides:
        parsed = _parsed(parser, text)
        key = str(parsed.key_or_group)
        if key in GROUPS:
            groups.append(_group_override(text, parsed))
        elif key == "sim.file" and not parsed.is_delete():
            sim_file = (cwd / str(parsed.value())).resolve()
        else:
            values.append(_value_override(text, key))
    groups.append(_simulator(groups, sim_file, known_sims))
    return Request(tuple(dict.fromkeys(groups)), tuple(values), sim_file)


def _parsed(parser: OverridesParser, text: str) -> Override:
    from hydra.errors import HydraException

    try:
        parsed = parser.parse_override(text)
    except HydraException:
        what = "cannot be read" if "=" in text else "has no value"
        raise ConfigError(f"override {text!r} {what}", hint=GRAMMAR) from None
    _refuse_what_is_not_ours(text, parsed)
    return parsed


def _refuse_what_is_not_ours(text: str, parsed: Override) -> None:
    key = str(parsed.key_or_group)
    if not key:
        raise ConfigError(f"override {text!r} has no key", hint=GRAMMAR)
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        raise ConfigError(f"override {text!r}: settings of Hydra itself have no effect here")
    if parsed.package is not None:
        raise ConfigError(f"override {text!r}: groups cannot be moved", hint=f"write {key}=...")
    if parsed.is_sweep_override():
        raise ConfigError(
            f"override {text!r} has several values, a run has one",
            hint=f"a list is written {key}=[1,2], text with a comma {key}='1,2'",
        )
    if is_at_or_below(key, "wizard") and key != "wizard.log_dir":
        raise ConfigError(
            f"unknown key {key}", hint="of the wizard's keys there is only wizard.log_dir: run.dir"
        )


def _group_override(text: str, parsed: Override) -> str:
    group, value = parsed.key_or_group, parsed.value()
    if parsed.is_delete() or parsed.is_add() or not isinstance(value, str | int) or value == "":
        raise ConfigError(
            f"override {text!r}: {group} is always one of its options", hint=f"write {group}=NAME"
        )
    return f"{group}={value}"


def _value_override(text: str, key: str) -> str:
    rest = text.lstrip("+~")
    sign = text.removesuffix(rest)
    if key == "wizard.log_dir":
        return f"{sign}run.dir{rest.removeprefix(key)}"
    if is_at_or_below(key, "sim.faults") and sign != "~":
        return f"++{rest}"  # every service can have a fault, none is listed before it has one
    return text


def _simulator(groups: Sequence[str], sim_file: Path | None, known_sims: tuple[str, ...]) -> str:
    chosen = next((text for text in groups if text.startswith("sim=")), None)
    if sim_file is not None and chosen is not None:
        raise ConfigError("sim=... and sim.file=... both name the simulator", hint="leave one out")
    if sim_file is not None:
        return f"sim={SIM_OF_FILE}"
    return chosen or f"sim={simulators.default_name(known_sims)}"
