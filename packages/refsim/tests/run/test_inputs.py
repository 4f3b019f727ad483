from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolltop_refsim.inputs import InputError, read_endpoints, read_rollouts
from rolltop_refsim.results import RolloutResult, write_result
from rolltop_refsim.scheduler.ledger import Rollout

ONE = {"instance": "x-0", "address": "127.0.0.1:1", "node": "a", "gpu": None, "n_concurrent": 2}
NEEDED = {"renderer": [ONE], "driver": [ONE], "controller": [ONE]}


def test_rollouts_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_text(
        '{"uuid": "a", "scene": "road-0001", "seed": 7, "first_wave": true}\n'
        "\n"
        '{"uuid": "b", "scene": "road-0001", "seed": 18446744073709551615}\n'
    )
    assert read_rollouts(path) == [
        Rollout("a", "road-0001", 7, first_wave=True),
        Rollout("b", "road-0001", 2**64 - 1),
    ]


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", '{"uuid": "a"}', '{"uuid": "a", "scene": "s", "seed": "x"}']
    + [
        json.dumps({"uuid": uuid, "scene": scene, "seed": seed})
        for uuid, scene, seed in [("..", "s", 1), ("a/b", "s", 1), ("a", "", 1), ("a", "s", -1)]
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_text('{"uuid": "a", "scene": "s", "seed": 1}\n' + line)
    with pytest.raises(InputError, match=r"rollouts\.jsonl:2"):
        read_rollouts(path)


@settings(deadline=None)
@given(content=st.binary(max_size=200))
def test_no_content_breaks_the_readers(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("inputs") / "file"
    path.write_bytes(content)
    for read in (read_rollouts, read_endpoints):
        with suppress(InputError):
            read(path)


def test_skipped_services_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.json"
    path.write_text(json.dumps({**NEEDED, "physics": []}))
    endpoints = read_endpoints(path)
    assert sorted(endpoints) == ["controller", "driver", "renderer"]
    assert endpoints["driver"][0].n_concurrent == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [({"drivr": [ONE]}, "unknown: .'drivr'"), ({"driver": []}, "missing: .'driver'")],
)
def test_wrong_services_are_named(tmp_path: Path, change: dict[str, object], words: str) -> None:
    path = tmp_path / "endpoints.json"
    path.write_text(json.dumps({**NEEDED, **change}))
    with pytest.raises(InputError, match=words):
        read_endpoints(path)


def result(**changes: object) -> RolloutResult:
    values: dict[str, object] = {
        "status": "completed",
        "uuid": "u",
        "scene": "road-0001",
        "seed": 1,
        "steps": 5,
        "attempts": 1,
        "first_wave": False,
        "duration_s": 1.5,
        "worker_id": "0",
        "quality": {"max_lateral_error_m": 0.5},
        "error": None,
    }
    return RolloutResult(**{**values, **changes})  # type: ignore[arg-type]


def test_a_result_is_written_whole_and_replaces_an_older_one(tmp_path: Path) -> None:
    write_result(tmp_path, result(status="abandoned"))
    path = write_result(tmp_path, result())
    assert path == tmp_path / "rollouts/road-0001/u/result.json"
    assert json.loads(path.read_text())["status"] == "completed"
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts/road-0001/u"
    (folder / "result.json").mkdir(parents=True)
    with pytest.raises(OSError, match=r"result\.json"):
        write_result(tmp_path, result())
    assert [p.name for p in folder.iterdir()] == ["result.json"]
