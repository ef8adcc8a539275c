"""Sums from which differences are computed have terms no longer than is stated of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skmixdp.algorithms import DOPE, GEP
from skmixdp.components.protocols import StepContext
from skmixdp.privacy import NoiseSource
from tests.asking import request_of
from tests.conftest import make_problem
from tests.private_names import Block, InMemoryRows, row_norms

MADE = {
    "dope-sgd": DOPE(0.5, momentum=0.0),
    "gep": GEP(clip=0.5, residual_clip=0.5, momentum=0.0),
    "gep, few directions": GEP(2, clip=0.5, residual_clip=0.5, momentum=0.0),
}


def asked(algorithm, length, spread, dtype, seed=0, row_norm_bound=np.inf):
    """A step's query, and rows whose gradients nearly all point one way."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=9)
    direction *= length / np.linalg.norm(direction)
    problem = make_problem(2, d=8, normalize=False)
    problem = replace(problem, info=replace(problem.info, row_norm_bound=row_norm_bound))
    data = problem.info.view.data
    data.X[:] = direction + spread * rng.normal(size=data.X.shape)
    data.y[:] = 1
    X = (direction + spread * rng.normal(size=(400, 9))).astype(dtype)
    query = problem.recipe(MADE[algorithm], learning_rate=1e-3).query
    start, dtype = np.zeros_like(problem.info.view.W), np.dtype(dtype)  # at which all residuals are 1/2
    context = StepContext(1, 1, data.view(start), 300.0, 0.0, 1.0, 0.0, start, dtype, NoiseSource(0), 1.0)
    query = next(query.step(context))
    y = (rng.random(400) < 0.9).astype(int)
    return query, InMemoryRows(X, y)


def terms(*given):
    """Lengths of the terms of a step's sums of gradients, and the part that is computed from them."""
    query, rows = asked(*given)
    X, y = rows._X, rows._all.y
    C, _ = query.contribute(X @ query.points.T.astype(X.dtype), Block(X, y, row_norms(X)))
    return row_norms(C) * row_norms(X), query.releases[-1]


@pytest.mark.parametrize("algorithm", MADE)
@given(
    dtype=st.sampled_from(["float32", "float64"]),
    length=st.sampled_from([1e-3, 1.0, 30.0, 1e3, 1e6]),
    spread=st.sampled_from([0.0, 1e-9, 1e-4, 1e-2, 0.1, 1.0]),
    seed=st.integers(0, 100),
    row_norm_bound=st.sampled_from([1e-3, 1.0, 1e3, np.inf]),
)
def test_no_term_is_longer_than_is_stated(algorithm, dtype, length, spread, seed, row_norm_bound):
    """Also where rows are longer than they are expected to be."""
    lengths, part = terms(algorithm, length, spread, dtype, seed, row_norm_bound)
    stated = part.sensitivity if part.longest_term is None else part.longest_term
    assert lengths.max() <= stated


@pytest.mark.parametrize("algorithm", ["dope-sgd", "gep"])
def test_terms_are_much_longer_than_what_is_released_of_them(algorithm):
    """The twin: in units of the sensitivity, the rounding of such sums would be stated too small."""
    lengths, part = terms(algorithm, 1e3, 1e-3, "float64")
    assert lengths.max() > 20 * part.sensitivity


@pytest.mark.covering
@pytest.mark.parametrize("row_norm_bound", [1.0, np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("algorithm", MADE)
def test_the_rounding_of_long_terms_costs_next_to_no_noise(algorithm, dtype, row_norm_bound):
    """In single precision the noise would be twenty times as large, but for few rows at a time."""
    query, rows = asked(algorithm, 1e3, 1e-3, dtype, 0, row_norm_bound)
    request = request_of(query.points, query.contribute, panel_rows=query.panel_rows)
    for part in query.releases:
        computed = part.as_computed(rows.sum_error(request))
        assert part.sensitivity < computed.sensitivity < 1.01 * part.sensitivity
