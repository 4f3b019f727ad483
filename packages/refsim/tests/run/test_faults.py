from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolltop_refsim.faults import Fault, FaultsError, parse_faults, read_fault

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FAULT = st.fixed_dictionaries(
    {},
    optional={
        "delay_ms": st.floats(0, 1000) | st.integers(0, 1000) | st.none(),
        "fail_ratio": st.floats(0, 1),
        "fail_method": st.none() | st.text(),
        "crash_after": st.none() | st.integers(1, 10**6),
    },
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), FAULT))
def test_what_is_by_the_contract_is_taken_as_it_is(raw: dict[str, dict[str, object]]) -> None:
    faults = parse_faults(raw)
    assert faults.keys() == raw.keys()
    for service, given_keys in raw.items():
        for key, value in given_keys.items():
            assert getattr(faults[service], key) == (
                value if value is not None else getattr(Fault(), key)
            )


@settings(deadline=None)
@given(JSON)
def test_anything_else_is_refused_and_never_breaks(raw: object) -> None:
    try:
        faults = parse_faults(raw)
    except FaultsError:
        return
    assert isinstance(raw, dict)
    assert all(isinstance(fault, Fault) for fault in faults.values())


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([], "an object of faults"),
        ({"driver": 3}, "driver: an object"),
        ({"driver": {"delay": 1}}, "unknown key 'delay'; known are delay_ms"),
        ({"driver": {"delay_ms": -1}}, "driver.delay_ms"),
        ({"driver": {"delay_ms": True}}, "driver.delay_ms"),
        ({"driver": {"fail_ratio": 1.5}}, "driver.fail_ratio"),
        ({"driver": {"fail_ratio": float("nan")}}, "driver.fail_ratio"),
        ({"driver": {"fail_method": 1}}, "driver.fail_method"),
        ({"driver": {"crash_after": 0}}, "driver.crash_after"),
        ({"driver": {"crash_after": True}}, "driver.crash_after"),
    ],
)
def test_an_error_names_the_place(raw: object, words: str) -> None:
    with pytest.raises(FaultsError, match=words):
        parse_faults(raw)


def test_a_service_reads_its_own_fault(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps({"driver": {"delay_ms": 60}}))
    assert read_fault(path, "driver") == Fault(delay_ms=60.0)
    assert read_fault(path, "renderer") == Fault()
    assert read_fault(None, "driver") == Fault()


@pytest.mark.parametrize("content", [None, "{", "\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "faults.json"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FaultsError, match=r"faults\.json"):
        read_fault(path, "driver")


def failures(fault: Fault, method: str = "drive") -> list[tuple[int, int, int]]:
    return [
        (seed, attempt, step)
        for seed in range(20)
        for attempt in (1, 2, 3)
        for step in range(100)
        if fault.fails(method, scene="road", seed=seed, attempt=attempt, step=step)
    ]


def test_failures_are_as_many_as_asked_for_and_the_same_every_time() -> None:
    fault = Fault(fail_ratio=0.03, fail_method="drive")
    failed = failures(fault)
    assert failed == failures(fault)
    assert 0.02 < len(failed) / 6000 < 0.04
    assert len({attempt for _, attempt, _ in failed}) == 3
    # The very places are fixed: another machine, another Python, another placement agree.
    assert failed[:3] == [(0, 1, 0), (0, 1, 9), (0, 1, 21)]


def test_only_the_named_method_fails() -> None:
    assert failures(Fault(fail_ratio=1.0, fail_method="drive"), "submit_route") == []
    assert len(failures(Fault(fail_ratio=1.0), "submit_route")) == 6000
    assert failures(Fault()) == []
