"""What peers release of private rows: sums of bounded rows with Gaussian noise at full batch.

Neighbours differ by one row, added or removed; the number of rows is public. Releases compose exactly:
one with standard deviation ``s`` times its sensitivity spends ``1 / s**2`` of the budget ``mu**2``.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import normalize

from skmixdp.privacy import NoiseSource, mu_of_budget

from ..problems import DELTA, Array, Problem

#: By how much rounding may lengthen a row.
_SLACK = 1e-5


def multipliers(epsilon: float, shares: Sequence[float]) -> list[float]:
    """Noise multipliers of releases that together spend epsilon.

    Parameters
    ----------
    epsilon : float
        The budget, at the delta of every method.
    shares : sequence of float
        The share of each release in the squared Gaussian-DP parameter; they add up to 1.

    Raises
    ------
    ValueError
        If the shares do not add up to 1.
    """
    if not np.isclose(sum(shares), 1) or min(shares) <= 0:
        raise ValueError(f"shares={list(shares)!r} must be positive and add up to 1.")
    mu = mu_of_budget(epsilon, DELTA)
    return [float(1 / (mu * np.sqrt(share))) for share in shares]


def noise_of(problem: Problem, epsilon: float, stream: int = 0) -> NoiseSource:
    """The noise of one budget, from the problem's seed.

    Settings of a method share it, since only one of them would be released. ``stream`` tells releases of one
    setting apart that do not draw from the same source one after the other.
    """
    return NoiseSource(seed_of(problem, epsilon, stream))


def seed_of(problem: Problem, epsilon: float, stream: int) -> int:
    """The seed of :func:`noise_of`."""
    words = [problem.seed, round(1000 * epsilon), stream]
    return int(np.random.SeedSequence(words).generate_state(1)[0])


def bounded(X: Array) -> Array:
    """The rows themselves.

    Raises
    ------
    ValueError
        If one is longer than 1, which the sensitivity of a release rests on.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", X, X).max(initial=0.0)))
    if longest > 1 + _SLACK:
        raise ValueError(f"a row has length {longest:g}; scale rows to length 1 at most.")
    return X


def unit_rows(problem: Problem, intercept: float = 0.0) -> tuple[Array, Array, Array]:
    """Private, public and test rows of unit length, float32.

    They are centred by the mean of the public rows where there are any. Where the problem names a longest
    length, rows are not centred, and those below keep theirs, as a share of it. ``intercept`` is the value
    of a last column before the row is scaled to unit length again; 0 adds none.
    """
    longest = problem.longest
    centre = problem.X_pub.mean(axis=0) if len(problem.X_pub) and longest is None else np.float32(0)

    def prepare(X: Array) -> Array:
        if not len(X):
            return np.empty((0, X.shape[1] + bool(intercept)), dtype=np.float32)
        unit = normalize(X - centre) if longest is None else shortened(X, longest)
        if intercept:
            unit = np.hstack([unit, np.full((len(X), 1), intercept)]) / np.hypot(1, intercept)
        return np.asarray(unit, dtype=np.float32)

    return prepare(problem.X), prepare(problem.X_pub), prepare(problem.X_test)


def shortened(X: Array, longest: float) -> Array:
    """Rows divided by a length, and shortened to 1 where they were longer."""
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), longest))


def codes(problem: Problem, y: Array) -> Array:
    """Labels as places in the declared classes."""
    return np.searchsorted(problem.classes, y)


def class_sums(X: Array, y: Array, n_classes: int) -> Array:
    """The sum of the rows of each class, float64, of shape (n_classes, n_features).

    ``y`` holds codes. A row is in one class, so the sensitivity of all sums together is a row's length.
    """
    found = np.zeros((n_classes, X.shape[1]))
    for label in np.unique(y):
        found[label] = X[y == label].sum(axis=0, dtype=np.float64)
    return found


def noisy_class_sums(X: Array, y: Array, n_classes: int, multiplier: float, noise: NoiseSource) -> Array:
    """Sums of the rows of each class with noise. Rows have length 1 at most: sensitivity 1."""
    return np.asarray(noise.add_noise(class_sums(bounded(X), y, n_classes), multiplier, None))


def noisy_second_moment(X: Array, multiplier: float, noise: NoiseSource) -> Array:
    """The symmetric matrix ``sum x x^T`` with noise. Rows have length 1 at most: sensitivity 1.

    A row's matrix has Frobenius norm ``|x|^2``. The noise is that of independent entries, made symmetric.
    """
    rows = bounded(X)
    noisy = noise.add_noise((rows.T @ rows).astype(np.float64), multiplier, None)
    return np.asarray((noisy + noisy.T) / 2)


def edge(multiplier: float, n_features: int) -> float:
    """Largest eigenvalue of the noise in a second moment, about: that of the Gaussian orthogonal ensemble."""
    return float(multiplier * np.sqrt(2 * n_features))
