"""What a query returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Series:
    """A stream of values: ``t_s`` unix seconds, ascending, ``values`` of the same length (n,)."""

    labels: dict[str, str]
    t_s: NDArray[np.float64]
    values: NDArray[np.float64] = field(repr=False)
