from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolltop.config import RunConfig, compose, validate
from rolltop.config.schema.templates import names_in
from rolltop.errors import ConfigError
from rolltop.launch.plan import plan, ports_needed
from rolltop.launch.plan_text import describe_plan, render_plan
from rolltop.model.plan import HealthKind, LaunchPlan, Role
from rolltop.model.run import RunIdentity, RunPaths

UUID = "11111111-2222-3333-4444-555555555555"
STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FOLDERS = {"toy": Path(__file__).parents[1] / "config" / "sims" / "conf"}
GOLDEN = Path(__file__).parents[1] / "golden"


@cache
def composed(*overrides: str) -> RunConfig:
    return compose(
        [*overrides],
        cwd=Path("/work"),
        run_uuid=UUID,
        started=STARTED,
        count_gpus=lambda: 0,
        folders=FOLDERS,
    )


def toy(changes: dict[str, Any] | None = None) -> RunConfig:
    """The toy simulator on its own topology, with some values changed by their paths."""
    data = json.loads(composed("topology=small").model_dump_json(by_alias=True))
    for path, value in (changes or {}).items():
        *above, leaf = path.split(".")
        section = data
        for name in above:
            section = section[name]
        section[leaf] = value
    return validate(data)


def planned(config: RunConfig) -> LaunchPlan:
    identity = RunIdentity(config.run.uuid, config.run.name, "ada", STARTED, slurm_job_id="")
    return plan(
        config,
        identity=identity,
        paths=RunPaths(config.run.dir),
        ports=range(20000, 20000 + ports_needed(config)),
        node="node-1",
        python="/usr/bin/python3",
    )


@pytest.mark.parametrize("name", ["small", "2gpu"])
def test_the_plan_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    changed = [f"topology={name}", "run.dir=/runs/x", "run.name=x"]
    if name == "2gpu":
        changed.append(f"sim.file={FOLDERS['toy'].parent / 'five.yaml'}")
    launch = planned(composed(*changed))
    text = "".join(f"== {file}\n{content}" for file, content in sorted(launch.files.items()))
    text = f"{render_plan(launch)}{text}"
    recorded = GOLDEN / f"plan-{name}.txt"
    if not recorded.exists():
        recorded.write_text(text)
        pytest.fail(f"{recorded} was missing and has been recorded; look at it, and run again")
    assert text == recorded.read_text(), f"if this is meant: rm {recorded}, and run again"


def test_instances_are_numbered_through_containers_and_replicas() -> None:
    launch = planned(toy())
    assert [(p.name, p.gpu) for p in launch.of_role(Role.SERVICE)] == [
        ("renderer-0", 0),
        ("renderer-1", 0),
        ("renderer-2", 1),
        ("brain-0", None),
        ("brain-1", None),
    ]


def test_services_start_before_the_scheduler_and_that_before_workers() -> None:
    roles = [process.role for process in planned(toy()).processes]
    assert roles == [*[Role.SERVICE] * 5, Role.SCHEDULER, *[Role.WORKER] * 2]


def test_templates_are_filled_and_literals_kept() -> None:
    renderer = planned(toy()).processes[0]
    assert renderer.argv[0] == "/usr/bin/python3"
    assert renderer.argv[3] == f"--port={renderer.port}"
    assert renderer.argv[4:13] == (
        "--gpu", "0", "renderer-0", "--slots", "2", "--cache", "7", "--page",
        str(renderer.metrics_port),
    )  # fmt: skip
    assert renderer.argv[13:] == ('{"json": {"stays": true}}', "{literal}", "12")
    assert renderer.env["TOY_DIR"].endswith("/toy")


def test_programs_are_named_from_the_folder_of_their_description() -> None:
    config = toy({"sim.worker.command": ["{sim_dir}/w"], "sim.worker.env": {"X": "{sim_dir}"}})
    worker = planned(config).of_role(Role.WORKER)[0]
    assert worker.argv == (f"{FOLDERS['toy']}/w",)
    assert worker.env["X"] == str(FOLDERS["toy"])


def test_what_was_decided_is_said_with_the_plan() -> None:
    assert "a note" in planned(toy().noting("a note")).warnings


def test_a_cpu_container_has_no_gpu() -> None:
    config = toy({"sim.services.brain.command": ["b", "{port}", "gpu={gpu}"]})
    assert planned(config).of_role(Role.SERVICE)[-1].argv[-1] == "gpu="


def test_health_group_and_patterns_are_handed_on() -> None:
    launch = planned(toy())
    renderer, brain = launch.processes[0], launch.processes[3]
    assert (renderer.health.kind, renderer.health.path) == (HealthKind.HTTP, "/ready")
    assert (brain.health.kind, brain.health.timeout_s) == (HealthKind.GRPC, 90.0)
    assert (renderer.group, brain.group) == ("renderer", "minds")
    assert renderer.oom_patterns == ("out of memory",)
    assert {p.group for p in launch.of_role(Role.WORKER)} == {"runtime"}
    assert {p.group for p in launch.of_role(Role.SCHEDULER)} == {"scheduler"}


def test_what_the_instrument_reads_is_in_every_environment() -> None:
    launch = planned(toy({"telemetry.worker_interval_s": 0.5}))
    for process in launch.processes:
        assert process.env["ROLLTOP_RUN_UUID"] == UUID
        assert process.env["ROLLTOP_RUN_NAME"] == "toy-small"
        assert process.env["ROLLTOP_SCRAPE_INTERVAL_S"] == "0.5"
        assert process.env["ROLLTOP_TELEMETRY"] == "1"
        assert process.env["ROLLTOP_TOPOLOGY_DIGEST"] == launch.topology_digest


def test_a_worker_is_told_who_it_is_and_where_its_page_is_read() -> None:
    launch = planned(toy())
    for number, worker in enumerate(launch.of_role(Role.WORKER)):
        assert worker.env["ROLLTOP_WORKER_ID"] == str(number)
        assert worker.env["ROLLTOP_METRICS_PORT"] == str(worker.metrics_port)
    for other in (*launch.of_role(Role.SERVICE), *launch.of_role(Role.SCHEDULER)):
        assert not other.env.keys() & {"ROLLTOP_WORKER_ID", "ROLLTOP_METRICS_PORT"}


def test_a_simulator_cannot_lie_about_the_run() -> None:
    with pytest.raises(ConfigError, match="ROLLTOP_RUN_UUID is one of the variables"):
        toy({"sim.worker.env": {"ROLLTOP_RUN_UUID": "another"}})
    worker = planned(toy({"sim.worker.env": {"MINE": "{worker_id}"}})).of_role(Role.WORKER)[1]
    assert worker.env["ROLLTOP_RUN_UUID"] == UUID
    assert worker.env["MINE"] == "1"


def test_on_gpus_each_service_sees_its_own() -> None:
    launch = planned(toy({"device": "nvidia"}))
    shown = {p.name: p.env.get("CUDA_VISIBLE_DEVICES") for p in launch.processes}
    assert shown == {
        "renderer-0": "0",
        "renderer-1": "0",
        "renderer-2": "1",
        "brain-0": "",
        "brain-1": "",
        "scheduler": None,
        "worker-0": None,
        "worker-1": None,
    }
    assert launch.processes[2].env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert launch.warnings == ()


def test_without_gpus_there_is_one_warning() -> None:
    launch = planned(toy())
    assert launch.warnings == (
        "no GPU is used: an index in gpus (0, 1) is a slot for one container",
    )
    assert not any("CUDA_VISIBLE_DEVICES" in p.env for p in launch.processes)


def test_on_cpu_containers_alone_there_is_none() -> None:
    assert planned(toy({"services.renderer.gpus": None})).warnings == ()


def test_more_workers_than_rollouts_at_once_is_a_warning() -> None:
    warnings = planned(toy({"runtime.nr_workers": 9})).warnings
    assert any("runtime.nr_workers is 9" in warning for warning in warnings)


def test_workers_pages_carry_the_labels_of_the_specification() -> None:
    launch = planned(toy())
    workers = launch.targets[0]
    assert workers.targets == tuple(
        f"127.0.0.1:{p.metrics_port}" for p in launch.of_role(Role.WORKER)
    )
    assert workers.labels == {
        "run_uuid": UUID,
        "run_name": "toy-small",
        "user": "ada",
        "node": "node-1",
        "slurm_job_id": "",
        "job": "alpasim-runtime-worker",
        "component": "runtime",
        "__param_run": UUID,
    }


def test_pages_of_services_are_a_group_of_their_own() -> None:
    launch = planned(toy())
    (services,) = launch.targets[1:]
    assert services.labels["job"] == "rolltop-service"
    assert services.labels["component"] == "renderer"
    assert len(services.targets) == 3


def test_without_telemetry_nothing_is_scraped() -> None:
    config = toy({"telemetry.enabled": False})
    launch = planned(config)
    assert launch.targets == ()
    assert launch.prometheus_port is None
    assert launch.processes[0].env["ROLLTOP_TELEMETRY"] == "0"
    assert describe_plan(launch)[0].rows[0][0] == "renderer-0"
    assert ports_needed(config) == ports_needed(toy()) - 1


def test_a_skipped_service_is_nowhere() -> None:
    launch = planned(toy({"runtime.endpoints.brain.skip": True}))
    assert not [p for p in launch.processes if p.service == "brain"]
    assert list(json.loads(launch.files["endpoints.json"])) == ["renderer"]


def test_endpoints_say_where_each_instance_is() -> None:
    launch = planned(toy())
    endpoints = json.loads(launch.files["endpoints.json"])
    last = launch.processes[2]
    assert endpoints["renderer"][2] == {
        "instance": "renderer-2",
        "address": f"127.0.0.1:{last.port}",
        "node": "node-1",
        "gpu": 1,
        "n_concurrent": 2,
    }
    assert endpoints["brain"][0]["gpu"] is None


def rollouts(config: RunConfig) -> list[dict[str, Any]]:
    return [json.loads(line) for line in planned(config).files["rollouts.jsonl"].splitlines()]


def test_the_same_seed_gives_the_same_rollouts() -> None:
    first, again = toy(), toy({"run.uuid": "0" * 32, "runtime.nr_workers": 1})
    assert rollouts(first) == rollouts(again)


def test_the_name_of_a_rollout_is_a_uuid_of_seed_and_number() -> None:
    namespace = uuid.UUID("6f1a7f43-5b1c-5c0a-9a58-2f6f7a7e2c11")
    found = [r["uuid"] for r in rollouts(toy({"run.seed": 3, "runtime.rollouts": 200}))]
    assert found == [str(uuid.uuid5(namespace, f"3/{number}")) for number in range(200)]


def test_another_seed_gives_other_rollouts() -> None:
    ours, others = rollouts(toy()), rollouts(toy({"run.seed": 1}))
    assert not {r["uuid"] for r in ours} & {r["uuid"] for r in others}
    assert [r["scene"] for r in ours] != [r["scene"] for r in others]


def test_more_rollouts_begin_with_the_same_ones() -> None:
    assert rollouts(toy({"runtime.rollouts": 40}))[:12] == rollouts(toy())


def test_no_scene_comes_twice_before_all_have_come() -> None:
    scenes = [r["scene"] for r in rollouts(toy({"runtime.rollouts": 15}))]
    every = {f"road-{index:02d}" for index in range(5)}
    assert set(scenes[:5]) == set(scenes[5:10]) == set(scenes[10:]) == every


def test_of_very_many_scenes_only_those_that_are_driven_are_drawn() -> None:
    many = toy({"runtime.rollouts": 50, "sim.scenes": {"count": 10**9, "name": "s{index}"}})
    assert len({r["scene"] for r in rollouts(many)}) == 50


def test_faults_are_written_for_the_services_that_have_them() -> None:
    assert json.loads(planned(toy()).files["faults.json"]) == {}
    faulty = toy({"sim.faults": {"brain": {"delay_ms": 60.0}}})
    assert json.loads(planned(faulty).files["faults.json"]) == {
        "brain": {"delay_ms": 60.0, "fail_ratio": 0.0, "fail_method": None, "crash_after": None}
    }


def test_the_digest_is_the_topologys_own() -> None:
    digest = planned(toy()).topology_digest
    assert digest == planned(toy({"run.seed": 3, "runtime.rollouts": 1})).topology_digest
    for path, value in {
        "services.renderer.gpus": [0, 1, 1],
        "services.brain.replicas_per_container": 1,
        "runtime.endpoints.brain.n_concurrent_rollouts": 3,
        "runtime.nr_workers": 3,
        "defines.toy_cache": 8,
    }.items():
        assert planned(toy({path: value})).topology_digest != digest, path


def test_plan_json_names_files_and_holds_processes() -> None:
    launch = planned(toy())
    data = json.loads(render_plan(launch))
    assert data["schema"] == 1
    assert data["files"] == ["endpoints.json", "faults.json", "rollouts.jsonl"]
    assert [p["name"] for p in data["processes"]] == [p.name for p in launch.processes]


def test_secrets_are_in_neither_text() -> None:
    secret = "hunter2hunter2"
    worker = {
        "sim.worker.command": ["w", "--password", secret],
        "sim.worker.env": {"TOKEN": secret},
    }
    launch = planned(toy(worker))
    assert secret in launch.processes[-1].argv
    assert secret not in render_plan(launch)
    assert secret not in str(describe_plan(launch))


def test_a_dry_run_shows_processes_ports_files_and_targets() -> None:
    launch = planned(toy())
    processes, files, targets = describe_plan(launch)
    for table in (processes, files, targets):
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert processes.rows[0][:4] == ("prometheus", "prometheus", "", "20000")
    assert processes.rows[1][:6] == ("renderer-0", "service", "0", "20001", "20002", "http")
    assert processes.rows[4][2] == ""
    assert ("rollouts.jsonl", "12") in files.rows
    assert targets.rows[0][0] == "alpasim-runtime-worker"


placements = st.one_of(st.none(), st.lists(st.integers(0, 9), min_size=1, max_size=6))


changes = st.fixed_dictionaries(
    {
        "services.renderer.gpus": placements,
        "services.brain.gpus": placements,
        "services.brain.replicas_per_container": st.integers(1, 5),
        "runtime.endpoints.brain.n_concurrent_rollouts": st.integers(1, 9),
        "runtime.nr_workers": st.integers(1, 9),
        "telemetry.enabled": st.booleans(),
        "sim.scheduler.metrics": st.booleans(),
    }
)


@settings(max_examples=50, deadline=None)
@given(changes)
def test_every_plan_is_sound(changed: dict[str, Any]) -> None:
    config = toy(changed)
    launch = planned(config)
    names = [p.name for p in launch.processes]
    assert len(set(names)) == len(names)
    used = [launch.prometheus_port, *(p.port for p in launch.processes)]
    ports = [port for port in [*used, *(p.metrics_port for p in launch.processes)] if port]
    assert sorted(ports) == list(range(20000, 20000 + ports_needed(config)))
    endpoints = json.loads(launch.files["endpoints.json"])
    capacity = {s: sum(i["n_concurrent"] for i in found) for s, found in endpoints.items()}
    assert min(capacity.values()) == config.topology().capacity
    assert len(launch.of_role(Role.WORKER)) == changed["runtime.nr_workers"]
    for process in launch.processes:
        texts = [*process.argv, *process.env.values()]
        assert [text for text in texts if list(names_in(text))] in ([], ["{literal}"])
