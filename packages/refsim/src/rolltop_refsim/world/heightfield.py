"""The ground in MuJoCo: one compiled model serves all scenes, their heights are copied into it."""

from __future__ import annotations

from typing import Any

from rolltop_refsim.world.scene import Scene
from rolltop_refsim.world.terrain import (
    GRID_COLUMNS,
    GRID_ORIGIN_M,
    GRID_ROWS,
    GRID_SPACING_M,
    MAX_HEIGHT_M,
)

GROUND = "ground"

ASSET_XML = (
    f'<hfield name="{GROUND}" nrow="{GRID_ROWS}" ncol="{GRID_COLUMNS}" '
    f'size="{(GRID_COLUMNS - 1) / 2 * GRID_SPACING_M} {(GRID_ROWS - 1) / 2 * GRID_SPACING_M} '
    f'{2 * MAX_HEIGHT_M} 1"/>'
)
_MIDDLE_X_M = GRID_ORIGIN_M[0] + (GRID_COLUMNS - 1) / 2 * GRID_SPACING_M
# A position other than 0 keeps the compiler from taking the body's frame for the geom's, which
# would make MuJoCo overlook the position that `Ground.load` writes.
GEOM_XML = (
    f'<geom name="{GROUND}" type="hfield" hfield="{GROUND}" friction="1 0.005 0.0001" '
    f'pos="{_MIDDLE_X_M} 0 {-MAX_HEIGHT_M}"/>'
)


class Ground:
    """The height field of one model, filled with the ground of one scene at a time."""

    def __init__(self, model: Any) -> None:
        """Finds the height field.

        Args:
            model: A `mujoco.MjModel` made with `ASSET_XML` and `GEOM_XML`.
        """
        self._model = model
        self._geom = model.geom(GROUND).id
        self._loaded: tuple[str, int] | None = None

    def load(self, scene: Scene) -> bool:
        """Makes a scene's ground the model's, unless it is already.

        Args:
            scene: The scene.

        Returns:
            Whether anything was copied.
        """
        if self._loaded == scene.key:
            return False
        self._model.hfield_data[:] = scene.height_grid.ravel()
        self._model.geom_pos[self._geom, 1] = scene.terrain.middle_y
        self._loaded = scene.key
        return True
