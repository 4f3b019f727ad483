"""Whether this node has GPUs, asked of the driver's own files and of ``nvidia-smi``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PATIENCE_S = 10.0


def count_gpus(proc: Path = Path("/proc")) -> int:
    """Return the number of NVIDIA GPUs of this node, 0 where there is no driver.

    Args:
        proc: The root of procfs; the driver lists its GPUs in ``driver/nvidia/gpus``.
    """
    listed = proc / "driver" / "nvidia" / "gpus"
    if listed.is_dir():
        return sum(1 for _ in listed.iterdir())
    return _count_by_nvidia_smi()


def _count_by_nvidia_smi() -> int:
    """Containers without the driver's files still have the program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        done = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    if done.returncode != 0:
        return 0
    return sum(1 for line in done.stdout.splitlines() if line.startswith("GPU "))
