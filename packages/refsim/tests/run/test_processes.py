from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import rolltop_refsim
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc
from rolltop_refsim.inputs import read_endpoints
from rolltop_refsim.rpc import common_pb2
from rolltop_refsim.rpc.channel import OPTIONS
from rolltop_refsim.rpc.trafficsim_pb2_grpc import TrafficsimStub

CONF = Path(rolltop_refsim.__file__).parent / "conf" / "sim" / "driving.yaml"
DRIVING: dict[str, Any] = yaml.safe_load(CONF.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def filled(command: list[str], **values: object) -> list[str]:
    """A command of ``driving.yaml`` as a launcher fills it in."""
    assert command[0] == "python"
    return [sys.executable, *(word.format(**values) for word in command[1:])]


@contextmanager
def running(argv: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_healthy(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=60)
        serving = health_pb2.HealthCheckResponse.SERVING
        assert any(reply.status == serving for reply in watch)
        watch.cancel()


def values(tmp_path: Path, faults: dict[str, Any] | None = None) -> dict[str, Any]:
    faults_file = tmp_path / "faults.json"
    faults_file.write_text(json.dumps(faults or {}))
    return {
        "port": free_port(),
        "instance": "trafficsim-0",
        "n_concurrent": 2,
        "cache_size": 3,
        "faults_file": faults_file,
        "run_dir": tmp_path,
        "endpoints_file": tmp_path / "endpoints.json",
        "rollouts_file": tmp_path / "rollouts.jsonl",
        "nr_workers": 1,
        "max_retries": 0,
        "steps_per_rollout": 2,
    }


def test_a_service_ends_with_0_when_told_to_stop(tmp_path: Path) -> None:
    given = values(tmp_path)
    with running(filled(DRIVING["services"]["trafficsim"]["command"], **given)) as process:
        wait_healthy(given["port"])
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert f"serving on 127.0.0.1:{given['port']}" in log


def test_a_crash_that_was_asked_for_comes_after_so_many_calls(tmp_path: Path) -> None:
    given = values(tmp_path, {"trafficsim": {"crash_after": 3}})
    with running(filled(DRIVING["services"]["trafficsim"]["command"], **given)) as process:
        wait_healthy(given["port"])
        with grpc.insecure_channel(f"127.0.0.1:{given['port']}", options=OPTIONS) as channel:
            stub = TrafficsimStub(channel)  # type: ignore[no-untyped-call]
            for _ in range(3):
                stub.start_session(common_pb2.SessionRequest(), timeout=10)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "sim.faults.trafficsim.crash_after=3 ends this service" in log


@pytest.mark.parametrize(
    ("faults", "taken", "status", "words"),
    [
        ({"trafficsim": {"delay": 1}}, False, 2, "unknown key 'delay'"),
        ({"trafficsim": {"fail_method": "steer"}}, False, 2, "unknown method 'steer'"),
        ({}, True, 1, "is taken; choose another one"),
    ],
)
def test_what_cannot_start_says_so_and_ends(
    tmp_path: Path, faults: dict[str, Any], taken: bool, status: int, words: str
) -> None:
    given = values(tmp_path, faults)
    with socket.socket() as other:
        if taken:
            other.bind(("127.0.0.1", given["port"]))
            other.listen()
        argv = filled(DRIVING["services"]["trafficsim"]["command"], **given)
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status
    assert words in ended.stderr.splitlines()[-1]


def test_a_run_of_processes_ends_by_itself(tmp_path: Path) -> None:
    given = values(tmp_path)
    rollout = {"uuid": "u", "scene": "road-0001", "seed": 1, "first_wave": False}
    given["rollouts_file"].write_text(json.dumps(rollout) + "\n")
    endpoints = {}
    with ExitStack() as stack:
        processes = {}
        for service, description in DRIVING["services"].items():
            port = free_port()
            instance = {"instance": f"{service}-0", "address": f"127.0.0.1:{port}"}
            endpoints[service] = [{**instance, "n_concurrent": 1}]
            argv = filled(
                description["command"], **{**given, "port": port, "instance": f"{service}-0"}
            )
            processes[service] = (stack.enter_context(running(argv)), port)
        given["endpoints_file"].write_text(json.dumps(endpoints))
        assert len(read_endpoints(given["endpoints_file"])) == 5
        scheduler = filled(DRIVING["scheduler"]["command"], **given)
        processes["scheduler"] = (stack.enter_context(running(scheduler)), given["port"])
        for _, port in processes.values():
            wait_healthy(port)
        worker = filled(
            DRIVING["worker"]["command"],
            **given,
            worker_id=0,
            metrics_port=free_port(),
            scheduler=f"127.0.0.1:{given['port']}",
        )
        ended = subprocess.run(worker, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        for process, _ in processes.values():
            process.send_signal(signal.SIGTERM)
        for name, (process, _) in processes.items():
            _, log = process.communicate(timeout=30)
            assert process.returncode == 0, f"{name}: {log}"
    (path,) = tmp_path.glob("rollouts/road-0001/u/result.json")
    result = json.loads(path.read_text())
    assert (result["status"], result["steps"], result["worker_id"]) == ("completed", 2, "0")


def test_a_worker_without_a_scheduler_waits_until_it_is_told_to_stop(tmp_path: Path) -> None:
    given = {
        **values(tmp_path),
        "worker_id": 0,
        "metrics_port": free_port(),
        "scheduler": f"127.0.0.1:{free_port()}",
    }
    with running(filled(DRIVING["worker"]["command"], **given)) as process:
        with socket.socket() as probe:
            while process.poll() is None and probe.connect_ex(("127.0.0.1", given["metrics_port"])):
                time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM, log
    assert "told to stop" in log
