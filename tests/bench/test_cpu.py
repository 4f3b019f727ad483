"""CPU-seconds read from outside a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bench.cpu import Process, TreeSampler, cpu_of

BURN = """
import subprocess, sys, time
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
while time.process_time() < 0.3:
    pass
print("burnt", flush=True)
sys.stdin.read()
child.communicate()
"""


def test_between_two_readings_on_the_straight_line():
    process = Process(1, ("x",), [10.0, 20.0, 30.0], [1.0, 3.0, 4.0])
    assert process.at(15.0) == 2.0
    assert process.between(10.0, 25.0) == 2.5
    assert process.at(99.0) == 4.0


def test_nothing_before_the_first_reading():
    process = Process(1, ("x",), [10.0, 20.0], [1.0, 3.0])
    assert process.at(5.0) == 0.0
    assert process.between(0.0, 20.0) == 3.0


def test_a_tree_is_read_with_its_descendants():
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as root:
        assert root.stdout is not None
        with TreeSampler(root.pid, interval_s=0.02) as sampler:
            assert root.stdout.readline() == "burnt\n"
            deadline = time.monotonic() + 30
            while len(sampler.processes) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
        assert cpu_of(root.pid) >= 0.25
        root.communicate()
    burnt = sampler.processes[root.pid]
    assert burnt.argv[0] == sys.executable
    assert burnt.cpu_s[-1] >= 0.25
    assert len(sampler.processes) == 2
    assert os.getpid() not in sampler.processes


def test_a_process_that_has_gone_is_an_error():
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    with pytest.raises(ProcessLookupError):
        cpu_of(gone.pid)
