"""The examples run as written, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if "{" in line]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


def test_a_simulator_without_grpc() -> None:
    series = run("warehouse.py")
    assert series['alpasim_rollouts_total{worker_id="0",status="completed"}'] == 5
    assert series['alpasim_rollouts_total{worker_id="0",status="failed"}'] == 1
    assert series['alpasim_step_duration_seconds_count{worker_id="0"}'] == 5 * 20 + 10
    key = '{worker_id="0",service="planner",endpoint="planner"}'
    assert series[f"rolltop_rpc_calls_total{key}"] == 5 * 20 + 11


def test_a_simulator_with_grpc() -> None:
    series = run("weather_grpc.py")
    key = '{worker_id="0",service="weather",endpoint="weather-0"}'
    assert series[f"rolltop_rpc_calls_total{key}"] == 60
    queue = series[f"rolltop_rpc_endpoint_queue_seconds_total{key}"]
    served = series[f"rolltop_rpc_endpoint_service_seconds_total{key}"]
    assert served > 0
    assert queue > 0  # four balloons, one thread
    assert series[f"rolltop_rpc_endpoint_seconds_total{key}"] > queue + served


def test_the_five_lines_are_five_and_the_simulators_know_nothing_of_rolltop() -> None:
    text = (EXAMPLES / "warehouse.py").read_text()
    marked = [line for line in text.splitlines() if line.rstrip()[-3:-1] == "# "]
    assert [line[-1] for line in marked] == ["2", "3", "4", "5", "1"]
    for path in EXAMPLES.glob("*.py"):
        imports = [line for line in path.read_text().splitlines() if "import" in line]
        assert not [line for line in imports if "refsim" in line or "rolltop " in line]
