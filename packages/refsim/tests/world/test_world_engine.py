"""Dynamics and ground need no way to render."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPUTES = """
from rolltop_refsim.world import Dynamics, GroundProbe
import os
Dynamics(), GroundProbe()
print(os.environ["MUJOCO_GL"])
"""


@pytest.mark.parametrize("chosen", ["egl", "osmesa", "glfw"])
def test_they_work_whatever_rendering_was_chosen_and_is_missing(chosen: str, tmp_path) -> None:
    """An empty library path in front hides nothing: libraries are broken files there."""
    for name in ("libEGL.so.1", "libOSMesa.so.8", "libOpenGL.so.0", "libGL.so.1"):
        (tmp_path / name).write_bytes(b"not a library")
    environment = {**os.environ, "MUJOCO_GL": chosen, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPUTES],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == chosen
