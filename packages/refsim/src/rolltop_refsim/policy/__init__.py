"""The policy that drives the reference simulation's car from camera images."""

from rolltop_refsim.policy.features import IMAGE_SHAPE, Encoder
from rolltop_refsim.policy.policy import CRUISE_SPEED_M_S, DISTANCES_M, Policy, WeightsError
from rolltop_refsim.policy.session import DriverSession, ObservationError

__all__ = [
    "CRUISE_SPEED_M_S",
    "DISTANCES_M",
    "IMAGE_SHAPE",
    "DriverSession",
    "Encoder",
    "ObservationError",
    "Policy",
    "WeightsError",
]
