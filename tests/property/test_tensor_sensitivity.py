"""On tensors too, no row contributes more than its clip states; they are where a device's would be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp._linear import LogisticLoss, MultilabelLoss, SoftmaxLoss, SquaredLoss, row_norms
from skmixdp._rows import Block
from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.public import PublicData
from tests.catalog import CLIPPERS

torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")

VALUES = st.one_of(st.floats(-3, 3, width=32), st.sampled_from([0.0, 1e-30, 1e-12, 1.0, 1e6, 1e18, -1e18]))
LOSSES = {
    "logistic": LogisticLoss(),
    "softmax": SoftmaxLoss(4),
    "squared": SquaredLoss(3),
    "labels": MultilabelLoss(3),
}


def contributions(X, Z, y, loss, clip, norms=None):
    block = Block(*map(torch.from_numpy, (X, y, row_norms(X) if norms is None else norms)))
    C, S = clipped_residuals(torch.from_numpy(Z), block, loss, clip)
    assert S is None and clip.takes_tensors
    return C.numpy()


def lengths(A):
    """Lengths of rows in the arithmetic of reals, nearly."""
    return np.linalg.norm(A.astype(np.longdouble), axis=1)


@pytest.mark.parametrize("name", CLIPPERS)
@given(dtype=st.sampled_from(["float32", "float64"]), data=st.data())
def test_no_row_contributes_more_than_the_clip_states(name, dtype, data):
    # Squared loss has no Lipschitz constant.
    kind = data.draw(st.sampled_from([kind for kind in LOSSES if (name, kind) != ("lipschitz", "squared")]))
    loss = LOSSES[kind]
    k = loss.n_outputs
    X = data.draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(5)), elements=VALUES))
    W = data.draw(hnp.arrays(np.float64, (k, 5), elements=st.floats(-50, 50)))
    rng = np.random.default_rng(0)
    if kind == "squared":
        y = data.draw(hnp.arrays(dtype, (len(X), k), elements=st.floats(-(2.0**40), 2.0**40, width=32)))
        public_y = rng.normal(size=(9, k))
    elif kind == "labels":
        y = data.draw(hnp.arrays(np.int8, (len(X), k), elements=st.integers(0, 1)))
        public_y = rng.integers(2, size=(9, k))
    else:
        y = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(0, max(k, 2) - 1)))
        public_y = np.arange(9) % 2
    clip = CLIPPERS[name].at(PublicData(rng.normal(size=(9, 5)), public_y, loss).view(W))
    X = X.astype(dtype)
    with np.errstate(all="ignore"):
        Z = X @ W.T.astype(dtype)
    C = contributions(X, Z, y, loss, clip)
    assert C.dtype == dtype and np.isfinite(C).all()
    assert (lengths(C) * lengths(X)).max() <= clip.sensitivity(np.dtype(dtype))
    if "linf" in name:
        entries = np.abs(C).astype(np.longdouble).max(axis=1) * np.abs(X).astype(np.longdouble).max(axis=1)
        assert entries.max() <= clip.sensitivity(np.dtype(dtype)) / np.sqrt(clip.split)


@pytest.mark.parametrize("name", CLIPPERS)
def test_the_bound_is_met_and_a_clip_that_forgets_lengths_would_be_caught(name):
    rng = np.random.default_rng(1)
    loss = SoftmaxLoss(4)
    X, y = 30 * rng.normal(size=(500, 5)).astype(np.float32), rng.integers(4, size=500)
    W = rng.normal(size=(4, 5))
    clip = CLIPPERS[name].at(PublicData(rng.normal(size=(9, 5)), np.arange(9) % 2, loss).view(W))
    Z, bound = X @ W.T.astype(np.float32), clip.sensitivity(np.dtype(np.float32))
    reached = (lengths(contributions(X, Z.copy(), y, loss, clip)) * lengths(X)).max()
    assert 0.5 * bound < reached <= bound
    short = contributions(X, Z.copy(), y, loss, clip, norms=np.full(500, 1e-3))
    if "linf" not in name:  # there, entries still bound the row
        assert (lengths(short) * lengths(X)).max() > 1.5 * bound


@pytest.mark.covering
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("name", ["l2", "l2 and linf", "automatic, small gamma"])
def test_a_row_whose_outputs_are_not_finite_contributes_nothing_that_is_not(name, kind):
    loss = LOSSES[kind]
    k = loss.n_outputs
    X = np.array([[1e-30, 0, 0], [1, 2, 3]], np.float32)
    y = np.zeros(2, np.int64) if loss.has_classes else np.zeros((2, k), np.float32)
    public = PublicData(np.eye(3), np.arange(3) % 2 if loss.has_classes else np.zeros((3, k)), loss)
    clip = CLIPPERS[name].at(public.view(np.zeros((k, 3))))
    for Z in (np.nan, np.inf, -np.inf, 3e38):
        outputs = np.zeros((2, k), np.float32)
        outputs[0] = Z
        C = contributions(X, outputs, y, loss, clip)
        assert np.isfinite(C).all(), f"outputs of {Z}"
        assert (lengths(C) * lengths(X)).max() <= clip.sensitivity(np.dtype(np.float32)), f"outputs of {Z}"
        if kind == "squared" and not np.isfinite(Z):
            np.testing.assert_array_equal(C[0], 0)
