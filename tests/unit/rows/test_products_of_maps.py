"""Products of mapped rows that are never formed, and bounds on them, agree with those of mapped rows."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.exceptions import NotPrivateWarning
from tests.private_names import Columns, RowMap, Whitening

D, K = 160, 5
RNG = np.random.default_rng(0)
SCALES = 2.0 ** RNG.uniform(-3, 3, D)
MEAN = RNG.standard_normal(D)
ROWS = MEAN + SCALES * RNG.standard_normal((700, D))
POINTS = RNG.standard_normal((K, D))


def whitening(n_directions, least):
    directions = np.linalg.qr(RNG.standard_normal((D, n_directions)))[0].T
    return Whitening(directions, np.geomspace(1, least, n_directions))


PROJECTION = Whitening(whitening(20, 1.0).directions, np.ones(20), 0.0)
WHITENINGS = [
    None,
    PROJECTION,
    whitening(20, 0.3),
    whitening(60, 0.07),
    whitening(150, 0.2),
    whitening(D, 0.5),
    whitening(150, 1e-6),
]
MAPS = [
    RowMap(mean, True, 0.3, white, unit_first=unit_first, columns=columns, bound=bound)
    for mean, white, unit_first, columns, bound in product(
        (None, MEAN), WHITENINGS, (False, True), (None, Columns(MEAN, 1 / SCALES)), (None, 40.0)
    )
] + [RowMap(MEAN, False, None), RowMap(None, False, None, WHITENINGS[4])]


def exact(row_map, X):
    return row_map(X, np.float64)[:, :D] @ POINTS.T


@pytest.mark.parametrize("row_map", MAPS)
def test_products_are_those_of_mapped_rows(row_map):
    # Whitened rows are off by a few roundings over the smallest factor.
    least = 1.0 if row_map.whitening is None else row_map.whitening.factors.min()
    rounding = 1e-13 / least * np.abs(POINTS).sum()
    for X in (ROWS, np.asfortranarray(ROWS), ROWS[::3], ROWS.astype(np.float32), ROWS[:1], ROWS[:0]):
        size = 1.0 if row_map.normalize else np.abs(X).max(initial=0.0)
        products = row_map.times(X, POINTS)
        np.testing.assert_allclose(products, exact(row_map, X), rtol=0, atol=rounding * size)


@pytest.mark.parametrize("row_map", MAPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_contain_the_products(row_map, dtype):
    X = ROWS.astype(dtype)
    bounds = row_map.bounds_of_times(X, POINTS)
    many = row_map.whitening is not None and len(row_map.whitening.factors) >= 48
    assert (bounds is not None) == (many and row_map.normalize)
    if bounds is not None:
        check_bounds(bounds, exact(row_map, X))


def check_bounds(bounds, Z):
    (one, other), rounding = bounds[0], bounds[1][:, np.newaxis]
    assert np.all(np.minimum(one, other) - rounding <= Z)
    assert np.all(np.maximum(one, other) + rounding >= Z)


@pytest.mark.parametrize("far", [0.0, 10.0, 1e3, 1e5, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_contain_the_products_of_rows_far_from_zero(dtype, far):
    # Such rows are multiplied with their mean still in them, which takes most of their precision.
    row_map = RowMap((MEAN + far).astype(dtype).astype(float), True, 0.3, whitening(150, 0.2))
    X = (ROWS + far).astype(dtype)
    bounds = row_map.bounds_of_times(X, POINTS)
    check_bounds(bounds, exact(row_map, X))
    assert (np.median(bounds[1]) < 1e-3) == (far < (1.0 if dtype == np.float32 else 1e5 + 1))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e20, 1e300])
def test_rows_of_any_length(scale):
    for row_map in (RowMap(None, True, None, white) for white in WHITENINGS):
        X = np.vstack([ROWS[:5] / 100 * scale, ROWS[5:9], np.zeros((1, D))])
        np.testing.assert_allclose(row_map.times(X, POINTS), exact(row_map, X), rtol=0, atol=1e-6)


def fitted(k, *, multilabel=False):
    """A classifier of maps with many directions, whose outputs are near each other."""
    rng = np.random.default_rng(1)
    X = ROWS[rng.integers(len(ROWS), size=900)] + 0.1 * rng.standard_normal((900, D))
    y = rng.integers(2, size=(900, k)) if multilabel else rng.integers(k, size=900)
    model = MixedDPLogisticRegression(
        "adamix", epsilon=1.0, rows=RowMapping(whiten=True), scale=False, random_state=0
    )
    with pytest.warns(NotPrivateWarning):
        return model.fit(X[300:], y[300:], X_pub=X[:300], y_pub=y[:300]), X


@pytest.mark.parametrize(("k", "multilabel"), [(2, False), (3, False), (4, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_are_those_of_the_outputs(k, multilabel, dtype):
    model, X = fitted(k, multilabel=multilabel)
    assert len(model._row_map.whitening.factors) >= 128
    X = X.astype(dtype)
    # Intercepts with which the lengths of many rows decide.
    model.intercept_ = -np.median(model.decision_function(X).reshape(len(X), -1) - model.intercept_, axis=0)
    Z = model.decision_function(X)
    label = (Z > 0).astype(int) if multilabel or k == 2 else Z.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), label)
    few = range(50)
    np.testing.assert_array_equal(np.concatenate([model.predict(X[i : i + 1]) for i in few]), label[few])


def test_outputs_that_are_equal_are_decided_as_before():
    model, X = fitted(3)
    model.coef_, model.intercept_ = np.zeros_like(model.coef_), np.zeros(3)
    assert not model.predict(X).any()
    model.coef_[0] = 1.0  # the second and the third output are 0, whatever the order of sums
    assert set(model.predict(X)) == set(model.decision_function(X).argmax(axis=1)) == {0, 1}


def test_coefficients_that_change_are_whitened_again():
    model, X = fitted(3)
    before = model.predict(X)
    model.coef_ *= -1
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert (model.predict(X) != before).any()


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_predictions_take_little_memory(method):
    model, X = fitted(3)
    X = np.tile(X, (50, 1))  # 55 MiB
    predict = getattr(model, method)
    predict(X[:1])
    tracemalloc.start()
    predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20
