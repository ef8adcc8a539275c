"""What sparse rows state of their rounding is true, and is not stated for nothing."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from tests.asking import request_of
from tests.conftest import exactly_whitened
from tests.private_names import (
    SHORTEST_DIFFERENCE,
    UNCHANGED,
    RowMap,
    SparseRows,
    SparseTable,
    Whitening,
    sum_error,
)

D, K = 3, 2


def near_the_centre(rng, n, *, whitened):
    """Rows as near to their centre as counts for a difference, and what maps them."""
    mean = rng.normal(size=D)
    mean /= np.linalg.norm(mean)
    away = 2.0 ** rng.uniform(-1, 3) * SHORTEST_DIFFERENCE * rng.normal(size=(n, D))
    whitening = None
    if whitened:
        directions = np.linalg.qr(rng.normal(size=(D, 2)))[0].T
        whitening = Whitening(directions, np.array([0.1, 0.7]))
    row_map = RowMap(mean, bool(rng.integers(2)), None, whitening)
    return sp.csr_array(mean + away), row_map


#: Numbers without rounding.
fractions = np.vectorize(Fraction, otypes=[object])


def exact_sum(X, row_map, factors, C):
    """``sum_i c_i x_i^T`` (k, d) over mapped rows: rational numbers, or extended precision if whitened."""
    lift = fractions if row_map.whitening is None else np.longdouble
    rows = (lift(X) - lift(row_map.mean)) * lift(factors)[:, np.newaxis]
    if row_map.whitening is not None:
        rows = exactly_whitened(rows, row_map.whitening)
    return lift(C).T @ rows


def length(difference):
    return float(np.linalg.norm(difference.astype(np.float64)))


def roundings(seed, n, *, whitened):
    """How far the rounding of a sum moves if each row in turn is zeroed out, and what is stated of it."""
    rng = np.random.default_rng([seed, n])
    X, row_map = near_the_centre(rng, n, whitened=whitened)
    rows = SparseRows(X, np.zeros(n, int), row_map, np.dtype("float64"))
    directions = np.abs(rng.normal(size=(n, K)))  # nearly all in one direction, so that long terms add up
    C = directions / np.linalg.norm(directions, axis=1, keepdims=True) / rows._all.norms[:, np.newaxis]
    C *= 1 - 2.0**-40

    def computed(absent=None):
        def contribute(Z, block):
            weights = C.copy()
            weights[[] if absent is None else absent] = 0
            return weights, None

        request = request_of(np.zeros((1, D)), contribute)
        ((matrix, _),) = rows.private_sums([request])
        return matrix, rows.sum_error(request)

    lift = np.longdouble if whitened else fractions
    dense, factors, all_rows = X.toarray(), rows._factors, np.arange(n)
    whole, stated = computed()
    error = lift(whole) - exact_sum(dense, row_map, factors, C)
    moved = []
    for absent in all_rows:
        rest = all_rows != absent
        other, _ = computed(absent)
        exact = exact_sum(dense[rest], row_map, factors[rest], C[rest])
        moved.append(length(error - (lift(other) - exact)))
    return max(moved), stated, length(error)


@pytest.mark.covering
@pytest.mark.parametrize("whitened", [False, True])
@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_no_row_moves_the_rounding_by_more_than_is_stated(n, whitened):
    for seed in range(6):
        moved, stated, off = roundings(seed, n, whitened=whitened)
        assert moved <= stated.of(1.0)
        assert off <= stated.of(1.0)


@pytest.mark.parametrize("d", [3, 200, 5000])
def test_no_number_of_entries_decides_on_the_blocks(d):
    """Other blocks round the sums of all other rows otherwise."""
    n = 3000
    few = sp.csr_array((np.ones(n), (np.arange(n), np.zeros(n, int))), shape=(n, d))
    one_full = few.tolil()
    one_full[7] = 1.0
    many = sp.hstack([np.ones((n, min(d, 300))), sp.csr_array((n, max(d - 300, 0)))], "csr")
    sizes = set()
    for X in (few, one_full.tocsr(), many, sp.csr_array((n, d))):
        assert X.shape == (n, d)
        rows = SparseTable(X).private_rows(np.zeros(n, int), UNCHANGED, np.dtype("float32"), exact=False)
        seen = []

        def contribute(Z, block, seen=seen):
            seen.append(len(Z))
            return np.zeros_like(Z), None

        rows.private_sums([request_of(np.zeros((1, d)), contribute)])
        sizes.add(tuple(seen))
    assert len(sizes) == 1


def test_whitening_a_sum_is_rounded_too():
    """Terms of the sum are longer than their differences, and whitening rounds the whole sum."""
    rng, n = np.random.default_rng(0), 200
    X, row_map = near_the_centre(rng, n, whitened=True)
    request = request_of(np.zeros((1, D)), lambda Z, block: (Z, None))
    stated = [
        SparseRows(X, np.zeros(n, int), used, np.dtype("float64")).sum_error(request).relative
        for used in (row_map, replace(row_map, whitening=None))
    ]
    later = 2 * n * row_map.whitening.sum_rounding / SHORTEST_DIFFERENCE
    assert stated[0] >= stated[1] + later > stated[1]


@pytest.mark.parametrize("n", [2, 5, 12])
def test_what_is_stated_is_needed(n):
    """The twin: rounding as if no term were longer than the differences would be exceeded."""
    unstretched = sum_error(n, "float64").of(1.0)
    worst = max(roundings(seed, n, whitened=False)[0] for seed in range(6))
    assert worst > unstretched
