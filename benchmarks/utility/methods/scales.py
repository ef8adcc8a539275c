"""Location and spread of columns, by which peers scale tables.

Neighbours differ by one row, added or removed. A column of zeros and ones stays as it is: that it came from a
text is known.
"""

import numpy as np

from skmixdp.privacy import NoiseSource

from ..problems import Array

#: Entries are cut at this number of spreads.
CUT = 8.0

#: Edges of the first histogram's bins: signed powers of two.
_POWERS = np.r_[-(2.0 ** np.arange(40, -21, -1)), 0, 2.0 ** np.arange(-20, 41)]

#: Histograms, and bins of the second and the third.
_STAGES, _BINS = 3, 32

#: Noise deviations above which a bin counts as filled, in the first histogram and in the others.
_FIRST_SIGMAS, _LATER_SIGMAS = 3.0, 2.0

#: A bin of the first histogram also needs this share of the rows.
_FIRST_SHARE = 0.01

#: Interquartile range of the standard normal law.
_NORMAL_RANGE = 1.349


def scaled(X: Array, location: Array, spread: Array, cut: float) -> Array:
    """Entries less the location, in spreads, cut at some; 0 in columns of infinite spread."""
    return np.asarray(np.clip((X - location) / spread, -cut, cut))


def of_rows(X: Array) -> tuple[Array, Array]:
    """Mean, and the larger of the standard deviation and the interquartile range; 1 for constant columns.

    The range is divided by that of the standard normal law.
    """
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    spread = np.maximum((high - low) / _NORMAL_RANGE, X.std(axis=0))
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


def private(X: Array, mu: float, noise: NoiseSource) -> tuple[Array, Array]:
    """Median and interquartile range of private columns, without any bounds, from three noisy histograms.

    The first has signed powers of two as edges, the second the range that was found, and the third that of
    eight interquartile ranges. A column for which nothing is found gets an infinite spread.

    Sensitivity: a row is in one bin of each column, so a histogram of d columns changes by ``sqrt(d)``. Each
    has a third of ``mu**2``.
    """
    location, spread = np.zeros(X.shape[1]), np.ones(X.shape[1])
    numbers = np.flatnonzero(~np.isin(X, (0, 1)).all(axis=0))
    if len(numbers):
        own = X[:, numbers]
        sigma = float(np.sqrt(len(numbers) * _STAGES) / mu)
        location[numbers], spread[numbers] = _found(own, sigma, noise)
    return location, spread


def _found(X: Array, sigma: float, noise: NoiseSource) -> tuple[Array, Array]:
    n, d = X.shape
    edges = np.r_[2 * _POWERS[0], _POWERS, 2 * _POWERS[-1]]
    counts = _histograms(np.searchsorted(_POWERS, X.T, side="right"), len(edges) - 1, sigma, noise)
    filled = counts > max(_FIRST_SIGMAS * sigma, _FIRST_SHARE * n)
    found = filled.any(axis=1)
    low = edges[filled.argmax(axis=1)]
    high = edges[len(edges) - 1 - filled[:, ::-1].argmax(axis=1)]
    high = np.where(found, high, low + 1)
    quartiles = np.zeros((d, 3))
    for stage in (1, 2):
        width = (high - low) / _BINS
        codes = np.clip((X.T - low[:, None]) / width[:, None], 0, _BINS - 1).astype(int)
        counts = _histograms(codes, _BINS, sigma, noise)
        counts = np.where(counts > _LATER_SIGMAS * sigma, counts, 0)
        found &= counts.any(axis=1)
        for column in np.flatnonzero(found):
            shares = np.r_[0, np.cumsum(counts[column]) / counts[column].sum()]
            places = np.interp([0.25, 0.5, 0.75], shares, np.arange(_BINS + 1))
            quartiles[column] = low[column] + places * width[column]
        if stage == 1:
            reach = 4 * np.maximum(quartiles[:, 2] - quartiles[:, 0], width)
            middle = np.where(found, quartiles[:, 1], low)
            low, high = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
    spread = np.maximum((quartiles[:, 2] - quartiles[:, 0]) / _NORMAL_RANGE, width)
    return np.where(found, quartiles[:, 1], 0.0), np.where(found, spread, np.inf)


def _histograms(codes: Array, n_bins: int, sigma: float, noise: NoiseSource) -> Array:
    """Noisy counts of shape (n_columns, n_bins)."""
    counts = np.array([np.bincount(own, minlength=n_bins) for own in codes], dtype=float)
    return np.asarray(noise.add_noise(counts, sigma, None))
