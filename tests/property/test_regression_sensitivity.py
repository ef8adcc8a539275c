"""Squared loss has residuals without bound: one row still moves no sum by more than is stated."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.components.clipping import clipped_residuals
from tests.catalog import CLIPPERS
from tests.private_names import (
    _SIGNED,
    Block,
    SquaredLoss,
    _lengths,
    _places_of_targets,
    own_state,
    row_norms,
    sensitivity_of,
)

TARGETS = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, 1e-30, 1e15, -1e15, 1e24, 1e38]))


def test_factors_too_small_for_float32_are_zero():
    """Between the smallest normal float32 and zero a factor could be rounded up by half of itself."""
    X = np.full((400, 1), 1e20, dtype=np.float32)
    y = -np.geomspace(1e16, 1e26, 400, dtype=np.float32)[:, np.newaxis]
    loss, clip = SquaredLoss(1), CLIPPERS["l2"]
    C, _ = clipped_residuals(np.zeros((400, 1), np.float32), Block(X, y, row_norms(X)), loss, clip)
    lengths = np.abs(C[:, 0].astype(np.float64)) * 1e20
    assert lengths.max() <= clip.sensitivity(np.dtype("float32")) * (1 + 1e-7)  # 1e20 is no float32
    assert lengths[0] > 0.49 and lengths[-1] == 0


FAR = st.sampled_from([np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 2.0**-60, -(2.0**60)])


@given(k=st.sampled_from([1, 3]), weighted=st.booleans(), data=st.data())
def test_a_row_adds_one_to_one_bin_of_each_target(k, weighted, data):
    y = data.draw(hnp.arrays(np.float64, (5, k + weighted), elements=st.one_of(st.floats(), FAR)))
    same_number = np.linspace(-1, 1, len(_SIGNED))
    edges = tuple(data.draw(st.sampled_from([_SIGNED, same_number])) for _ in range(k))
    with own_state():  # as passes over rows are
        _, counts = _places_of_targets(None, Block(np.zeros((5, 0)), y, np.zeros(5)), edges)
    assert counts.bins.shape == (5, k) and (counts.lengths() <= sensitivity_of(k)).all()
    assert (counts.bins >= 0).all() and (counts.bins < counts.n_bins).all() and counts.sums().sum() == 5 * k


@given(dtype=st.sampled_from(["float32", "float64"]), k=st.sampled_from([1, 3]), data=st.data())
def test_a_row_adds_one_to_one_bin_of_lengths(dtype, k, data):
    anything = st.one_of(TARGETS, FAR)
    X, Z, y = (data.draw(hnp.arrays(np.float64, (5, m), elements=anything)) for m in (2, k, k))
    with np.errstate(all="ignore"):
        X, Z = X.astype(dtype), Z.astype(dtype)
        _, counts = _lengths(Z, Block(X, y, row_norms(X)))
    assert counts.bins.shape == (5, 1) and (counts.lengths() == 1).all()
    assert (counts.bins >= 0).all() and (counts.bins < counts.n_bins).all()
