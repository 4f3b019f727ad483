"""Every ``bad/*.bad.yaml`` is refused with the words that name the place and the cure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rolltop.config import compose, validate
from rolltop.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rolltop.config import RunConfig

BAD = Path(__file__).parent / "bad"
TOPOLOGY = (
    "~services.renderer",
    "~runtime.endpoints.renderer",
    "~services.brain",
    "~runtime.endpoints.brain",
    "+services.a.gpus=[0]",
    "+runtime.endpoints.a.n_concurrent_rollouts=1",
)
GOOD = """\
name: x
services: {a: {command: [a, "{port}"]}}
worker: {command: [w]}
steps_per_rollout: 3
"""
EXPECTED = {
    "no_name": "sim.name is missing",
    "no_services": "sim.services is missing",
    "empty_services": "sim.services: must be at least 1 long, not {}",
    "no_worker": "sim.worker is missing",
    "no_steps": "steps_per_rollout",
    "unknown_key": "unknown key sim.stepz",
    "unknown_service_key": "unknown key sim.services.a.comand; did you mean sim.services.a.co",
    "shell_line": "sim.services.a.command: must be a list",
    "empty_command": "sim.worker.command: must be at least 1 long",
    "null_argument": "sim.worker.command[1]: must be text",
    "unknown_template": "sim.services.a.command: unknown template {prot}; did you mean {port}?",
    "template_of_workers_in_a_service": "sim.services.a.command: unknown template {worker_id}",
    "template_in_env": "sim.worker.env.A: unknown template {port}",
    "scheduler_without_one": "sim.worker.command: unknown template {scheduler}",
    "page_without_metrics": "unknown template {metrics_port}",
    "unknown_health": "health.kind: must be 'none', 'tcp', 'http' or 'grpc', not 'htpp'",
    "health_path": "sim.services.a.health.path: must be of the form ^/",
    "timeout_zero": "sim.services.a.start_timeout_s: must be above 0, not 0",
    "timeout_negative": "must be above 0, not -5",
    "oom_pattern": "sim.services.a.oom_patterns: '(' is no regular expression",
    "steps_zero": "must be at least 1, not 0",
    "steps_text": "must be a whole number, not 'many'",
    "scene_without_index": "sim.scenes.name: 'road' has no {index}",
    "scene_with_another_field": "sim.scenes.name: '{number}' cannot be filled with {index}",
    "scene_that_leaves_the_folder": "sim.scenes.name: '../0' cannot be the name of a directory",
    "no_scenes": "sim.scenes.count: must be at least 1, not 0",
    "unknown_knob": "sim.knobs: 'cache' is no knob: there are nr_workers and gpus.<service>",
    "knob_without_path": "sim.knobs.cache_size.a: defines.nowhere is no path of this configuration",
    "knob_on_text": "defines.filesystem: a cache size must be a whole number above 0",
    "service_name": "must be made of letters",
    "service_called_worker": "'worker' cannot be the name of a service",
    "skip": "sim.skip.trafic: neither the topology nor the simulator has that service",
    "devices": "sim.devices is not supported by this version",
    "launch": "sim.launch is not supported by this version",
    "not_yaml": "line 2: ",
    "duplicate_key": "line 5: found duplicate key name",
    "a_list": "does not describe a simulator",
    "empty": "does not describe a simulator",
    "text": "does not describe a simulator",
    "interpolation": "sim.worker.command[1]: ${runtime.nowhere} names no key of the configuration",
}


def test_every_case_has_its_words() -> None:
    assert {file.name.removesuffix(".bad.yaml") for file in BAD.iterdir()} == EXPECTED.keys()


WHOLE = (
    "not_yaml",
    "duplicate_key",
    "a_list",
    "empty",
    "text",
    "interpolation",
    "unknown_template",
    "no_name",
)
"""Refused before the schema is asked, or two of the others: from the command line on."""


@pytest.mark.parametrize("case", WHOLE)
def test_a_bad_file_is_refused(case: str, composed: Callable[..., RunConfig]) -> None:
    with pytest.raises(ConfigError) as caught:
        composed(f"sim.file={BAD / case}.bad.yaml", *TOPOLOGY)
    assert EXPECTED[case] in caught.value.message
    assert "\n" not in caught.value.message


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a whole configuration around a good description, as plain data."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "good.yaml").write_text(GOOD)
    config = compose(
        ["sim.file=good.yaml", "topology=small", *TOPOLOGY],
        cwd=folder,
        count_gpus=lambda: 0,
        folders={"toy": BAD.parent / "sims" / "conf"},
    )
    data: dict[str, Any] = yaml.safe_load(config.redacted_yaml())
    return data


@pytest.mark.parametrize("case", sorted(EXPECTED.keys() - set(WHOLE[:6])))
def test_a_bad_description_is_refused(case: str, plain: dict[str, Any]) -> None:
    bad = yaml.safe_load((BAD / f"{case}.bad.yaml").read_text())
    with pytest.raises(ConfigError) as caught:
        validate({**plain, "sim": bad})
    assert EXPECTED[case] in caught.value.message
    assert "\n" not in caught.value.message


def test_a_good_one_of_the_kind_is_taken(
    composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    assert composed("sim.file=good.yaml", *TOPOLOGY).sim.name == "x"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00x", b"name: \xff"])
def test_bytes_that_are_no_text_are_refused(
    content: bytes, composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    (tmp_path / "binary.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=r"sim\.file: .*binary\.yaml"):
        composed("sim.file=binary.yaml")


def test_an_installed_description_that_is_not_yaml_names_its_file(
    composed: Callable[..., RunConfig], tmp_path: Path
) -> None:
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim" / "broken.yaml").write_text("a: 1\na: 2\n")
    with pytest.raises(ConfigError, match=r"broken\.yaml, line 2: found duplicate key a"):
        composed("topology=1gpu", folders={"x": tmp_path})
