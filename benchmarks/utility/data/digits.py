"""scikit-learn's digits: 8 x 8 pixels, no network."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ..problems import Rows


def load(cache: Path, *, n_test: int = 400) -> Rows:
    """1,797 images, of which ``n_test`` for the test, drawn once for all."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:n_test], order[n_test:]
    X = X.astype(np.float32)
    return Rows(X[train], y[train], X[test], y[test])
