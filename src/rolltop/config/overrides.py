"""Read what the user wrote, in Hydra's override grammar, before Hydra composes with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolltop.config import simulators, texts
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
    "key=value, +key=value or ~key; a value with anything but plain letters, digits and "
    "- _ . : / % + @ must be in quotes that reach rolltop, \"key='ä = b'\" in a shell"
)
SHOWN_MAX = 120
LENGTH_MAX = 4096
"""Characters of an override: Hydra's parser takes a minute for a list of some thousand numbers."""

_PLAIN_TEXT = re.compile(
    r"(\+{0,2}(?:run\.dir|run\.name|wizard\.log_dir|sim\.file|defines\.filesystem)=)"
    r"([^'\"\[{].*)",
    re.DOTALL,
)
"""Keys whose values are paths and names, and such a value without quotes of its own."""
_INTERPOLATED = re.compile(r"\$\{[^${}]*\}")


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
    for written in overrides:
        text, parsed = _parsed(parser, written)
        key = str(parsed.key_or_group)
        if key in GROUPS:
            groups.append(_group_override(text, parsed))
        elif key == "sim.file" and not parsed.is_delete():
            sim_file = _resolved(cwd / str(parsed.value()))
        else:
            values.append(_value_override(text, key))
    groups.append(_simulator(groups, sim_file, known_sims))
    return Request(tuple(dict.fromkeys(groups)), tuple(values), sim_file)


def _resolved(sim_file: Path) -> Path:
    """Return where the description lies, links followed: what it names lies beside it."""
    try:
        found = sim_file.resolve()
    except RuntimeError:  # what pathlib makes of ELOOP
        raise ConfigError(
            f"sim.file: {sim_file} cannot be read: its links lead in a circle",
            hint="name the file itself",
        ) from None
    fault = texts.fault_of(str(found))
    if fault is not None:
        raise ConfigError(f"sim.file: {str(found)!r} {fault}", hint="rename the folder it lies in")
    return found


def _parsed(parser: OverridesParser, written: str) -> tuple[str, Override]:
    """Return the override as Hydra can take it, and what it says."""
    _refuse_what_is_no_override(written)
    text = written
    parsed = _understood(parser, text)
    if parsed is None:
        text = _quoted(written) or ""
        parsed = _understood(parser, text) if text else None
    if parsed is None:
        what = "cannot be read" if "=" in written else "has no value"
        raise ConfigError(f"override {_shown(written)} {what}", hint=GRAMMAR)
    _refuse_what_is_not_ours(written, parsed)
    return text, parsed


def _understood(parser: OverridesParser, text: str) -> Override | None:
    from hydra.errors import HydraException

    try:
        return parser.parse_override(text)
    except (HydraException, RecursionError, ValueError):  # ValueError: thousands of digits
        return None


def _quoted(text: str) -> str | None:
    """Return the override with its value in quotes, None if it may mean anything but plain text.

    A home directory with an umlaut or a space in it is no reason to learn Hydra's grammar.
    """
    found = _PLAIN_TEXT.fullmatch(text)
    if (
        found is None
        or "${" in _INTERPOLATED.sub("", found[2])
        or found[2].endswith(("'", '"', "\\"))
    ):
        return None
    return f"{found[1]}'{_escaped(found[2])}'"


def _escaped(value: str) -> str:
    """Return it for between quotes; backslashes are doubled only where they precede a quote."""
    return re.sub(r"(\\*)'", lambda found: found[1] * 2 + "\\'", value)


def _refuse_what_is_no_override(text: str) -> None:
    fault = texts.fault_of(text)
    if fault is not None:
        raise ConfigError(f"override {_shown(text)} {fault}")
    if len(text) > LENGTH_MAX:
        raise ConfigError(
            f"override {_shown(text)} has {len(text):,} characters, "
            f"at most {LENGTH_MAX:,} are read",
            hint="describe what is this large in a topology or in sim.file",
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}...")


def _refuse_what_is_not_ours(text: str, parsed: Override) -> None:
    key = str(parsed.key_or_group)
    if not key:
        raise ConfigError(f"override {_shown(text)} has no key", hint=GRAMMAR)
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        raise ConfigError(f"override {_shown(text)}: settings of Hydra itself have no effect here")
    if parsed.package is not None:
        raise ConfigError(
            f"override {_shown(text)}: groups cannot be moved", hint=f"write {key}=..."
        )
    if parsed.is_sweep_override():
        raise ConfigError(
            f"override {_shown(text)} has several values, a run has one",
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
            f"override {_shown(text)}: {group} is always one of its options",
            hint=f"write {group}=NAME",
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
