"""What ``${...}`` stands for is bounded, however it comes to be much."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from omegaconf import Container, OmegaConf

from rolltop.config import resolving
from rolltop.errors import ConfigError
from tests.config.test_bad_descriptions import GOOD, TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rolltop.config import RunConfig

    Compose = Callable[..., RunConfig]


def chain(text: str, *, first: object = "x", levels: int = 40) -> str:
    """A description whose knobs are made of the one before, by ``text`` with ``@`` for its path."""
    lines = [f"  A{n}: {text.replace('@', f'sim.knobs.A{n - 1}')}\n" for n in range(1, levels + 1)]
    return f"{GOOD}knobs:\n  A0: {first}\n{''.join(lines)}"


TOO_MUCH = {
    "doubled": chain("'${@}${@}'"),
    "doubled emptiness": chain("'${@}${@}'", first="''"),
    "by a resolver": chain("'${oc.select:@}${oc.select:@}'", levels=20),
    "by a name that is computed": chain("'${sim.${oc.env:X,knobs}.A0}${@}${@}'"),
    "lists of lists": chain("['${@}', '${@}']", first="[1, 2]", levels=30),
    "a large text": chain("'" + "${@}" * 20 + "'", first="x" * 100_000, levels=1),
    "a large list": chain("['${@}', '${@}']", first=str([1] * 5000), levels=12),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_stands_for_too_much_is_refused(
    case: str, composed: Compose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the first by a tenth of the bound, which takes a tenth of the time."""
    if case != "doubled":
        monkeypatch.setattr(resolving, "CHARACTERS_MAX", resolving.CHARACTERS_MAX // 10)
    (tmp_path / "x.yaml").write_text(TOO_MUCH[case])
    with pytest.raises(ConfigError) as caught:
        composed("sim.file=x.yaml", *TOPOLOGY)
    assert caught.value.message.startswith("sim.knobs.A")
    assert "its ${...} stand for too much" in caught.value.message
    assert caught.value.hint == resolving.HINT


def test_overrides_and_early_values_are_bounded_too(
    composed: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "CHARACTERS_MAX", resolving.CHARACTERS_MAX // 10)
    doubled = [f"+defines.a{n}=${{defines.a{n - 1}}}${{defines.a{n - 1}}}" for n in range(1, 40)]
    with pytest.raises(ConfigError, match=r"run\.name: its \$\{...\} stand for too much"):
        composed("+defines.a0=x", *doubled, "run.name=${defines.a39}")


def test_a_chain_that_is_only_long_says_so(composed: Compose, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(chain("'${@}'", levels=200))
    with pytest.raises(ConfigError, match="leads through too many others"):
        composed("sim.file=x.yaml", *TOPOLOGY)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("'" + "${" * 500 + "a" + "}" * 500 + "'", "nested too deep"),
        ("'" + "${run.seed}" * 1000 + "'", "more than 10000 values"),
        ("&a '" + "${run.seed}" * 300 + "'\n  b: [*a, *a, *a, *a]", "more than 10000 values"),
    ],
)
def test_what_would_be_parsed_for_long_is_not_parsed(
    value: str, words: str, composed: Compose, tmp_path: Path
) -> None:
    (tmp_path / "x.yaml").write_text(f"{GOOD}knobs:\n  a: {value}\n")
    with pytest.raises(ConfigError, match=words):
        composed("sim.file=x.yaml", *TOPOLOGY)


def test_what_is_of_common_size_is_resolved(composed: Compose) -> None:
    doubled = [f"+defines.a{n}=${{defines.a{n - 1}}}${{defines.a{n - 1}}}" for n in range(1, 7)]
    config = composed("+defines.a0=x", *doubled)
    assert config.defines["a6"] == "x" * 2**6


def test_only_this_thread_is_bounded_and_only_for_the_while() -> None:
    methods = ("_resolve_node_interpolation", "_evaluate_custom_resolver")
    before = [getattr(Container, name) for name in methods]
    cfg = OmegaConf.create({"a": "x" * (resolving.CHARACTERS_MAX + 1), "b": "${a}"})
    lengths: list[int] = []
    with resolving.bounded():
        other = threading.Thread(target=lambda: lengths.append(len(cfg.b)))
        other.start()
        other.join()
    assert lengths == [resolving.CHARACTERS_MAX + 1]
    assert [getattr(Container, name) for name in methods] == before


def test_a_default_in_place_of_what_is_too_much_is_no_way_round() -> None:
    cfg = OmegaConf.create({"a": "x" * (resolving.CHARACTERS_MAX + 1), "b": "${a}"})
    with pytest.raises(ConfigError, match="stand for too much"), resolving.bounded():
        assert OmegaConf.select(cfg, "b", default="y", throw_on_resolution_failure=False) == "y"
