"""The simulator of the how-to, run as the page says: what it says of it is true."""

from __future__ import annotations

import json

from tests.config.how_to import COMMANDS, FILES, write

RESULT = {"uuid", "scene", "seed", "steps", "attempts", "first_wave", "duration_s", "worker_id"}


def test_the_simulator_of_the_how_to_runs(start_run, tmp_path):
    assert {"mysim/service.py", "mysim/worker.py"} <= FILES.keys()
    write(tmp_path)
    command = next(words for words in COMMANDS if words[0].startswith("sim.file="))
    ended = start_run(*command).finish()
    assert ended.status == 0, ended.err
    assert "12 of 12 completed" in ended.out
    assert ended.summary["rollouts"]["completed"] == 12
    results = [
        json.loads(path.read_text()) for path in ended.run_dir.glob("rollouts/*/*/result.json")
    ]
    assert len(results) == 12
    assert all(result.keys() >= RESULT and result["steps"] == 200 for result in results)
    processes = {e["process"] for e in ended.events if e["event"] == "process_started"}
    assert {"renderer-0", "driver-0", "driver-1", "worker-0"} <= processes
    assert ended.summary["telemetry"]["missing"]
