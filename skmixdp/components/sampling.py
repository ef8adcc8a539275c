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


class PoissonBatch:
    """Each row takes part in a step with the same probability, independently of all others.

    A batch may come out empty or large; sums are divided by the expected size, never by the
    realised one, which is private.

    Parameters
    ----------
    batch_size : int
        Expected number of rows in a step.

    Source: Abadi et al. 2016; PDA-DPMD, Algorithm 1.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size

    def rate(self, n_private: int) -> float:
        return self.batch_size / n_private

    def draw(self, n_private: int, noise: NoiseSource) -> NDArray[np.bool_] | None:
        return noise.uniform((n_private,)) < self.rate(n_private)
