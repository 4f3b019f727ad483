"""MuJoCo, for those who compute and do not render."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from rolltop_refsim.world.gl import CHOICE_VARIABLE


def load_mujoco() -> Any:
    """Imports MuJoCo without a way to render, whatever ``MUJOCO_GL`` says.

    With that variable set, the package loads OpenGL as it is imported, and fails where the
    libraries are missing: dynamics and ground need none. The camera opens its context by
    `rolltop_refsim.world.gl`, also later in the same process.
    """
    if "mujoco" in sys.modules:
        return sys.modules["mujoco"]
    before = os.environ.get(CHOICE_VARIABLE)
    os.environ[CHOICE_VARIABLE] = "disable"
    try:
        return import_module("mujoco")
    finally:
        if before is None:
            del os.environ[CHOICE_VARIABLE]
        else:
            os.environ[CHOICE_VARIABLE] = before
