"""Four regressions: two made-up linear ones, Friedman's function on squares, and scikit-learn's diabetes.

Bounds of targets are declared, not read from rows. Features of the made-up ones have known scales.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1

from ..problems import Array, Rows

#: Standard deviation of the noise in a made-up target, whose signal has standard deviation 1.
_NOISE = 0.18


def load(cache: Path, *, problem: str, n_train: int = 0, n_test: int = 0) -> Rows:
    """One of the problems; ``n_train`` and ``n_test`` are those of the made-up ones.

    Parameters
    ----------
    cache : Path
        Not used.
    problem : str
        "linear" has 30 independent features of variance 1. "ill-conditioned" has 100 features whose
        covariance has eigenvalues from 1 down to 0.001. "friedman" has Friedman's ten features from -1
        to 1, and their squares. "diabetes" is scikit-learn's, with a quarter of its rows for the test.
    n_train, n_test : int
        Numbers of rows.

    Raises
    ------
    ValueError
        If the problem is unknown.
    """
    if problem == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(X))
        cut = len(X) // 4
        return _split(X[order], y[order], cut, (25.0, 346.0))
    makers = {"linear": _linear, "ill-conditioned": _ill_conditioned, "friedman": _friedman}
    if problem not in makers:
        raise ValueError(f"problem={problem!r}; name one of diabetes, {', '.join(makers)}.")
    X, y, bounds = makers[problem](n_train + n_test, np.random.default_rng(0))
    return _split(X, y, n_test, bounds)


def _split(X: Array, y: Array, n_test: int, bounds: tuple[float, float]) -> Rows:
    X = X.astype(np.float32)
    return Rows(X[n_test:], y[n_test:], X[:n_test], y[:n_test], bounds=bounds)


def _linear(n: int, rng: np.random.Generator) -> tuple[Array, Array, tuple[float, float]]:
    X = rng.standard_normal((n, 30))
    coef = rng.standard_normal(30)
    return X, _targets(X @ (coef / np.linalg.norm(coef)), rng), (-4.0, 4.0)


def _ill_conditioned(n: int, rng: np.random.Generator) -> tuple[Array, Array, tuple[float, float]]:
    turned, _ = np.linalg.qr(rng.standard_normal((100, 100)))
    X = (rng.standard_normal((n, 100)) * np.geomspace(1, 1e-3, 100) ** 0.5) @ turned
    coef = rng.standard_normal(100)
    deviation = np.sqrt(coef @ (turned.T * np.geomspace(1, 1e-3, 100)) @ turned @ coef)
    return X, _targets(X @ (coef / deviation), rng), (-4.0, 4.0)


def _targets(signal: Array, rng: np.random.Generator) -> Array:
    return np.asarray(signal + _NOISE * rng.standard_normal(len(signal)))


def _friedman(n: int, rng: np.random.Generator) -> tuple[Array, Array, tuple[float, float]]:
    """Its targets lie between 0 and 30, but for the noise of variance 1."""
    X, y = make_friedman1(n, noise=1.0, random_state=int(rng.integers(2**31)))
    X = 2 * X - 1
    return np.hstack([X, np.square(X)]), y, (0.0, 30.0)
