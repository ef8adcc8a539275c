"""Noisy histograms: which bins hold more rows than noise explains, and how many rows they need."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..components.protocols import FloatArray
from ..components.public import RandomSource
from .statistics import Learner

#: Probability that noise makes an empty bin of any histogram look occupied.
_FALSE_RATE = 0.01
#: The same probability for a histogram of magnitudes, where such a bin does more harm.
_FALSE_MAGNITUDE = 1e-6
#: Largest threshold for magnitudes, as a fraction of the rows, unless ``_FALSE_RATE`` needs a larger one.
_MISSED = 0.05
#: Widths of the windows of neighbouring bins whose sums are tested.
_WIDTHS = (1, 2, 4, 8)
#: Fewest rows, on average, in the part of a large dataset that is used.
_FEWEST_ROWS = 28_000
#: A part is used only of a dataset at least this many times as large: else all rows take about as long.
_LEAST_STEP = 4
#: The part has enough rows for this noise in a count, as a fraction of them.
_THINNED_ERROR = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """The same part of the rows in every query, each of which is in it with probability ``chance``.

    ``taken`` (n_private,) is SECRET. The accounting knows of no chance: given the coins, releases are as
    private as those over all rows.
    """

    taken: NDArray[np.bool_]
    chance: float

    def rate(self, n_private: int) -> float:
        return self.chance

    def draw(self, n_private: int, noise: RandomSource) -> NDArray[np.bool_]:
        return self.taken


def thinned(
    learner: Learner,
    n_features: int,
    multiplier: float,
    fewest: int | None = None,
    error: float = _THINNED_ERROR,
) -> Learner:
    """The learner on a part of the rows, if noise stays small enough; public facts decide.

    At least ``fewest`` rows are left on average, by default ``_FEWEST_ROWS``. ``error`` is the target for the
    noise in a count, as a part of them. A secret coin for each row decides whether it takes part, whatever
    its place and other rows are. The coins hold for all queries of the result. Batches, whose rate is
    accounted for, are left as they are.
    """
    needed = multiplier * math.sqrt(3 * n_features) / error
    least = _FEWEST_ROWS if fewest is None else fewest
    step = int(learner.n_rows // max(needed, least)) if math.isfinite(needed) else 1
    if step < _LEAST_STEP or learner.n_expected < learner.n_rows:
        return learner
    coins = learner.noise.coins(learner.n_rows, 1 / step)
    return replace(learner, sampling=_Part(coins, 1 / step))


def certain_count(counts: FloatArray, noise: float, false: float = _FALSE_RATE) -> float:
    """Threshold that noise alone exceeds with small probability, in any bin or window of all histograms."""
    return -noise * float(ndtri(false / (len(_WIDTHS) * counts.size)))


def certain_of_magnitudes(counts: FloatArray, noise: float, n_rows: float) -> float:
    """The threshold :func:`certain_count` for histograms of magnitudes of ``n_rows`` rows."""
    most = certain_count(counts, noise, _FALSE_MAGNITUDE)
    return max(min(most, _MISSED * n_rows), certain_count(counts, noise))


def windows_of(
    column: FloatArray, certain: float, taken: NDArray[np.bool_]
) -> Iterator[tuple[int, int, float]]:
    """Start, width and count of the windows of a histogram that hold more rows than noise explains.

    Narrow windows come first; wider ones join bins that are not ``taken`` (bins,) yet.
    """
    for width in _WIDTHS:
        sums = np.convolve(column, np.ones(width), "valid")
        free = np.convolve(taken, np.ones(width), "valid") == 0
        while True:
            sums = np.where(free, sums, -np.inf)
            start = int(sums.argmax())
            if not sums[start] > certain * math.sqrt(width):
                break
            taken[start : start + width] = True
            free[max(start - width + 1, 0) : start + width] = False
            yield start, width, float(sums[start])
