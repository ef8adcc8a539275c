"""Which private rows take part in a step."""

import numpy as np
from numpy.typing import NDArray

from ..privacy import NoiseSource


class FullBatch:
    """Every row in every step: exact accounting, and for linear heads the better choice.

    Source: AdaMix, section 3.1.
    """

    def rate(self, n_private: int) -> float:
        return 1.0

    def draw(self, n_private: int, noise: NoiseSource) -> NDArray[np.bool_] | None:
        return None
