"""Rows of curves, kept as a piece and a place in it, obey the clip and the rounding that is stated."""

from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from tests.asking import request_of
from tests.conftest import exactly_whitened
from tests.private_names import (
    SHORTEST_DIFFERENCE,
    Basis,
    Batch,
    Column,
    MappedPiecewiseRows,
    RowMap,
    Whitening,
    centered_piecewise_rows,
    classification_loss,
    compiled_pieces,
    scipy_pieces,
    sum_error,
)
from tests.property.spies import assert_as_exact_as_told, length, with_intercept

LOOPS = [False, pytest.param(True, marks=pytest.mark.skipif(not find_spec("numba"), reason="needs numba"))]
ODD = [-np.inf, -1e308, -7.0, 0.0, 1e-320, 0.3, 1e-7, 5.0, 1e30, np.inf, np.nan]


def basis(rng, n_curves, n_lines):
    """Curves with knots anywhere, some with nearly all rows at a knot, next to columns without knots."""
    columns = []
    for _ in range(n_curves):
        knots = np.sort(rng.normal(size=rng.integers(3, 9))) * 10.0 ** rng.integers(-3, 4)
        mean = rng.dirichlet(np.full(len(knots), rng.choice([1.0, 1e-3])))
        center, factor = rng.choice(knots), 1 / np.ptp(knots) * 10.0 ** rng.integers(-1, 3)
        columns.append(Column(center, factor, knots, mean, missing=bool(rng.integers(2))))
    columns += [Column(rng.normal(), 3.0, missing=bool(rng.integers(2))) for _ in range(n_lines)]
    return Basis.of(columns)


def piecewise(rng, n, *, loops=False):
    """Rows, some of them odd ones and at knots."""
    chosen = basis(rng, rng.integers(0, 4), rng.integers(1, 3))
    X = rng.normal(size=(n, len(chosen.knots))) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    odd = rng.random(X.shape) < 0.2
    X[odd] = rng.choice(ODD, odd.sum())
    for j, knots in enumerate(chosen.knots):
        if len(knots):
            X[rng.random(n) < 0.2, j] = rng.choice(knots)
    return (
        replace(
            chosen.piecewise([X], len(X), np.empty), loops=compiled_pieces() if loops else scipy_pieces()
        ),
        chosen,
        X,
    )


def exact_rows(rows):
    """The rows that pieces and places stand for, in extended precision."""
    vertices, t = rows.vertices.toarray().astype(np.longdouble), rows.parts.astype(np.longdouble)[:, :, None]
    at = rows.places.astype(int)
    exact = ((1 - t) * vertices[at] + t * vertices[at + 1]).sum(axis=1)
    exact[:, rows.of_lines] += rows.lines
    return exact * rows.factors.astype(np.longdouble)[:, None]


def mapped_exactly(rows, row_map, factors):
    exact = exact_rows(rows)
    if row_map.mean is not None:
        exact = exact - row_map.mean.astype(np.longdouble)
    exact = exact * factors.astype(np.longdouble)[:, None]
    if row_map.whitening is not None:
        exact = exactly_whitened(exact, row_map.whitening)
    return with_intercept(exact, row_map)


def a_map(rng, rows):
    """A map of the rows, to whose mean some of them are near."""
    mean = rng.normal(size=rows.shape[1])
    if rng.integers(2):
        mean = exact_rows(rows)[0].astype(float) * (1 + rng.choice([0.0, 1e-12, 1e-6, 1e-3]))
    whitening = None
    if rng.integers(2):
        directions = np.linalg.qr(rng.normal(size=(rows.shape[1], min(3, rows.shape[1]))))[0].T
        whitening = Whitening(
            directions, rng.choice([1e-5, 0.1, 1.0], len(directions)), rng.choice([0.0, 1.0])
        )
    value, bound = rng.choice([None, 0.3]), rng.choice([None, 2.0])
    used = None if rng.random() < 0.2 else mean
    return RowMap(used, bool(rng.integers(2)), value, whitening, bound=bound)


@given(st.integers(0, 2**20))
def test_pieces_stand_for_the_rows_of_the_basis(seed):
    rows, chosen, X = piecewise(np.random.default_rng(seed), 20)
    wanted = chosen(X)
    np.testing.assert_allclose(rows.toarray(), wanted, atol=2e-6)
    np.testing.assert_allclose(rows.lengths, length(exact_rows(rows)).astype(float), rtol=1e-6, atol=1e-6)
    alone = chosen.piecewise([X[3:4]], 1, np.empty)
    np.testing.assert_array_equal(alone.places[0], rows.places[3])
    np.testing.assert_array_equal(alone.parts[0], rows.parts[3])
    np.testing.assert_array_equal(alone.lines[0], rows.lines[3])
    assert alone.lengths[0] == rows.lengths[3]


def longest_terms(rows, measured):
    """Lengths of the terms that rows add to sums for vertices: at the longer end of their pieces."""
    ends = [replace(rows, parts=np.full_like(rows.parts, end)) for end in (0.0, 1.0)]
    return measured.factors * np.maximum(*(length(exact_rows(end)) for end in ends))


@given(st.integers(0, 2**20))
def test_norms_and_entries_are_never_below_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    rows = piecewise(rng, 12)[0]
    if rng.integers(2):
        rows = rows.at_unit_length()
    row_map = a_map(rng, rows)
    measured = centered_piecewise_rows(rows, row_map)
    exact = mapped_exactly(rows, row_map, measured.factors)
    assert np.all(measured.norms >= length(exact))
    assert np.all(measured.max_abs >= np.abs(exact).max(axis=1))
    if row_map.normalize and row_map.mean is not None:
        assert measured.norms.max() <= np.hypot(1, row_map.intercept_value or 0) * (1 + 1e-12)
    # No term of a sum for vertices is a thousand times longer than the row is said to be.
    assert np.all(longest_terms(rows, measured) * SHORTEST_DIFFERENCE <= measured.norms * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(12))
def test_norms_of_rows_near_the_mean_cover_what_cancels(seed):
    """The square of a difference is computed from larger squares, whose rounding is added."""
    rng = np.random.default_rng(seed)
    chosen = basis(rng, 6, 3)
    near = chosen.center + rng.normal(size=9) / chosen.factor
    away = rng.choice([1e-3, 3e-3, 1e-2], size=(100, 1)) * rng.normal(size=(100, 9))
    rows = chosen.piecewise([near * (1 + away)], 100, np.empty)
    row_map = RowMap(exact_rows(rows)[0].astype(float), True, None)
    measured = centered_piecewise_rows(rows, row_map)
    assert np.all(measured.norms >= length(mapped_exactly(rows, row_map, measured.factors)))


@pytest.mark.skipif(not find_spec("numba"), reason="needs numba")
@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_rounding_of_a_compiled_clip_is_taken_off_its_threshold(m):
    """Residuals of one row at a time, whose length is said to be a number that is no power of two."""
    loops, rng = compiled_pieces(), np.random.default_rng(m)
    row = np.zeros((1, 1), np.uint16), np.ones((1, 1), "f4"), np.zeros((1, 1), "f4")
    for said in rng.uniform(50, 100, 400).astype("f4"):
        points = rng.normal(size=(m, 2)), np.zeros((m, 1)), *np.zeros((2, m))
        of_row = np.ones(1), np.zeros(1, np.int8), np.array([said])
        C = loops.clipped_sums(*row, *points, *of_row, threshold=0.5)[:, -1].astype(np.longdouble)
        assert 0.49 < float(length(C) * said) <= 0.5 * (1 + 2**-24)


@pytest.mark.parametrize("away", [0.0, 1e-200, 1e-9, 1e-4, 0.1])
def test_a_row_that_is_shorter_than_its_vertices(away):
    """Next to the knot that nearly all rows have, a row is nearly 0, and its vertices are not."""
    column = Column(0.0, 1.0, np.array([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    rows = Basis.of([column]).piecewise([np.array([[away]])], 1, np.empty)
    for mean in (None, np.zeros(4)):
        measured = centered_piecewise_rows(rows, RowMap(mean, True, None))
        assert np.all(longest_terms(rows, measured) * SHORTEST_DIFFERENCE <= measured.norms * (1 + 1e-12))


@pytest.mark.parametrize("loops", LOOPS)
@given(seed=st.integers(0, 2**20), dtype=st.sampled_from(["float32", "float64"]), m=st.integers(1, 9))
def test_products_are_as_exact_as_the_clips_are_told(loops, seed, dtype, m):
    rng = np.random.default_rng(seed)
    rows = piecewise(rng, 12, loops=loops)[0]
    row_map = a_map(rng, rows)
    source = MappedPiecewiseRows(rows, np.zeros(12), row_map, np.dtype(dtype))
    points = rng.normal(size=(m, row_map.width(rows.shape[1])))
    assert_as_exact_as_told(source, lambda: mapped_exactly(rows, row_map, source._factors), points, dtype)


def roundings(seed, n, *, loops, m):
    """How far the rounding of a sum moves if each row in turn is zeroed out, and what is stated of it."""
    rng = np.random.default_rng([seed, n])
    chosen = basis(rng, 2, 1)
    near = np.array([chosen.center + rng.choice([1e-5, 1e-3]) * rng.normal(size=3) / chosen.factor] * n)
    rows = chosen.piecewise([near * (1 + 1e-4 * rng.normal(size=near.shape))], n, np.empty)
    rows = replace(rows, loops=compiled_pieces() if loops else scipy_pieces())
    mean = exact_rows(rows).mean(axis=0).astype(float)
    source = MappedPiecewiseRows(rows, np.zeros(n, int), RowMap(mean, True, None), np.dtype("float64"))
    C = np.abs(rng.normal(size=(n, m)))  # nearly all in one direction, so that long terms add up
    C *= (1 - 2.0**-40) / np.linalg.norm(C, axis=1, keepdims=True) / source._all.norms[:, None]
    exact = mapped_exactly(rows, source._map, source._factors)

    def error(taking_part):
        weights = np.where(taking_part[:, None], C, 0.0)
        request = request_of(np.zeros((1, rows.shape[1])), lambda Z, block: (weights.copy(), None))
        ((matrix, _),) = source.private_sums([request])
        return matrix - weights.T.astype(np.longdouble) @ exact, source.sum_error(request)

    whole, stated = error(np.ones(n, bool))
    moved = [float(np.linalg.norm((whole - error(np.arange(n) != i)[0]).astype(float))) for i in range(n)]
    return max(moved), stated


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_no_row_moves_the_rounding_by_more_than_is_stated(n, loops):
    for seed in range(6):
        moved, stated = roundings(seed, n, loops=loops, m=2 if n < 40 else 9)
        assert moved <= stated.of(1.0)


def test_what_is_stated_is_needed():
    """The twin: rounding as if terms were no longer than the rows would be exceeded."""
    worst = max(
        roundings(seed, n, loops=False, m=2)[0] / sum_error(n, "float64").of(1.0)
        for seed in range(6)
        for n in (2, 5)
    )
    assert worst > 1


@pytest.mark.parametrize("loops", LOOPS)
@given(seed=st.integers(0, 2**20), k=st.integers(2, 6), scale=st.sampled_from([1.0, 1e3, 1e30]))
def test_clips_of_loops_give_what_other_rows_give(loops, seed, k, scale):
    """With a block of rows or several, with all rows or some; no row contributes more than the clip says."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([5, 1500]))
    rows = piecewise(rng, n, loops=loops)[0]
    row_map = replace(a_map(rng, rows), normalize=True)
    loss, clip = classification_loss(k), L2Clip(float(rng.choice([0.01, 0.5])))
    y = rng.integers(k, size=n).astype(np.int8)
    W = scale * rng.normal(size=(loss.n_outputs, row_map.width(rows.shape[1])))
    source = MappedPiecewiseRows(rows, y, row_map, np.dtype("float32"))
    query = partial(clipped_residuals, loss=loss, clip=clip)
    members = None if rng.integers(2) else rng.random(n) < 0.5
    compiled = request_of(W, query).with_query(clip_threshold=clip.threshold)
    compiled = replace(compiled, batch=Batch(members=members))
    ((matrix, nothing),) = source.private_sums([compiled])
    ((other, _),) = source.private_sums([compiled.with_query(clip_threshold=None)])
    assert nothing is None
    assert np.linalg.norm(matrix - other) <= 2e-3 * clip.threshold * (1 if scale == 1 else n)
    one = replace(compiled, batch=Batch(members=np.arange(n) == 2))
    ((matrix, _),) = source.private_sums([one])
    assert np.linalg.norm(matrix) <= clip.sensitivity(np.dtype("float32"))
