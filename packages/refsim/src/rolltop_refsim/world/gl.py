"""Chooses how MuJoCo renders off screen."""

from __future__ import annotations

import os


def choose_backend() -> None:
    """Sets ``MUJOCO_GL`` unless it is set."""
    os.environ.setdefault("MUJOCO_GL", "egl")
