"""Centre and spread of columns, by which peers scale tables."""

import warnings

import numpy as np

from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import epsilon_of

from ..problems import DELTA, Array

#: Entries are cut at this number of spreads.
CUT = 8.0

#: Interquartile range of the standard normal law.
_NORMAL_RANGE = 1.349


def scaled(X: Array, center: Array, spread: Array, cut: float) -> Array:
    """Entries less the centre, in spreads, cut at some."""
    return np.asarray(np.clip((X - center) / spread, -cut, cut))


def of_rows(X: Array) -> tuple[Array, Array]:
    """Mean, and the larger of the standard deviation and the interquartile range; 1 for constant columns.

    The range is divided by that of the standard normal law.
    """
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    spread = np.maximum((high - low) / _NORMAL_RANGE, X.std(axis=0))
    return X.mean(axis=0), np.where(spread > 0, spread, 1.0)


def private(X: Array, mu: float, seed: int) -> tuple[Array, Array]:
    """Centre and spread of private columns, without any bounds, by the library's :class:`NoisyScaler`.

    ``mu`` is the Gaussian-DP parameter of all its releases together. A column whose spread noise hides has
    spread 1.
    """
    scaler = NoisyScaler(float(epsilon_of(1 / mu, 1, delta=DELTA)), DELTA, random_state=seed)
    with warnings.catch_warnings():
        # The seed is meant, rows repeat, and with small budgets noise hides columns.
        warnings.simplefilter("ignore", UserWarning)
        scaler.fit(X)
    return scaler.mean_, scaler.scale_
