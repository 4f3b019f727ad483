"""Image features: one layer of fixed random filters, rectified and pooled.

Nothing here is learnt. The filters are drawn from a seed, so that they need no file; what is learnt
is the linear head on top (`rolltop_refsim.policy.policy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from rolltop_refsim.world.seeds import stream

Float32Array = NDArray[np.float32]

IMAGE_SHAPE = (64, 64, 3)
_FLAT_STD = 1e-3
"""An image whose colours vary less, in 0..1, has no contrast to be evened out."""


@dataclass(frozen=True)
class Encoder:
    """How an image becomes a vector.

    Attributes:
        filters: Number of random filters.
        size: Side of a filter in pixels.
        stride: Pixels between neighbouring places of a filter.
        pool: (rows, columns) of filter places that are averaged.
        top: First image row that is looked at; the sky above it says nothing about the lane.
        seed: Seed of the filters.
    """

    filters: int = 48
    size: int = 5
    stride: int = 2
    pool: tuple[int, int] = (2, 3)
    top: int = 20
    seed: int = 0

    @cached_property
    def bank(self) -> Float32Array:
        """(size * size * 3, filters) weights; each filter has no mean and unit length."""
        rng = stream("filters", self.filters, self.size, self.seed)
        bank = rng.normal(size=(self.size * self.size * 3, self.filters))
        bank -= bank.mean(axis=0)
        bank /= np.linalg.norm(bank, axis=0)
        return bank.astype(np.float32)

    @cached_property
    def bias(self) -> Float32Array:
        """(filters,) thresholds."""
        rng = stream("thresholds", self.filters, self.size, self.seed)
        return rng.uniform(-1.0, 1.0, self.filters).astype(np.float32)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of pooled cells."""
        rows = (IMAGE_SHAPE[0] - self.top - self.size) // self.stride + 1
        columns = (IMAGE_SHAPE[1] - self.size) // self.stride + 1
        return rows // self.pool[0], columns // self.pool[1]

    @property
    def length(self) -> int:
        """Length of the feature vector."""
        rows, columns = self.grid
        return rows * columns * self.filters

    def encode(self, image: NDArray[np.uint8]) -> Float32Array:
        """Turns an image into features.

        Args:
            image: (64, 64, 3) red, green, blue; row 0 at the top.

        Returns:
            (length,) features.

        Raises:
            ValueError: The image has another shape or type.
        """
        if image.shape != IMAGE_SHAPE or image.dtype != np.uint8:
            raise ValueError(f"an image is uint8 {IMAGE_SHAPE}, not {image.dtype} {image.shape}")
        pixels = image[self.top :].astype(np.float32) / np.float32(255)
        pixels -= pixels.mean(axis=(0, 1))
        pixels /= max(float(pixels.std()), _FLAT_STD)
        windows = sliding_window_view(pixels, (self.size, self.size), axis=(0, 1))
        windows = windows[:: self.stride, :: self.stride]
        rows, columns = self.grid
        windows = windows[: rows * self.pool[0], : columns * self.pool[1]]
        # A product per row of places is too small for BLAS to share out between threads, so that
        # the result depends on nothing but the image.
        patches = windows.reshape(rows * self.pool[0], columns * self.pool[1], -1)
        response = np.maximum(np.matmul(patches, self.bank) - self.bias, 0)
        cells = response.reshape(rows, self.pool[0], columns, self.pool[1], self.filters)
        pooled: Float32Array = cells.mean(axis=(1, 3)).ravel()
        return pooled
