"""Rules that draw the private rows of a step."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .public import RandomSource


class FullBatch:
    """All rows in every step. Accounting is exact, and linear heads are usually more accurate with it.

    Source: AdaMix, section 3.1.
    """

    def rate(self, n_private: int) -> float:
        return 1.0

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_] | None:
        return None


@dataclass(frozen=True)
class PoissonBatch:
    """Poisson sampling: each row is in the batch with the same probability, independently of the others.

    A batch may be empty or large. Sums are divided by the expected size, never by the actual size, which is
    private.

    Parameters
    ----------
    batch_size : int
        Expected number of rows in a step.

    Source: Abadi et al. 2016; PDA-DPMD, Algorithm 1.
    """

    batch_size: int

    def rate(self, n_private: int) -> float:
        return self.batch_size / n_private

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_] | None:
        return noise.uniform((n_private,)) < self.rate(n_private)
