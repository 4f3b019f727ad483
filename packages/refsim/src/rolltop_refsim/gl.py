"""Checks or gets what the camera needs: ``python -m rolltop_refsim.gl --check | --install``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rolltop_refsim.world.camera import Camera
from rolltop_refsim.world.geometry import Pose
from rolltop_refsim.world.gl import GlError, choose_backend, library_dir
from rolltop_refsim.world.gl_packages import InstallError, install
from rolltop_refsim.world.scene import make_scene

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Returns:
        0 if the camera renders, 1 if not.
    """
    parser = argparse.ArgumentParser(prog="python -m rolltop_refsim.gl", description=__doc__)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", action="store_true", help="render a frame and say with what")
    task.add_argument(
        "--install",
        action="store_true",
        help=f"unless the camera renders already, unpack OSMesa into {library_dir()}",
    )
    options = parser.parse_args(arguments)
    try:
        if options.install and not _found():
            install(library_dir(), _say)
            choose_backend.cache_clear()
        _say(_render())
    except (GlError, InstallError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _found() -> bool:
    try:
        choose_backend()
    except GlError:
        return False
    return True


def _render() -> str:
    """Renders a frame; returns what to say about it."""
    backend = choose_backend()
    camera = Camera(cache_size=1)
    try:
        image = camera.render(make_scene("check", 0), Pose(0.0, 0.0, 0.5)).image
    finally:
        camera.close()
    if image.std() < 1.0:
        raise GlError(f"{backend.name} from {backend.source} renders an empty picture")
    return f"the camera renders with {backend.name} from {backend.source}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
