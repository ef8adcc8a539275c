"""The basis of an additive model: one row at a time, finite for any number, hats that sum to 1."""

import numpy as np
import pytest

from tests.private_names import ArrayTable, Basis, Column

KNOTS = np.array([-2.0, 0.0, 1.0, 5.0])
MEAN = np.array([0.125, 0.5, 0.25, 0.125])
BASIS = Basis.of([Column(1.0, 0.5, KNOTS, MEAN, missing=True), Column(0.0, 1.0)])
ODD = [-np.inf, -1e308, -2.0, -1.0, 0.0, 1e-320, 0.3, 1.0, 3.0, 5.0, 6.0, 1e308, np.inf, np.nan]


def test_entries_of_a_row():
    rows = BASIS(np.array([[3.0, 2.0], [np.nan, np.nan], [9.0, -np.inf]]))
    # The linear terms, four hats, and that of missing values in the first column.
    mean = np.array([0, 0, *MEAN, 0])
    np.testing.assert_allclose(rows[0] + mean, [1.0, 2.0, 0, 0, 0.5, 0.5, 0], atol=1e-15)
    np.testing.assert_array_equal(rows[1], [0, 0, 0, 0, 0, 0, 1.0])
    np.testing.assert_allclose(rows[2] + mean, [4.0, -4.0, 0, 0, 0, 1.0, 0], atol=1e-15)
    assert BASIS.width == 7
    assert BASIS.hats == [slice(2, 6), slice(6, 6)]
    assert BASIS.missing_entries == {0: 6}


def test_hats_sum_to_one_and_rows_are_bounded_for_any_number():
    rows = BASIS(np.column_stack([ODD, ODD]))
    assert np.all(np.isfinite(rows))
    assert np.all(np.abs(rows[:, :2]) <= 4)
    hats = rows[:-1, BASIS.hats[0]] + MEAN  # the last number is missing
    np.testing.assert_allclose(hats.sum(axis=1), 1.0, atol=1e-15)
    assert np.all(hats >= -1e-15)


def test_hats_are_those_of_interpolation():
    x = np.linspace(-4, 7, 200)
    hats = BASIS(np.column_stack([x, x]))[:, BASIS.hats[0]] + MEAN
    wanted = np.stack([np.interp(x, KNOTS, unit) for unit in np.eye(4)], axis=1)
    np.testing.assert_allclose(hats, wanted, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_a_row_is_mapped_alone(dtype):
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(dtype)
    together = BASIS(X)
    for i in (0, 7, 49):
        np.testing.assert_array_equal(BASIS(X[i : i + 1])[0], together[i])


SPREAD = np.array([0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.1, 0.1, 0.2])
COLUMNS = [
    Column(1.0, 0.5, KNOTS, MEAN, missing=True),
    Column(0.0, 1.0),
    Column(2.0, 1.0, np.arange(9.0), SPREAD),
]
PAIRED = Basis.of(COLUMNS, pairs=((0, 2), (1, 0)))


def test_products_are_of_centred_coarse_hats():
    single, first = Basis.of(COLUMNS), PAIRED.n_single
    assert first == single.width
    assert PAIRED.products == [slice(first, first + 16), slice(first + 16, first + 20)]
    assert PAIRED.width == first + 20
    X = np.random.default_rng(0).normal(size=(50, 3)) * 3
    rows = PAIRED(X)
    np.testing.assert_array_equal(rows[:, :first], single(X))
    coarse = [0.0, 2.0, 5.0, 8.0]

    def hats(values, knots, mean):
        return np.stack([np.interp(values, knots, unit) for unit in np.eye(len(knots))], axis=1) - mean

    one = hats(X[:, 0], KNOTS, MEAN)
    other = hats(X[:, 2], coarse, SPREAD @ hats(np.arange(9.0), coarse, 0.0))
    wanted = (one[:, :, np.newaxis] * other[:, np.newaxis]).reshape(50, 16)
    np.testing.assert_allclose(rows[:, PAIRED.products[0]], wanted, atol=1e-14)
    np.testing.assert_allclose(rows[:, PAIRED.products[1]], rows[:, [1]] * one, atol=1e-14)


def test_products_of_a_row_are_its_own_and_0_where_a_value_is_missing():
    X = np.column_stack([ODD, ODD[::-1], np.roll(ODD, 3)])
    together = PAIRED(X)
    assert np.all(np.isfinite(together))
    assert np.all(np.abs(together[:, PAIRED.n_single :]) <= 4)
    for i in range(len(X)):
        np.testing.assert_array_equal(PAIRED(X[i : i + 1])[0], together[i])
        for (one, other), products in zip(PAIRED.pairs, PAIRED.products, strict=True):
            assert not np.isnan(X[i, [one, other]]).any() or not together[i, products].any()


def test_rows_with_products_are_held_as_they_are():
    assert not PAIRED.has_curves
    assert type(ArrayTable(np.zeros((3, 3))).transformed(PAIRED)) is ArrayTable
