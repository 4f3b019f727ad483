"""A driver's side of one rollout: observations arrive one by one, then it drives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolltop_refsim.policy.policy import CRUISE_SPEED_M_S

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rolltop_refsim.policy.policy import Policy
    from rolltop_refsim.world.geometry import Plan


class ObservationError(ValueError):
    """A drive that was asked for before its observations were there."""


class DriverSession:
    """Collects what the driver was shown last and plans with it."""

    def __init__(self, policy: Policy) -> None:
        """Starts without observations.

        Args:
            policy: The policy, which sessions may share.
        """
        self._policy = policy
        self._image: NDArray[np.uint8] | None = None
        self._speed_m_s: float | None = None
        self._limit_m_s = CRUISE_SPEED_M_S

    def submit_image_observation(self, image: NDArray[np.uint8]) -> None:
        """Takes the newest camera image, (64, 64, 3) red, green, blue."""
        self._image = image

    def submit_egomotion_observation(self, speed_m_s: float) -> None:
        """Takes the car's speed."""
        self._speed_m_s = speed_m_s

    def submit_route(self, speed_limit_m_s: float) -> None:
        """Takes the route: follow the lane at no more than a speed; not where the lane is."""
        self._limit_m_s = speed_limit_m_s

    def drive(self) -> Plan:
        """Plans with the newest observations; an image is used once.

        Returns:
            The path and speed.

        Raises:
            ObservationError: No image since the last drive, or no egomotion at all.
        """
        if self._image is None:
            raise ObservationError("drive needs an image observation since the last drive")
        if self._speed_m_s is None:
            raise ObservationError("drive needs an egomotion observation")
        image, self._image = self._image, None
        return self._policy.act(image, self._speed_m_s, self._limit_m_s)
