"""Fitted transformers of scikit-learn for maps whose numbers are known."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import Normalizer, StandardScaler

Array = NDArray[Any]


def scaler(d: int, *, mean: Array | None = None, scale: Array | None = None) -> StandardScaler:
    """``(x - mean) / scale``."""
    step = StandardScaler(with_mean=mean is not None, with_std=scale is not None)
    step.mean_ = None if mean is None else mean.copy()
    step.scale_ = scale
    step.var_ = None if scale is None else scale**2
    step.n_samples_seen_ = 1
    step.n_features_in_ = d
    return step


def normalizer(norm: str, d: int) -> Normalizer:
    """Rows divided by their norm."""
    step = Normalizer(norm)
    step.n_features_in_ = d
    return step


def projection(components: Array) -> TruncatedSVD:
    """``x @ components.T``, as a TruncatedSVD with fitted attributes."""
    step = TruncatedSVD(n_components=len(components))
    step.components_ = np.array(components, order="C")
    step.n_features_in_ = components.shape[1]
    return step
