"""Norms that are made of differences, and what is clipped by them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skmixdp.components import L2Clip
from tests.private_names import (
    Block,
    Centre,
    GradientEmbedding,
    L2LinfClip,
    LogisticLoss,
    MultilabelLoss,
    SoftmaxLoss,
    clipped_parts,
    row_norms,
)
from tests.rounding import assert_relative

DTYPES = ["float32", "float64"]
LOSSES = {"labels": MultilabelLoss(3), "logistic": LogisticLoss(), "softmax": SoftmaxLoss(4)}

wild = {
    "name": st.sampled_from(sorted(LOSSES)),
    "dtype": st.sampled_from(DTYPES),
    "seed": st.integers(0, 10**6),
    "d": st.sampled_from([1, 3, 40, 700]),
    "scale": st.sampled_from([1e-12, 1e-4, 1.0, 30.0, 1e4, 1e12]),
    "nudge": st.sampled_from([0.0, 1e-16, 1e-12, 1e-9, 1e-7, 1e-6, 1e-4, 1e-2, 1.0]),
    "threshold": st.sampled_from([1e-9, 1e-3, 0.5, 1e3]),
    "same_sign": st.booleans(),
}


def labels_of(loss, n, rng):
    return rng.integers(max(loss.n_outputs, 2), size=n) if loss.has_classes else rng.integers(2, size=(n, 3))


#: The centre is a row's own gradient but for rounding, and the clip is far shorter.
CANCELLING = {"seed": 0, "d": 1, "scale": 1e-4, "nudge": 0.0, "threshold": 1e-9, "same_sign": False}


def block_products(X, y, points):
    """A block and its products, as a row source computes them."""
    return X @ points.astype(X.dtype).T, Block(X, y, row_norms(X))


def exactly(array):
    return np.asarray(array).astype(np.longdouble)


def some_rows(rng, d, scale, dtype, same_sign, n=6):
    X = scale * rng.normal(size=(n, d))
    # Terms of one sign: roundings of a sum then go the same way more often than not.
    return (np.abs(X) if same_sign else X).astype(dtype)


def deviations(held, Z, block, loss, clip, centre):
    """Contributions of a block that is held in arrays, or in tensors."""
    if held == "arrays":
        return clipped_parts(Z, block, loss, Centre(centre), clip)
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    there = Block(*map(torch.from_numpy, (block.X, block.y, block.norms)))
    C, S = clipped_parts(torch.from_numpy(Z), there, loss, Centre(centre), clip)
    return C.numpy(), S.numpy()


@pytest.mark.parametrize("held", ["arrays", "tensors"])
@given(**wild)
@example(**CANCELLING, name="logistic", dtype="float32")
@example(**CANCELLING, name="softmax", dtype="float32")
@example(**CANCELLING, name="softmax", dtype="float64")
def test_no_difference_from_a_centre_exceeds_the_clip(
    name, dtype, held, seed, d, scale, nudge, threshold, same_sign
):
    loss, rng = LOSSES[name], np.random.default_rng(seed)
    k = loss.n_outputs
    X, y = some_rows(rng, d, scale, dtype, same_sign), labels_of(loss, 6, rng)
    W = rng.normal(size=(k, d)) / scale
    # The centre is the first row's own gradient as the arithmetic sees it, nearly.
    Z, _ = block_products(X, y, W)
    centre = loss.residuals(Z, y)[:1].T.astype(np.float64) * X[0].astype(np.float64)
    centre = centre * (1 + nudge * rng.normal(size=centre.shape))
    both = L2LinfClip(L2Clip(threshold), 5).at(None)
    for clip, entry in (
        (L2Clip(threshold), np.inf),
        (both, both.sensitivity(np.dtype(dtype)) / np.sqrt(both.split)),
    ):
        Z, block = block_products(X, y, np.concatenate([W, centre]))
        C, weights = deviations(held, Z, block, loss, clip, centre)
        assert C.dtype == dtype and weights.dtype == np.float64
        for i in range(6):
            difference = exactly(C[i])[:, None] * exactly(X[i]) - exactly(weights[i]) * exactly(centre)
            assert np.sqrt(np.sum(difference**2)) <= clip.sensitivity(np.dtype(dtype))
            assert np.abs(difference).max() <= entry


@given(
    n_components=st.sampled_from([None, 1, 3]),
    twins=st.sampled_from([0.0, 1e-9, 1e-5, 1e-4, 1e-3, 1.0]),
    shortest=st.sampled_from([2.0**-10, 0.1, 1.0]),
    **wild,
)
def test_neither_part_of_a_gradient_exceeds_its_clip(
    name, dtype, seed, d, scale, nudge, threshold, same_sign, n_components, twins, shortest
):
    loss, rng = LOSSES[name], np.random.default_rng(seed)
    k = loss.n_outputs
    anchors = some_rows(rng, d, scale, "float64", same_sign)
    # Nearly dependent anchors make directions of which the products know little.
    anchors[3:] = anchors[:3] * (1 + twins * rng.normal(size=(3, d)))
    labels = np.concatenate([labels_of(loss, 3, rng)] * 2)
    W = rng.normal(size=(k, d)) / scale
    embedding = GradientEmbedding(anchors, loss.residuals(anchors @ W.T, labels), n_components)
    # Private rows: anchors, nearly, and their differences.
    X = anchors * (1 + nudge * rng.normal(size=anchors.shape))
    X[4:] = anchors[:2] - anchors[3:5]
    X = X.astype(dtype)
    inside, outside = L2Clip(threshold), L2Clip(0.7 * threshold)
    Z, block = block_products(X, labels, np.concatenate([W, embedding.X]))
    C, S = clipped_parts(Z, block, loss, embedding, outside, inside, shortest)
    q = embedding.n_components
    S = np.asarray(S)
    assert C.dtype == dtype
    assert S.shape == (6, 2 * q)
    assert row_norms(S[:, :q]).max(initial=0) <= inside.sensitivity(np.dtype("float64"))
    for i in range(6):
        projection = exactly(embedding.gradient(S[i, q:]))
        residual = exactly(C[i])[:, None] * exactly(X[i]) - projection
        sensitivity = outside.sensitivity(np.dtype(dtype))
        assert np.sqrt(np.sum(residual**2)) <= sensitivity
        # The two terms of a residual are no longer than is stated of them, together.
        terms = row_norms(C[i : i + 1]) * block.norms[i] + row_norms(S[i : i + 1, q:])
        assert terms <= 1.001 * sensitivity / shortest


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [100, 1000, 10_000])
def test_roundings_that_all_go_the_same_way_are_covered(dtype, d):
    """Each of d terms is lost upwards by nearly half a unit: more than any fixed count of eps."""
    eps = np.finfo(dtype).eps
    x = np.full(d + 2, np.sqrt(0.55 * eps))
    x[0], x[-1] = 1.0, 0.0
    X, R = x.astype(dtype)[None, :], np.array([[0.5]], dtype)
    centre = 0.5 * exactly(X).astype(np.float64)
    true = np.sqrt(0.4 * d * eps)  # along a feature that the row does not have
    centre[0, -1] = true
    # A sum in order, which is one of those that a library may take.
    products = np.cumsum(X[0] * centre[0].astype(dtype), dtype=dtype)[-1:][None, :]
    (bound,) = Centre(centre).residual_bounds(R, products, None, row_norms(X))
    assert bound >= true
    rounding_scale = 0.5 * np.linalg.norm(x) + np.linalg.norm(centre)
    plain = (0.5 * np.linalg.norm(x)) ** 2 - 2 * float(R[0, 0]) * float(products[0, 0]) + np.sum(centre**2)
    if d > 100:
        assert np.sqrt(max(plain, 0) + 16 * eps * rounding_scale**2) < true


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bounds_are_tight_where_nothing_cancels(dtype):
    """A bound that were far too long would be safe and useless."""
    rng = np.random.default_rng(1)
    loss = SoftmaxLoss(5)
    X = rng.normal(size=(50, 64))
    X = (X / row_norms(X)[:, None]).astype(dtype)
    y, W = rng.integers(5, size=50), rng.normal(size=(5, 64))
    embedding = GradientEmbedding(
        X[:20].astype(float), loss.residuals(X[:20].astype(float) @ W.T, y[:20]), None
    )
    Z, _ = block_products(X, y, W)
    R = loss.residuals(Z, y)
    gradients = (R[:, :, None] * X[:, None, :]).reshape(50, -1).astype(np.float64)
    centre = gradients.mean(axis=0).reshape(5, 64)
    found = Centre(centre).residual_bounds(R, X @ centre.T.astype(dtype), None, row_norms(X))
    true = np.linalg.norm(gradients - centre.ravel(), axis=1)
    assert_relative(found, true, 2e-5 if dtype == "float32" else 1e-13)

    z = embedding.coordinates(R.astype(float), X @ embedding.X.T.astype(dtype))
    found = embedding.residual_bounds(R, z, row_norms(z), row_norms(X))[20:]
    basis = np.array([embedding.gradient(e).ravel() for e in np.eye(embedding.n_components)])
    true = np.linalg.norm(gradients - gradients @ basis.T @ basis, axis=1)[20:]
    assert_relative(found, true, 1e-3 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_which_nothing_finite_is_known_contribute_nothing(dtype):
    loss, rng = SoftmaxLoss(3), np.random.default_rng(2)
    top = float(np.finfo(dtype).max)
    X = rng.normal(size=(5, 4)).astype(dtype)
    X[0], X[1, 0], X[2] = top / 4, np.nan, -top / 4
    y, W = np.array([0, 1, 2, 0, 1]), np.zeros((3, 4))
    centre = np.abs(rng.normal(size=(3, 4))) * 1e3
    with np.errstate(all="ignore"):
        Z, block = block_products(X, y, np.concatenate([W, centre]))
        assert np.isinf(Z[[0, 2], 3:]).all()
        C, weights = clipped_parts(Z, block, loss, Centre(centre), L2Clip(0.5))
    np.testing.assert_array_equal(C[:3], 0)
    np.testing.assert_array_equal(weights[:3], 0)
    assert (weights[3:] > 0).all()

    # With one output the product alone is minus infinity, and so is the square.
    X[0], X[1] = -top / 4, top / 4
    with np.errstate(all="ignore"):
        Z, block = block_products(X, np.ones(5, int), np.concatenate([W[:1], centre[:1]]))
        C, weights = clipped_parts(Z, block, LogisticLoss(), Centre(centre[:1]), L2Clip(0.5))
    np.testing.assert_array_equal(C[:3], 0)
    np.testing.assert_array_equal(weights[:3], 0)

    X[1, 0] = np.nan
    anchors = 1e3 * rng.normal(size=(6, 4))
    embedding = GradientEmbedding(anchors, loss.residuals(anchors @ W.T, y[[0, 1, 2, 0, 1, 2]]))
    X[0], X[2] = top, -top
    with np.errstate(all="ignore"):
        Z, block = block_products(X, y, np.concatenate([W, embedding.X]))
        C, S = clipped_parts(Z, block, loss, embedding, L2Clip(0.5), L2Clip(0.5))
    S = np.asarray(S)
    np.testing.assert_array_equal(C[1], 0)
    np.testing.assert_array_equal(S[1], 0)
    assert np.isfinite(C).all()
    assert np.isfinite(S).all()
    assert (S[3:] != 0).any()
