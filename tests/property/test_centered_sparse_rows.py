"""Sparse rows that are centred and whitened by linearity obey the clip."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.catalog import CLIPPERS
from tests.conftest import exactly_whitened
from tests.private_names import (
    SHORTEST_DIFFERENCE,
    RowMap,
    SparseRows,
    Whitening,
    canonical,
    centered_products,
    centered_sparse_rows,
    centered_weighted_sum,
    whitened_entries,
)
from tests.property.spies import assert_as_exact_as_told, assert_clipped, length, with_intercept
from tests.rounding import assert_close

K, D = 4, 5
DTYPES = st.sampled_from(["float32", "float64"])
VALUES = st.one_of(
    st.just(0.0), st.floats(-3, 3, width=32), st.sampled_from([1e-30, 1e-12, 1.0, 1e6, 1e18, -1e18])
)
#: (Bounds are not exact for means so small that their own last bits are subnormal.)
MEANS = st.one_of(
    st.floats(-3, 3).map(lambda mean: mean if abs(mean) > 1e-290 else 0.0),
    st.sampled_from([0.0, 1e-9, 1e6, -1e12]),
)


@st.composite
def whitenings(draw):
    """Mild and strong ones, of one product and of two."""
    r = draw(st.integers(1, D))
    directions = np.linalg.qr(np.random.default_rng(draw(st.integers(0, 99))).normal(size=(D, r)))[0].T
    factors = st.sampled_from([1e-9, 1e-5, 0.01, 0.3, 1.0])
    rest = draw(st.sampled_from([1.0, 1e-3, 0.0]))
    return Whitening(directions, draw(hnp.arrays(np.float64, r, elements=factors)), rest)


@st.composite
def sparse_rows(draw):
    """Rows with zeros, some of them next to the mean or along what is shortened, and the map."""
    mean = draw(hnp.arrays(np.float64, D, elements=MEANS))
    X = draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(D)), elements=VALUES))
    for row in range(draw(st.integers(0, len(X)))):
        X[row] = mean * (1 + draw(st.sampled_from([0.0, 1e-16, 1e-12, 1e-7, 1e-3])))
    whitening = draw(st.one_of(st.none(), whitenings()))
    if whitening is not None:
        for row in range(draw(st.integers(0, len(X)))):
            direction = whitening.directions[draw(st.integers(0, len(whitening.factors) - 1))]
            X[row] = mean + draw(st.sampled_from([1e-3, 1.0, 1e7])) * direction
    normalize, value = draw(st.booleans()), draw(st.sampled_from([None, 0.4]))
    source = draw(st.sampled_from([np.float32, np.float64]))
    bound = draw(st.sampled_from([None, None, 1e-3, 2.0]))
    return X.astype(source), RowMap(mean, normalize, value, whitening, bound=bound)


def true_rows(X, row_map, factors):
    """The rows that the factors stand for, in extended precision."""
    rows = (X.astype(np.longdouble) - row_map.mean.astype(np.longdouble)) * factors[:, None]
    if row_map.whitening is not None:
        rows = exactly_whitened(rows, row_map.whitening)
    return with_intercept(rows, row_map)


AT_THE_MEAN = (np.ones((1, D), np.float32), RowMap(np.ones(D), True, None))
TINY_WHITENING = Whitening(
    np.array([[-0.1460256, 0.15342924, -0.74379973, -0.1218331, 0.62213717]]), np.array([1e-5])
)
TINY = (
    np.zeros((1, D), np.float32),
    RowMap(np.array([1.95837133e-281, 0, 0, 0, 0]), False, None, TINY_WHITENING),
)
SUBNORMAL = (np.zeros((1, D), np.float32), RowMap(np.array([2.3e-309, 0, 0, 0, 0]), True, None))


@given(sparse_rows())
@example(AT_THE_MEAN)
@example(SUBNORMAL)
@example(TINY)
def test_norms_and_entries_are_never_below_the_true_ones(given_rows):
    X, row_map = given_rows
    mapped = centered_sparse_rows(canonical(sp.csr_array(X)), row_map)
    rows = true_rows(X, row_map, mapped.factors)
    assert np.all(mapped.norms >= length(rows))
    assert np.all(mapped.max_abs >= np.abs(rows).max(axis=1))
    if row_map.whitening is not None:
        entries = whitened_entries(sp.csr_array(X), mapped.factors, row_map)
        assert np.all(entries >= np.abs(rows).max(axis=1))
        assert np.all(entries <= np.abs(rows).max(axis=1) + 1e-13 * (1 + mapped.rounding_scale))
    if row_map.normalize:
        assert mapped.norms.max() <= np.hypot(1, row_map.intercept_value or 0) * (1 + 1e-13)
        # Rows that do not lie next to the mean do come out at unit length; deviations whose
        # reciprocal could overflow stay as they are.
        differences = length(true_rows(X, replace(row_map, intercept_value=None), np.ones(len(X))))
        sizes = length(X.astype(np.longdouble)) + length(row_map.mean[None].astype(np.longdouble))
        shortest = 2 * SHORTEST_DIFFERENCE
        far = (differences > shortest * sizes) & (differences > 1e-279)
        bare = length(rows[:, :D])
        expected = 1.0 if row_map.bound is None else np.minimum(1, differences / row_map.bound)[far]
        np.testing.assert_allclose(bare[far].astype(float), np.asarray(expected, float), atol=1e-5)


def source_of(X, row_map, dtype):
    """Rows as a source holds them, and in extended precision."""
    if not row_map.normalize and np.abs(X).max() > 1e15:
        X = X / X.dtype.type(1e6)
    rows = SparseRows(canonical(sp.csr_array(X)), np.arange(len(X)) % K, row_map, np.dtype(dtype))
    return rows, lambda: true_rows(X, row_map, rows._factors)


@given(given_rows=sparse_rows(), dtype=DTYPES, seed=st.integers(0, 2**20))
def test_products_are_as_exact_as_the_clips_are_told(given_rows, dtype, seed):
    d_in = given_rows[1].width(D)
    points = np.random.default_rng(seed).normal(size=(2, d_in))
    assert_as_exact_as_told(*source_of(*given_rows, dtype), points, dtype)


@pytest.mark.parametrize("name", CLIPPERS)
@given(given_rows=sparse_rows(), dtype=DTYPES, centred=st.booleans(), data=st.data())
def test_no_row_contributes_more_than_the_clip_states(name, given_rows, dtype, centred, data):
    W = data.draw(hnp.arrays(np.float64, (K, given_rows[1].width(D)), elements=st.floats(-50, 50)))
    assert_clipped(*source_of(*given_rows, dtype), name, W, dtype, centred=centred)


@given(sparse_rows(), st.integers(0, 2**20))
def test_a_row_alone_adds_what_its_weights_say(given_rows, seed):
    """The sum itself, by linearity, is that of the rows to rounding of their size."""
    X, row_map = given_rows
    X = canonical(sp.csr_array(X))
    mapped = centered_sparse_rows(X, row_map)
    C = np.random.default_rng(seed).normal(size=(X.shape[0], 2)).astype(np.float32)
    total = centered_weighted_sum(X, mapped.factors, row_map, C)
    if row_map.whitening is not None:
        total = row_map.whitening(total)
    rows = true_rows(X.toarray(), row_map, mapped.factors)
    size = np.linalg.norm(C, axis=1) @ np.maximum(mapped.rounding_scale, mapped.norms)
    assert np.abs(total - C.T.astype(np.longdouble) @ rows).max() <= 1e-14 * size + 1e-300


def test_the_properties_above_would_catch_a_norm_that_is_a_difference():
    """The naive square loses all its digits next to the mean; its row would pass unclipped."""
    mean = np.full(D, 1e6)
    X = canonical(sp.csr_array(mean[None] * (1 + 1e-9)))
    row_map = RowMap(mean, False, None)
    square = (X.toarray() ** 2).sum() - 2 * (X @ mean).sum() + mean @ mean
    naive = np.sqrt(max(square, 0))
    true = length(true_rows(X.toarray(), row_map, np.ones(1)))[0]
    assert naive < 0.99 * true or naive > 1.01 * true
    assert true <= centered_sparse_rows(X, row_map).norms[0] <= 3 * SHORTEST_DIFFERENCE * np.linalg.norm(mean)


def test_the_properties_above_would_catch_a_whitened_length_that_is_a_difference():
    """What the directions lack in orthonormality is seen in rows along them."""
    rng = np.random.default_rng(0)
    exact = np.linalg.qr(rng.normal(size=(D, 2)))[0].T
    whitening = Whitening(exact * (1 + 1e-9), np.array([1e-4, 1e-3]))
    X = canonical(sp.csr_array(rng.normal(size=(50, 2)) @ whitening.directions))
    row_map = RowMap(np.zeros(D), False, None, whitening)
    cut = (X @ whitening.directions.T) ** 2 @ (1 - whitening.factors**2)
    naive = np.sqrt(np.maximum((X.toarray() ** 2).sum(axis=1) - cut, 0))
    true = length(true_rows(X.toarray(), row_map, np.ones(50)))
    assert np.mean(naive < true * (1 - 1e-6)) > 0.2
    assert np.all(centered_sparse_rows(X, row_map).norms >= true)


def test_duplicates_are_added_up_in_a_copy():
    X = sp.csr_array((np.array([3.0, -2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    mapped = canonical(X)
    np.testing.assert_array_equal(mapped.toarray(), [[0, 1], [5, 0]])
    assert mapped.nnz == 2 and X.nnz == 3
    assert_close(centered_sparse_rows(mapped, RowMap(None, False, None)).norms, [1, 5])
    points = np.eye(2)
    plain = RowMap(None, False, None)
    np.testing.assert_array_equal(centered_products(mapped, np.ones(2), plain, points), [[0, 1], [5, 0]])
