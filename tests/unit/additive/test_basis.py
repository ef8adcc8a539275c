"""The basis of an additive model: one row at a time, finite for any number, hats that sum to their scale."""

import numpy as np
import pytest

from skmixdp.additive._basis import Basis, Column

KNOTS = np.array([-2.0, 0.0, 1.0, 5.0])
MEAN = np.array([0.125, 0.5, 0.25, 0.125])
BASIS = Basis.of([Column(1.0, 0.5, KNOTS, MEAN, missing=True), Column(0.0, 1.0)], 0.5)
ODD = [-np.inf, -1e308, -2.0, -1.0, 0.0, 1e-320, 0.3, 1.0, 3.0, 5.0, 6.0, 1e308, np.inf, np.nan]


def test_entries_of_a_row():
    rows = BASIS(np.array([[3.0, 2.0], [np.nan, np.nan], [9.0, -np.inf]]))
    # The linear terms, four hats, and that of missing values in the first column.
    mean = np.array([0, 0, *(0.5 * MEAN), 0])
    np.testing.assert_allclose(rows[0] + mean, [1.0, 2.0, 0, 0, 0.25, 0.25, 0], atol=1e-15)
    np.testing.assert_array_equal(rows[1], [0, 0, 0, 0, 0, 0, 0.5])
    np.testing.assert_allclose(rows[2] + mean, [4.0, -4.0, 0, 0, 0, 0.5, 0], atol=1e-15)
    assert BASIS.width == 7
    assert BASIS.hats == [slice(2, 6), slice(6, 6)]
    assert BASIS.of_missing == {0: 6}


def test_hats_sum_to_their_scale_and_rows_are_bounded_for_any_number():
    rows = BASIS(np.column_stack([ODD, ODD]))
    assert np.all(np.isfinite(rows))
    assert np.all(np.abs(rows[:, :2]) <= 4)
    hats = rows[:-1, BASIS.hats[0]] + 0.5 * MEAN  # the last number is missing
    np.testing.assert_allclose(hats.sum(axis=1), 0.5, atol=1e-15)
    assert np.all(hats >= -1e-15)


def test_hats_are_those_of_interpolation():
    x = np.linspace(-4, 7, 200)
    hats = BASIS(np.column_stack([x, x]))[:, BASIS.hats[0]] + 0.5 * MEAN
    wanted = np.stack([np.interp(x, KNOTS, 0.5 * unit) for unit in np.eye(4)], axis=1)
    np.testing.assert_allclose(hats, wanted, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_a_row_is_mapped_alone(dtype):
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(dtype)
    together = BASIS(X)
    for i in (0, 7, 49):
        np.testing.assert_array_equal(BASIS(X[i : i + 1])[0], together[i])
