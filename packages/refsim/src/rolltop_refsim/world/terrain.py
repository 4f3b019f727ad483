"""Uneven ground: hills with a wavelength of tens of metres and bumps of a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rolltop_refsim.world.geometry import FloatArray

GRID_SPACING_M = 1.0
GRID_ROWS = 201
"""Samples along y."""
GRID_COLUMNS = 441
"""Samples along x."""
GRID_ORIGIN_M = (-60.0, -100.0)
"""World x and y of the grid's first sample, before the road's own middle is added to y."""
MAX_HEIGHT_M = 8.0
"""The ground lies between minus and plus this."""


@dataclass(frozen=True)
class Terrain:
    """A sum of plane waves.

    Attributes:
        directions: (W, 2) wave vectors in rad/m.
        phases: (W,) radians.
        amplitudes: (W,) metres.
        middle_y: World y of the middle of the height grid, in metres.
    """

    directions: FloatArray
    phases: FloatArray
    amplitudes: FloatArray
    middle_y: float

    def height(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> FloatArray:
        """Computes the height of the ground.

        Args:
            x: World x in metres, any shape.
            y: World y in metres, the same shape.

        Returns:
            Heights in metres, the same shape.
        """
        total = np.zeros(np.broadcast(x, y).shape)
        for (kx, ky), phase, amplitude in zip(
            self.directions, self.phases, self.amplitudes, strict=True
        ):
            total += amplitude * np.sin(kx * x + ky * y + phase)
        return total

    def grid(self) -> NDArray[np.float32]:
        """Samples the ground for MuJoCo's height field.

        Returns:
            (GRID_ROWS, GRID_COLUMNS) heights scaled to 0..1 over -MAX_HEIGHT_M..MAX_HEIGHT_M.
        """
        x = GRID_ORIGIN_M[0] + GRID_SPACING_M * np.arange(GRID_COLUMNS)
        y = self.middle_y + GRID_ORIGIN_M[1] + GRID_SPACING_M * np.arange(GRID_ROWS)
        heights = self.height(x[None, :], y[:, None])
        scaled = (heights + MAX_HEIGHT_M) / (2 * MAX_HEIGHT_M)
        return np.ascontiguousarray(scaled, dtype=np.float32)


def make_terrain(rng: np.random.Generator, middle_y: float) -> Terrain:
    """Draws the ground.

    Args:
        rng: Random stream of the ground.
        middle_y: World y of the middle of the height grid, in metres.

    Returns:
        Four hills of up to 0.7 m and six bumps of up to 1.5 cm.
    """
    wavelengths = np.concatenate([rng.uniform(60, 140, 4), rng.uniform(5, 12, 6)])
    angles = rng.uniform(0, 2 * np.pi, 10)
    numbers = 2 * np.pi / wavelengths
    return Terrain(
        directions=np.column_stack([numbers * np.cos(angles), numbers * np.sin(angles)]),
        phases=rng.uniform(0, 2 * np.pi, 10),
        amplitudes=np.concatenate([rng.uniform(0.2, 0.7, 4), rng.uniform(0.004, 0.015, 6)]),
        middle_y=middle_y,
    )
