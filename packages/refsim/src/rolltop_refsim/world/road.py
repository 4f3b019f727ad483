"""The road: a smooth centreline of the lane that the car has to keep.

The line that everything is measured from is the middle of the car's own lane. A second lane, for
what comes towards it, lies to its left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rolltop_refsim.world.geometry import FloatArray

LANE_HALF_WIDTH_M = 1.8
SPACING_M = 0.5
BEHIND_M = 40.0
"""Road behind the start."""
LENGTH_M = 360.0
"""Road in front of the start; a route ends `LOOKAHEAD_M` before the road does."""
LOOKAHEAD_M = 60.0
MAX_CURVATURE = 0.022
"""1/m: the tightest bend has a radius of 45 m."""


@dataclass(frozen=True)
class Road:
    """Samples of the lane's centreline, `SPACING_M` apart.

    Attributes:
        s: (N,) arclength in metres; 0 at the start, negative behind it.
        x: (N,) metres.
        y: (N,) metres.
        heading: (N,) radians.
        curvature: (N,) 1/m, positive to the left.
    """

    s: FloatArray
    x: FloatArray
    y: FloatArray
    heading: FloatArray
    curvature: FloatArray

    @property
    def route_length_m(self) -> float:
        """Arclength at which a route is done."""
        return LENGTH_M - LOOKAHEAD_M

    def at(self, s: FloatArray | float, lateral: FloatArray | float = 0.0) -> FloatArray:
        """Finds points by arclength and distance to the left of the centreline.

        Args:
            s: Arclength(s) in metres, held to the ends of the road.
            lateral: Metres to the left.

        Returns:
            (N, 3) x, y, heading.
        """
        at = np.atleast_1d(np.asarray(s, dtype=np.float64))
        heading = np.interp(at, self.s, self.heading)
        x = np.interp(at, self.s, self.x) - np.sin(heading) * lateral
        y = np.interp(at, self.s, self.y) + np.cos(heading) * lateral
        return np.column_stack([x, y, heading])

    def project(self, x: float, y: float) -> tuple[float, float]:
        """Finds where a point is along the road and how far beside it.

        Args:
            x: Metres in the world.
            y: Metres in the world.

        Returns:
            Arclength in metres and lateral distance in metres, positive to the left.
        """
        dx, dy = self.x - x, self.y - y
        nearest = int(np.argmin(dx * dx + dy * dy))
        heading = self.heading[nearest]
        along = -dx[nearest] * np.cos(heading) - dy[nearest] * np.sin(heading)
        across = dx[nearest] * np.sin(heading) - dy[nearest] * np.cos(heading)
        return float(self.s[nearest] + along), float(across)


def make_road(rng: np.random.Generator) -> Road:
    """Draws a road whose bends are a few sine waves of curvature.

    Args:
        rng: Random stream of the road.

    Returns:
        A road along +x on average, through the origin at arclength 0.
    """
    s = np.arange(-BEHIND_M, LENGTH_M + SPACING_M / 2, SPACING_M)
    wavelengths = rng.uniform((60, 90, 140), (90, 140, 220))
    amplitudes = rng.uniform((0.004, 0.005, 0.004), (0.010, 0.012, 0.008))
    phases = rng.uniform(0, 2 * np.pi, 3)
    waves = amplitudes[:, None] * np.sin(2 * np.pi * s / wavelengths[:, None] + phases[:, None])
    curvature = np.clip(waves.sum(axis=0), -MAX_CURVATURE, MAX_CURVATURE)
    heading = np.concatenate([[0.0], np.cumsum((curvature[1:] + curvature[:-1]) / 2 * SPACING_M)])
    heading -= heading.mean()
    middle = (heading[1:] + heading[:-1]) / 2
    x = np.concatenate([[0.0], np.cumsum(np.cos(middle) * SPACING_M)])
    y = np.concatenate([[0.0], np.cumsum(np.sin(middle) * SPACING_M)])
    start = int(np.argmin(np.abs(s)))
    return Road(s=s, x=x - x[start], y=y - y[start], heading=heading, curvature=curvature)
