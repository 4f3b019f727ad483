from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rolltop.config import RunConfig, compose

if TYPE_CHECKING:
    from collections.abc import Callable

    Compose = Callable[..., RunConfig]

SHIPPED = {
    # service: (gpus, replicas, n); the table of the specification
    "1gpu": {
        "renderer": ((0,), 1, 4),
        "driver": ((0,), 1, 4),
        "physics": ((0,), 1, 4),
        "controller": ((None,), 1, 4),
        "trafficsim": ((0,), 1, 4),
    },
    "2gpu": {
        "renderer": ((1,), 1, 12),
        "driver": ((0,), 3, 4),
        "physics": ((0, 1), 1, 6),
        "controller": ((None,), 6, 2),
        "trafficsim": ((0, 1), 1, 6),
    },
    "8gpu_12rollouts": {
        "renderer": ((0, 1, 2, 3), 1, 3),
        "driver": ((4, 5, 6, 7), 1, 3),
        "physics": ((2, 3, 4, 5, 6, 7), 1, 2),
        "controller": ((None,), 2, 6),
        "trafficsim": ((0, 1), 1, 6),
    },
    "8gpu_64rollouts": {
        "renderer": ((0, 1, 2, 3), 1, 16),
        "driver": ((4, 5, 6, 7), 8, 2),
        "physics": ((4, 5, 6, 7), 4, 4),
        "controller": ((None,), 16, 4),
        "trafficsim": ((0, 1, 2, 3), 1, 16),
    },
}
WORKERS = {"1gpu": 1, "2gpu": 4, "8gpu_12rollouts": 1, "8gpu_64rollouts": 8}
CACHES = {"1gpu": 5, "2gpu": 13, "8gpu_12rollouts": 16, "8gpu_64rollouts": 17}
CAPACITIES = {"1gpu": 4, "2gpu": 12, "8gpu_12rollouts": 12, "8gpu_64rollouts": 64}


@pytest.mark.parametrize("sim", ["driving", "tiny"])
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_topologies_are_those_of_the_specification(
    name: str, sim: str, tmp_path: Path
) -> None:
    config = compose([f"topology={name}", f"sim={sim}"], cwd=tmp_path, count_gpus=lambda: 0)
    topology = config.topology()
    assert {
        s.service: (s.gpus, s.replicas_per_container, s.n_concurrent_rollouts)
        for s in topology.services
    } == SHIPPED[name]
    assert topology.nr_workers == WORKERS[name]
    assert topology.capacity == CAPACITIES[name]
    assert {s.capacity for s in topology.services} == {CAPACITIES[name]}
    assert config.defines["nre_cache_size"] == CACHES[name]


def test_the_reference_simulation_is_the_default_and_turns_traffic_on(tmp_path: Path) -> None:
    config = compose([], cwd=tmp_path, count_gpus=lambda: 0)
    assert config.sim.name == "driving"
    assert config.topology_name == "1gpu"
    assert not config.runtime.endpoints["trafficsim"].skip
    assert config.cache_size("renderer") == 5


def test_a_public_topology_skips_traffic_for_who_does_not_ask_for_it(tmp_path: Path) -> None:
    description = tmp_path / "mine.yaml"
    services = ("renderer", "driver", "physics", "controller")
    command = {"command": ["x", "{port}"]}
    mine = {
        "name": "mine",
        "services": dict.fromkeys(services, command),
        "worker": {"command": ["w"]},
        "steps_per_rollout": 9,
    }
    description.write_text(yaml.safe_dump(mine))
    config = compose(["sim.file=mine.yaml"], cwd=tmp_path, count_gpus=lambda: 0)
    assert config.runtime.endpoints["trafficsim"].skip
    assert config.sim.name == "mine"
    assert config.sim.file == description
    assert config.runtime.steps_per_rollout == 9
    assert config.run.name == "mine-1gpu"


def test_the_users_word_on_traffic_is_the_last(tmp_path: Path) -> None:
    config = compose(
        ["sim=tiny", "runtime.endpoints.trafficsim.skip=true"], cwd=tmp_path, count_gpus=lambda: 0
    )
    assert config.runtime.endpoints["trafficsim"].skip


def test_the_only_simulator_there_is_need_not_be_named(composed: Compose) -> None:
    assert composed().sim.name == "toy"


def test_the_run_directory_is_named_by_time_name_and_uuid(
    composed: Compose, tmp_path: Path
) -> None:
    assert composed().run.dir == tmp_path / "runs" / "20260304T050607Z-toy-small-11111111"


@pytest.mark.parametrize(
    "name", ["ü", "a b", "a=b", "o'brien", "(copy)", "100%!", "#1", "a]b", "日本", "it's \\'s"]
)
def test_a_path_is_what_the_user_wrote(name: str, composed: Compose) -> None:
    assert composed(f"run.dir=/x/{name}").run.dir == Path("/x") / name
    assert composed(f"wizard.log_dir=/x/{name}/y").run.dir == Path("/x") / name / "y"


def test_a_path_that_hydra_cannot_read_may_be_the_simulators(
    composed: Compose, tmp_path: Path
) -> None:
    toy = Path(__file__).parent / "sims" / "five.yaml"
    description = tmp_path / "jürgen's (sim) = 5.yaml"
    description.write_bytes(toy.read_bytes())
    config = composed(f"sim.file={description}", "topology=1gpu", "run.dir=/ü/${run.seed}")
    assert config.sim.file == description
    assert config.run.dir == Path("/ü/0")


def test_paths_start_from_the_working_directory(composed: Compose, tmp_path: Path) -> None:
    assert composed("run.dir=a/b").run.dir == tmp_path / "a" / "b"
    assert composed("run.dir=/a/b").run.dir == Path("/a/b")
    assert composed("wizard.log_dir=c").run.dir == tmp_path / "c"
    assert composed().defines["filesystem"] == str(tmp_path / "data")
    assert composed("defines.filesystem=/lustre").defines["filesystem"] == "/lustre"


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("runtime.nr_workers=4", "runtime.nr_workers", 4),
        ("++runtime.nr_workers=4", "runtime.nr_workers", 4),
        ("services.renderer.gpus=[1,1,0]", "services.renderer.gpus", [1, 1, 0]),
        ("services.renderer.gpus=null", "services.renderer.gpus", None),
        ("+defines.list=[1,'a,b']", "defines.list", [1, "a,b"]),
        ("+defines.deep={a: {b: c}}", "defines.deep.a.b", "c"),
        ("+defines.copy=${runtime.nr_workers}", "defines.copy", 2),
        ('run.name="x-1"', "run.name", "x-1"),
        ("run.name=7", "run.name", "7"),
        ("sim.faults.brain.delay_ms=60", "sim.faults.brain.delay_ms", 60),
        ("+sim.faults.brain.delay_ms=60", "sim.faults.brain.delay_ms", 60),
        ("sim.faults={brain: {fail_ratio: 0.5}}", "sim.faults.brain.fail_ratio", 0.5),
        ("+sim.services.brain.env.A=1", "sim.services.brain.env.A", "1"),
        ("ports.range=21000-21999", "ports.range", "21000-21999"),
        ("telemetry.worker_interval_s=2", "telemetry.worker_interval_s", 2.0),
        ("runtime.steps_per_rollout=3", "runtime.steps_per_rollout", 3),
        (f"run.uuid={'0' * 32}", "run.uuid", "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_overrides_speak_hydras_grammar(
    override: str, path: str, value: object, composed: Compose
) -> None:
    assert composed(override).lookup(path) == value


def test_a_key_can_be_removed(composed: Compose) -> None:
    assert composed("~runtime.max_rollout_retries").runtime.max_rollout_retries == 2
    assert "x" not in composed("+defines.x=1", "~defines.x").defines


def test_the_last_of_two_overrides_holds(composed: Compose) -> None:
    assert composed("runtime.rollouts=3", "runtime.rollouts=5").runtime.rollouts == 5


def test_steps_come_from_the_simulator(composed: Compose) -> None:
    assert composed().runtime.steps_per_rollout == 30


def test_numbers_in_a_command_are_text(composed: Compose) -> None:
    renderer = composed("runtime.rollouts=5").sim.services["renderer"]
    assert renderer.command[-1] == "5"
    assert renderer.env["TOY_LEVEL"] == "3"


@pytest.mark.parametrize(("n_gpus", "device"), [(0, "none"), (1, "nvidia"), (2, "nvidia")])
def test_the_device_is_found_out(n_gpus: int, device: str, composed: Compose) -> None:
    config = composed("services.renderer.gpus=[0]", count_gpus=lambda: n_gpus)
    assert config.device == device


def test_without_gpus_any_index_is_a_slot(composed: Compose) -> None:
    config = composed("device=none", "services.renderer.gpus=[17]", count_gpus=lambda: 2)
    assert config.device == "none"


def test_composing_in_threads_does_not_mix_runs(tmp_path: Path) -> None:
    found: dict[int, int] = {}

    def one(n: int) -> None:
        config = compose(["sim=tiny", f"runtime.rollouts={n}"], cwd=tmp_path, count_gpus=lambda: 0)
        found[n] = config.runtime.rollouts

    threads = [threading.Thread(target=one, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(1, 5)}


def test_hydra_is_left_as_it_was_found(composed: Compose, tmp_path: Path) -> None:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    (tmp_path / "config.yaml").write_text("mine: 1\n")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        composed()
        assert hydra_compose("config").mine == 1
    assert not GlobalHydra.instance().is_initialized()


def test_nothing_is_written_and_the_directory_stays(
    composed: Compose, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    composed()
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path


def test_the_resolved_configuration_is_complete(composed: Compose) -> None:
    config = composed("+defines.copy=${run.dir}/x")
    data = yaml.safe_load(config.redacted_yaml())
    assert data["topology"] == "small"
    assert data["defines"]["copy"] == f"{config.run.dir}/x"
    assert "${" not in config.redacted_yaml()


def test_secrets_do_not_reach_the_file(composed: Compose) -> None:
    config = composed("+sim.services.brain.env.API_TOKEN=hunter2hunter2")
    assert config.sim.services["brain"].env["API_TOKEN"] == "hunter2hunter2"
    assert "hunter2" not in config.redacted_yaml()


def test_interpolations_see_the_run(composed: Compose) -> None:
    config = composed("+defines.where=${run.uuid}/${defines.filesystem}")
    assert config.defines["where"] == f"{config.run.uuid}/{config.defines['filesystem']}"


def test_a_folder_with_odd_characters_is_searched(tmp_path: Path) -> None:
    odd = tmp_path / "it's a, [b] {c} = d"
    (odd / "sim").mkdir(parents=True)
    toy = Path(__file__).parent / "sims" / "conf"
    (odd / "sim" / "odd.yaml").write_text((toy / "sim" / "toy.yaml").read_text())
    (odd / "topology").symlink_to(toy / "topology")
    config = compose(["topology=small"], cwd=tmp_path, count_gpus=lambda: 0, folders={"odd": odd})
    assert config.sim.name == "toy"


@settings(max_examples=10, deadline=None)
@given(
    gpus=st.lists(st.integers(0, 15), min_size=1, max_size=9),
    replicas=st.integers(1, 9),
    n=st.integers(1, 64),
)
def test_capacity_is_containers_times_replicas_times_concurrency(
    gpus: list[int], replicas: int, n: int
) -> None:
    config = compose(
        [
            "sim=tiny",
            f"services.renderer.gpus={gpus}".replace(" ", ""),
            f"services.renderer.replicas_per_container={replicas}",
            f"runtime.endpoints.renderer.n_concurrent_rollouts={n}",
        ],
        cwd=Path(os.sep),
        count_gpus=lambda: 0,
    )
    placed = {s.service: s for s in config.topology().services}
    assert placed["renderer"].n_instances == len(gpus) * replicas
    assert placed["renderer"].capacity == len(gpus) * replicas * n
    assert config.topology().capacity == min(4, len(gpus) * replicas * n)
