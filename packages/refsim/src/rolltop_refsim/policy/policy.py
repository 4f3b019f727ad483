"""The driver's policy: from a camera image to a path to follow.

Fixed random features and a linear head, solved in closed form on images whose path is known from
the map (`rolltop_refsim.training`). The path comes from the image alone: the policy is told
neither where the lane is nor where the car is in it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rolltop_refsim.policy.features import Encoder
from rolltop_refsim.world.geometry import FloatArray, Plan

if TYPE_CHECKING:
    from pathlib import Path

DISTANCES_M = (0.0, 4.0, 8.0, 12.0, 16.0)
"""Distances in front of the car at which the head says how far left the lane's middle is."""
CRUISE_SPEED_M_S = 8.5


class WeightsError(ValueError):
    """A weights file that is not one, or does not fit this version."""


@dataclass(frozen=True)
class Policy:
    """A trained policy.

    Attributes:
        encoder: The features it was trained on.
        weights: (features, len(DISTANCES_M)) metres per unit of feature.
        offset: (len(DISTANCES_M),) metres.
    """

    encoder: Encoder
    weights: NDArray[np.float32]
    offset: NDArray[np.float32]

    @classmethod
    def load(cls, path: Path | None = None) -> Policy:
        """Reads weights.

        Args:
            path: A file written by `save`; by default the weights of the package.

        Returns:
            The policy.

        Raises:
            WeightsError: The file holds no weights, or weights of another shape.
            OSError: The file cannot be read.
        """
        content = path.read_bytes() if path else _packaged_weights()
        try:
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                settings = json.loads(str(arrays["encoder"]))
                settings["pool"] = tuple(settings["pool"])
                encoder = Encoder(**settings)
                scale = arrays["scale"].astype(np.float32)
                weights = arrays["weights"].astype(np.float32) * scale
                offset = arrays["offset"].astype(np.float32)
        except (KeyError, TypeError, ValueError, OSError, EOFError, BadZipFile) as error:
            raise WeightsError(f"{path or 'the packaged file'} holds no policy weights") from error
        if weights.shape != (encoder.length, len(DISTANCES_M)) or offset.shape != weights.shape[1:]:
            raise WeightsError(f"{path or 'the packaged file'} has weights of {weights.shape}")
        return cls(encoder, weights, offset)

    def save(self, path: Path) -> None:
        """Writes the weights, in half precision and without pickles.

        Args:
            path: The file to write.
        """
        scale = np.maximum(np.abs(self.weights).max(axis=0), 1e-12) / 1000
        content = BytesIO()
        np.savez_compressed(
            content,
            encoder=np.array(json.dumps(asdict(self.encoder))),
            weights=(self.weights / scale).astype(np.float16),
            scale=scale.astype(np.float32),
            offset=self.offset.astype(np.float32),
        )
        path.write_bytes(content.getvalue())

    def lane(self, image: NDArray[np.uint8]) -> FloatArray:
        """Reads the lane off an image.

        Args:
            image: (64, 64, 3) red, green, blue.

        Returns:
            (len(DISTANCES_M),) metres that the lane's middle lies to the left of the car's axis, at
            each of the distances in front of it.
        """
        return self.read(self.encoder.encode(image))

    def read(self, features: NDArray[np.float32]) -> FloatArray:
        """Reads the lane off an image's features.

        Args:
            features: (features,) from the policy's encoder.

        Returns:
            As `lane`.
        """
        # Not a matrix product: BLAS sums in an order that depends on its number of threads.
        left: FloatArray = np.einsum("f,fk->k", features, self.weights).astype(np.float64)
        return left + self.offset

    def act(
        self, image: NDArray[np.uint8], speed_m_s: float, limit_m_s: float = CRUISE_SPEED_M_S
    ) -> Plan:
        """Plans a path.

        Args:
            image: (64, 64, 3) red, green, blue.
            speed_m_s: The car's speed; the plan's speed does not leap from it.
            limit_m_s: Speed that the route allows.

        Returns:
            The lane's middle as the image shows it, and the speed to hold.
        """
        target = min(limit_m_s, speed_m_s + 2.0)
        return Plan(np.column_stack([DISTANCES_M, self.lane(image)]), target)


def _packaged_weights() -> bytes:
    return (resources.files("rolltop_refsim.policy") / "weights.npz").read_bytes()
