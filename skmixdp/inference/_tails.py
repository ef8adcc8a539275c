"""Where residuals are cut, from a noisy histogram of their sizes, and what a cut may take away."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._fit.statistics import noise_threshold, shown_counts
from ..components.protocols import FloatArray

#: Edges of the histogram of sizes: half powers of two.
EDGES = 2.0 ** np.arange(-30, 40.5, 0.5)
#: Number of its bins; the end bins have all other sizes.
N_BINS = len(EDGES) + 1
#: A typical size in each bin.
_MIDDLES = np.r_[EDGES[0] / 2, EDGES[:-1] * 2**0.25, EDGES[-1] * 2**0.25]

#: Cuts to choose from.
_CUTS = 2.0 ** np.arange(-30, 40.125, 0.125)
#: Probability that noise alone makes a window of empty bins look occupied. A large residual does much harm.
_FALSE = 1e-6

#: Index up to which the mean of a tail may be infinite.
_SLOWEST = 1.05

#: Deviations of noise: which rows exceed from the last bin on where the end of a tail begins, which are added
#: there, and up to which rows are hidden beyond the last bin that was seen.
_SURE, _UPPER, _HIDDEN = 6.0, 2.0, 8.0
#: Growth of the index that noise alone may cause, and the part of the other growth that goes on at the end.
_NOISE_OF_INDEX, _GROWTH = 0.5, 0.5


@dataclass(frozen=True)
class Tail:
    """Numbers of rows (N_BINS,) in bins of sizes; if the tail is ``endless``, its mean may be infinite."""

    sizes: FloatArray
    endless: bool

    @classmethod
    def of(cls, counts: FloatArray, scale: float, public: NDArray[Any], *, goes_on: bool = True) -> "Tail":
        """The tail from noisy ``counts`` (N_BINS,), whose noise has this scale, and from exact public ones.

        Windows of neighbouring bins are tested against the noise, since a tail that no bin shows may be
        seen in several together. Where their sums end, the tail goes on by its index: the power of the size
        with which the number of larger residuals falls. It is that of the last bins that are sure, and grows
        as it does there, at half the rate. Unless it ``goes_on``, it ends with the windows.

        Source of the index: Hill 1975, "A simple general approach to inference about the tail of a
        distribution", Annals of Statistics 3(5).
        """
        sizes = shown_counts(counts, noise_threshold(counts, scale, _FALSE)) + public
        seen = np.flatnonzero(sizes)
        if not (len(seen) and goes_on):
            return cls(sizes, False)
        last = max(int(seen[-1]), 2)
        rows = np.cumsum(sizes[last::-1])[::-1]  # in each bin and those after it
        noise = scale * np.sqrt(np.arange(last + 1, 0, -1))
        end = max(int(np.flatnonzero(rows > np.minimum(_SURE * noise, rows[0] / 2))[-1]), 2)
        beyond = float(rows[end] + _UPPER * noise[end]) if end <= last else float(_UPPER * scale)
        if beyond <= 0:
            return cls(sizes, False)
        before = np.maximum(rows[max(end - 2, 0) : end], beyond)
        first, index = 2 * np.log2(before / np.r_[before[1:], beyond])
        growth = _GROWTH * max(index - first - _NOISE_OF_INDEX, 0.0)
        index = max(index, (first + index) / 2)  # a smaller one is noise
        indices = index + growth * np.arange(N_BINS - end + 1)
        larger = beyond * 2.0 ** -np.r_[0.0, np.cumsum(indices / 2)]
        # Rows in bins after the last that was seen are fewer than noise hides.
        larger[last + 1 - end :] = np.minimum(larger[last + 1 - end :], _HIDDEN * scale)
        sizes[end:] = -np.diff(larger)[: N_BINS - end]
        return cls(sizes, bool(index <= _SLOWEST))

    def lost(self, cuts: FloatArray) -> FloatArray:
        """The sums of what residuals lose by cuts (n,)."""
        return np.asarray((self.sizes * np.maximum(_MIDDLES - cuts[:, np.newaxis], 0)).sum(axis=1))

    def cut(self, noise_of_unit: float) -> tuple[float, float]:
        """The cut of least error, and a bound on the sum of what residuals lose by it; infinite if endless.

        ``noise_of_unit`` is the noise in a score whose residuals are cut at 1.
        """
        if not self.sizes.any():  # noise hides all rows; 1 is the least count
            return 1.0, math.inf
        lost = self.lost(_CUTS)
        best = int(((_CUTS * noise_of_unit) ** 2 + lost**2).argmin())
        return float(_CUTS[best]), math.inf if self.endless else float(lost[best])


def bins_of(residuals: FloatArray) -> NDArray[np.intp]:
    """Bins of absolute residuals (rows,)."""
    return np.searchsorted(EDGES, np.abs(residuals), side="right")
