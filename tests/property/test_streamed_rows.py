"""Streamed rows that are whitened by linearity obey the clip, however much of them is shortened."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.asking import request_of
from tests.catalog import CLIPPERS
from tests.conftest import exactly_whitened
from tests.private_names import UNDERFLOW_PAD, Batch, RowMap, StreamedRows, Whitening, array_shard
from tests.property.spies import assert_as_exact_as_told, assert_clipped, length, with_intercept

K, D = 4, 5
VALUES = st.one_of(st.just(0.0), st.floats(-3, 3, width=16), st.sampled_from([2**-24, 1e-3, 1.0, 6e4, -6e4]))
#: Lengths up to which rows keep their length.
BOUNDS = st.sampled_from([None, 1e-3, 2.0])

DTYPES = st.sampled_from(["float32", "float64"])


@st.composite
def streamed_rows(draw):
    """Rows of which some lie nearly along what is shortened, and the map."""
    n_directions = draw(st.integers(1, D))
    drawn = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(D, n_directions))
    directions = np.linalg.qr(drawn)[0].T
    factors = draw(hnp.arrays(np.float64, n_directions, elements=st.sampled_from([0.01, 0.011, 0.3, 1.0])))
    mean = draw(hnp.arrays(np.float64, D, elements=st.floats(-3, 3, width=16)))
    source = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    X = draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(D)), elements=VALUES))
    for row in range(draw(st.integers(0, len(X)))):
        far, along = draw(st.sampled_from([1e-4, 1.0, 1e3])), draw(st.integers(0, n_directions - 1))
        X[row] = mean + far * directions[along]
    normalize, value = draw(st.booleans()), draw(st.sampled_from([None, 0.4]))
    whitening = Whitening(directions, factors, draw(st.sampled_from([1.0, 0.5, 0.0])))
    row_map = RowMap(mean, normalize, value, whitening)
    return X.astype(source), replace(row_map, unit_first=draw(st.booleans()), bound=draw(BOUNDS))


def streamed(X, row_map, dtype):
    return StreamedRows(
        [array_shard("X", (X.shape, X.dtype), lambda: X)], np.arange(len(X)) % K, row_map, np.dtype(dtype)
    )


def true_rows(X, source, row_map):
    """The rows that contribute, in extended precision."""
    multiplied = source._map(X, source._factors, source._memory(len(X)))
    if source._map.whitening is None:
        return multiplied.astype(np.longdouble)
    return with_intercept(exactly_whitened(multiplied, row_map.whitening), row_map)


ALONG = (
    np.array([[1, 0, 0, 0, 0], [1, 1e-3, 0, 0, 0]], np.float32),
    RowMap(None, True, None, Whitening(np.eye(1, 5), np.array([0.01]))),
)


@given(given_rows=streamed_rows(), dtype=DTYPES, seed=st.integers(0, 2**20))
@example(given_rows=ALONG, dtype="float32", seed=0)
@example(given_rows=ALONG, dtype="float64", seed=0)
def test_norms_entries_and_products_are_as_the_clips_are_told(given_rows, dtype, seed):
    X, row_map = given_rows
    source = streamed(X, row_map, dtype)
    points = np.random.default_rng(seed).normal(size=(2, row_map.width(D)))
    block = assert_as_exact_as_told(source, lambda: true_rows(X, source, row_map), points, dtype)
    rows = true_rows(X, source, row_map)
    # Norms of rows that are whitened already are only exact to the rounding that clips allow for.
    slack = 2.0**-33 if source._map.whitening is None else 0.0
    assert np.all(block.norms >= length(rows) * (1 - slack))
    assert np.all(block.max_abs >= np.abs(rows).max(axis=1))
    assert np.all(block.rounding_scale >= block.norms)
    # Not more than rounding above it, either: at most a hundredfold, where rows are shortened so much.
    eps = float(np.finfo(dtype).eps)
    assert np.all(block.norms <= length(rows) * (1 + 1000 * eps + 1e-7) + UNDERFLOW_PAD)


@pytest.mark.parametrize("name", CLIPPERS)
@given(given_rows=streamed_rows(), dtype=DTYPES, centred=st.booleans(), data=st.data())
def test_no_row_contributes_more_than_the_clip_states(name, given_rows, dtype, centred, data):
    X, row_map = given_rows
    W = data.draw(hnp.arrays(np.float64, (K, row_map.width(D)), elements=st.floats(-50, 50)))
    source = streamed(X, row_map, dtype)
    assert_clipped(source, lambda: true_rows(X, source, row_map), name, W, dtype, centred=centred)


def test_the_property_above_would_catch_lengths_in_the_rows_own_precision():
    """In float32, what is left of a row along a direction that is shortened is made of rounding."""
    rng = np.random.default_rng(0)
    directions, factors = np.linalg.qr(rng.normal(size=(D, 1)))[0].T, np.array([0.01])
    rows = (directions + 1e-3 * rng.normal(size=(500, D))).astype(np.float32)
    true = length(exactly_whitened(rows, Whitening(directions, factors)))
    matrix = (np.eye(D) + directions.T @ ((factors - 1)[:, None] * directions)).astype(np.float32)
    naive = np.linalg.norm((rows @ matrix).astype(np.float64), axis=1)
    assert np.mean(naive < true * (1 - 1e-7)) > 0.1
    source = streamed(rows, RowMap(None, False, None, Whitening(directions, factors)), "float32")
    assert np.all(source._norms >= true)


def test_lengths_are_those_of_the_rows_in_a_block_of_any_size():
    """A product rounds a row in another way if fewer rows are whitened with it, as in a random batch."""
    rng = np.random.default_rng(0)
    n, d, r = 600, 96, 60
    directions = np.linalg.qr(rng.normal(size=(d, r)))[0].T
    X = (5 * rng.normal(size=(n, r)) @ directions + 0.01 * rng.normal(size=(n, d))).astype(np.float32)
    row_map = RowMap(0.1 * rng.normal(size=d), True, None, Whitening(directions, np.full(r, 0.05)), bound=1e3)
    rows, excess = streamed(X, row_map, np.float32), []

    def contribute(Z, block):
        true = np.linalg.norm(block.X.astype(np.float64), axis=1)
        excess.append(true / block.norms - 1)
        return None, np.ones((len(Z), 1))

    for start in range(100):
        mask = np.zeros(n, bool)
        mask[start : start + 1 + start % 3] = True
        rows.private_sums([request_of(np.zeros((1, d)), contribute, Batch(members=mask))])
    assert np.concatenate(excess).max() <= 2**-33
