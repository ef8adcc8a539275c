"""Products of more than double precision, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from skmixdp._kernels.split import split_product, split_rounding
from skmixdp._linear import GradientEmbedding


def exact_product(P, X):
    """``P^T X`` in fractions; extended precision is the sum of two doubles."""
    high = P.astype(np.float64)
    low = (P - high).astype(np.float64)
    exact = np.vectorize(Fraction, otypes=[object])
    return (exact(high) + exact(low)).T @ exact(X)


@pytest.mark.parametrize("m", [1, 2, 30, 700])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e200])
def test_entries_are_within_their_bound(m, scale):
    rng = np.random.default_rng(m)
    P = scale * (rng.normal(size=(m, 2)).astype(np.longdouble) + 1e-17 * rng.normal(size=(m, 2)))
    X = rng.uniform(-1, 1, size=(m, 3))
    X[m // 2 :] = -X[: m - m // 2]  # most of the sum cancels
    P[m // 2 :] = P[: m - m // 2] * (1 + 1e-9 * rng.normal(size=(m - m // 2, 2)))
    exact = exact_product(P, X)
    found = split_product(P, X)
    error = np.abs((np.vectorize(Fraction, otypes=[object])(found) - exact).astype(np.float64))
    bound = split_rounding(m) * float(np.abs(P).max())
    assert np.all(error <= bound + 2.0**-53 * np.abs(found))
    if m == 700:  # the plain product is farther off than that
        plain = np.abs((np.vectorize(Fraction, otypes=[object])(P.astype(float).T @ X) - exact).astype(float))
        assert plain.max() > 100 * (bound + 2.0**-53 * np.abs(found).max())


def test_what_is_zero_or_not_finite_is_multiplied_plainly():
    X = np.ones((3, 2))
    np.testing.assert_array_equal(split_product(np.zeros((3, 1), np.longdouble), X), np.zeros((1, 2)))
    assert np.isnan(split_product(np.full((3, 1), np.nan, np.longdouble), X)).all()


def test_gradients_of_nearly_dependent_anchors_are_accurate():
    rng = np.random.default_rng(0)
    X, R = rng.normal(size=(40, 30)), rng.normal(size=(40, 4))
    X[20:] = X[:20] * (1 + 1e-3 * rng.normal(size=(20, 30)))
    R[20:] = R[:20]
    embedding = GradientEmbedding(X, R)
    z = rng.normal(size=embedding.n_components)
    weights = embedding._A.astype(np.longdouble) @ z.astype(np.longdouble)
    exact = exact_product(weights[:, np.newaxis] * embedding.R, embedding.X)
    for tolerance in (0.0, np.inf):
        found, bound = embedding.gradient(z, tolerance=tolerance), embedding.rounding(tolerance)
        error = (np.vectorize(Fraction, otypes=[object])(found) - exact).astype(np.float64)
        assert np.linalg.norm(error) <= bound * np.linalg.norm(z)
    assert embedding.rounding(0.0) < 1e-2 * embedding.rounding(np.inf)
