"""A noisy count of private rows: one release, by the mechanism of a training step."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows import Block, PrivateRows
from ..components.protocols import PrivateQuery, ReleasedArray
from ..privacy import NoiseSource
from .release import GaussianMechanism, release

FloatArray = NDArray[np.floating[Any]]


def noisy_count(
    rows: PrivateRows,
    points: FloatArray,
    counts: Callable[[FloatArray, Block], NDArray[np.bool_]],
    noise_multiplier: float,
    noise: NoiseSource,
) -> float:
    """Number of private rows for which something holds, plus noise of ``noise_multiplier`` rows.

    Parameters
    ----------
    rows : PrivateRows
        The rows.
    points : array of shape (m, d_in)
        Directions whose products with the rows are needed.
    counts : callable
        ``(Z, block) -> flags``: for each row of a block whether it counts.
    noise_multiplier : float
        Standard deviation of the noise: one row changes the count by at most 1.
    noise : NoiseSource
        Source of the noise.

    Returns
    -------
    float
        The noisy count, which may lie below 0 or above the number of rows.

    Notes
    -----
    *Guarantee*: one Gaussian release of this multiplier.
    """

    def contribute(Z: FloatArray, block: Block) -> tuple[None, FloatArray]:
        return None, counts(Z, block).astype(np.float64)[:, np.newaxis]

    mechanism = GaussianMechanism(noise_multiplier, 1, noise)
    mechanism.begin_step(None)
    (released,) = release(rows, [(mechanism, PrivateQuery(points, contribute, (ReleasedArray(1.0),)))])
    (count,) = released.arrays
    return float(count[0])
