"""One row never moves what is about to be released by more than is stated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.components import GradientQuery
from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.protocols import StepContext
from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource
from tests.catalog import ALGORITHMS, CLIPPERS, SUBSPACES
from tests.conftest import (
    Watched,
    make_label_problem,
    make_problem,
    make_regression_problem,
    recipe_or_refusal,
    train,
)
from tests.private_names import (
    Block,
    InMemoryRows,
    LogisticLoss,
    MultilabelLoss,
    SoftmaxLoss,
    SquaredLoss,
    row_norms,
    training,
)
from tests.rounding import assert_close

FAR = [0.0, 1e-30, 1e-12, 1.0, 1e6, 1e18, -1e18, -1e25]
VALUES = st.floats(-3, 3, width=32) | st.sampled_from(FAR)
TARGETS = st.floats(-3, 3, width=32) | st.sampled_from([0.0, 1e-30, 2.0**40, 1e15, -1e15, 1e24, 1e38])
#: Losses of bounded residuals, and of residuals without bound.
LOSSES = {
    "classes": [LogisticLoss(), SoftmaxLoss(4), MultilabelLoss(3)],
    "targets": [SquaredLoss(1), SquaredLoss(3)],
}


@st.composite
def rows_and_heads(draw, loss, d=5):
    """A few rows in either precision with their labels or targets, and a head."""
    dtype, k = draw(st.sampled_from(["float32", "float64"])), loss.n_outputs
    X = draw(hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(d)), elements=VALUES)).astype(dtype)
    W = draw(hnp.arrays(np.float64, (k, d), elements=st.floats(-50, 50)))
    if isinstance(loss, SquaredLoss):
        return X, draw(hnp.arrays(np.float64, (len(X), k), elements=TARGETS)).astype(dtype), W
    shape, kind = (len(X), np.int64) if loss.has_classes else ((len(X), k), np.int8)
    last = max(k, 2) - 1 if loss.has_classes else 1
    return X, draw(hnp.arrays(kind, shape, elements=st.integers(0, last))), W


def clip_of(name, loss, W):
    """A clip at public rows and a head."""
    rng, k = np.random.default_rng(0), loss.n_outputs
    X_pub = rng.normal(size=(9, W.shape[1]))
    if isinstance(loss, SquaredLoss):
        y_pub = rng.normal(size=(9, k))
    else:
        y_pub = np.arange(9) % 2 if loss.has_classes else rng.integers(2, size=(9, k))
    return CLIPPERS[name].at(PublicData(X_pub, y_pub, loss).view(W))


def contributions(held, X, Z, y, loss, clip, norms=None):
    """What rows contribute, from arrays or from tensors, which are where a device's would be."""
    parts = (X, y, row_norms(X) if norms is None else norms)
    if held == "tensors":
        torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
        assert clip.takes_tensors
        Z, parts = torch.from_numpy(Z), map(torch.from_numpy, parts)
    with np.errstate(all="ignore"):
        C, S = clipped_residuals(Z, Block(*parts), loss, clip)
    assert S is None and np.asarray(C).dtype == X.dtype
    return np.asarray(C)


def lengths(A):
    """Lengths of rows in the arithmetic of reals, nearly."""
    return np.linalg.norm(A.astype(np.longdouble), axis=1)


def largest(A):
    return np.abs(A).astype(np.longdouble).max(axis=1)


#: Clips that state a finite sensitivity for a loss; squared loss itself states none.
BOUNDED = [
    (name, of)
    for name in CLIPPERS
    for of, (loss, *_) in LOSSES.items()
    if np.isfinite(clip_of(name, loss, np.zeros((loss.n_outputs, 5))).sensitivity(np.dtype("float64")))
]
holders = pytest.mark.parametrize("held", ["arrays", "tensors"])


@holders
@pytest.mark.parametrize(("name", "of"), BOUNDED)
@given(data=st.data())
def test_no_row_contributes_more_than_the_clip_states(name, of, held, data):
    loss = data.draw(st.sampled_from(LOSSES[of]))
    X, y, W = data.draw(rows_and_heads(loss))
    clip = clip_of(name, loss, W)
    with np.errstate(all="ignore"):
        Z = X @ W.T.astype(X.dtype)
    C = contributions(held, X, Z, y, loss, clip)
    assert np.isfinite(C).all()
    assert (lengths(C) * lengths(X)).max() <= clip.sensitivity(X.dtype)
    if "linf" in name:
        assert (largest(C) * largest(X)).max() <= clip.sensitivity(X.dtype) / np.sqrt(clip.split)


@holders
@pytest.mark.parametrize("name", CLIPPERS)
def test_the_bound_is_met_and_a_clip_that_forgets_lengths_would_be_caught(name, held):
    rng, loss = np.random.default_rng(1), SoftmaxLoss(4)
    X, y = 30 * rng.normal(size=(500, 5)).astype(np.float32), rng.integers(4, size=500)
    W = rng.normal(size=(4, 5))
    clip = clip_of(name, loss, W)
    Z, bound = X @ W.T.astype(np.float32), clip.sensitivity(X.dtype)
    reached = (lengths(contributions(held, X, Z.copy(), y, loss, clip)) * lengths(X)).max()
    assert 0.5 * bound < reached <= bound
    short = contributions(held, X, Z.copy(), y, loss, clip, norms=np.full(500, 1e-3))
    if "linf" not in name:  # there, entries still bound the row
        assert (lengths(short) * lengths(X)).max() > 1.5 * bound


@holders
@pytest.mark.covering
@pytest.mark.parametrize("loss", [loss for losses in LOSSES.values() for loss in losses], ids=repr)
@pytest.mark.parametrize("name", ["l2", "l2 and linf", "automatic, small gamma"])
def test_a_row_whose_outputs_are_not_finite_contributes_nothing_that_is_not(name, loss, held):
    k = loss.n_outputs
    X = np.array([[1e-30, 0, 0], [1, 2, 3]], np.float32)
    y = np.zeros(2, np.int64) if loss.has_classes else np.zeros((2, k), np.float32)
    clip = clip_of(name, loss, np.zeros((k, 3)))
    for Z in (np.nan, np.inf, -np.inf, 3e38):
        outputs = np.zeros((2, k), np.float32)
        outputs[0] = Z
        C = contributions(held, X, outputs, y, loss, clip)
        assert np.isfinite(C).all(), f"outputs of {Z}"
        assert (lengths(C) * lengths(X)).max() <= clip.sensitivity(X.dtype), f"outputs of {Z}"
        if isinstance(loss, SquaredLoss) and not np.isfinite(Z):
            np.testing.assert_array_equal(C[0], 0)


def test_the_one_weight_clip_is_the_smallest_of_its_three_factors():
    problem = make_problem()
    X, loss = 3 * problem.X, problem.info.view.data.loss
    Z = X @ problem.info.view.W.T
    R = loss.residuals(Z.copy(), problem.y)
    g = (R[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    factors = np.minimum(0.5 / np.linalg.norm(g, axis=1), 0.25 / np.abs(g).max(axis=1))
    expected = np.minimum(1, factors)[:, None] * R
    clip = CLIPPERS["l2 and linf"].at(problem.info.view)
    C, _ = clipped_residuals(Z, Block(X, problem.y, row_norms(X)), loss, clip)
    assert_close(C, expected, 1e-8)
    assert np.mean(0.25 / np.abs(g).max(axis=1) < 0.5 / np.linalg.norm(g, axis=1)) > 0.1


@pytest.mark.parametrize("name", SUBSPACES)
@given(
    gradient=hnp.arrays(np.float64, (4, 9), elements=st.floats(-10, 10)),
    scale=st.sampled_from([0.0, 1e-9, 1.0]),
)
def test_no_subspace_lengthens_a_gradient_by_more_than_its_gain(name, gradient, scale):
    problem = make_problem()
    view = problem.info.view.data.view(scale * problem.info.view.W)
    space = SUBSPACES[name].at(view)
    length = np.linalg.norm(gradient)
    assert np.linalg.norm(space.encode(gradient)) <= space.gain * length + 1e-300
    assert np.linalg.norm(space.decode(space.encode(gradient))) <= length * (1 + 1e-8) + 1e-300


def with_changed_row(problem, kind):
    """The rows with the first of them changed into something extreme."""
    X, y, targets = problem.X.copy(), problem.y.copy(), problem.y.dtype.kind == "f"
    Z = problem.info.view.W @ X[0]
    if kind == "mislabelled":
        y[0] = 1e15 if targets else (y[0] + 1) % (y.max() + 1)  # all labels, if rows have several
    elif kind == "long":
        X[0] *= 1e4
    elif kind == "against the head":
        if targets:
            y[0] = -1e3 * np.sign(Z)
        elif y.ndim == 2:
            y[0] = Z < 0
        else:
            y[0] = int(np.argmin(Z)) if y.max() > 1 else 1 - y[0]
        X[0] *= 1 if targets else 100
    return X, y


PROBLEMS = {
    "two classes": lambda: make_problem(2),
    "four classes": lambda: make_problem(4),
    "several labels": lambda: make_label_problem(5),
    "a target": lambda: make_regression_problem(1),
    "three targets": lambda: make_regression_problem(3),
}


@pytest.mark.covering
@pytest.mark.parametrize("of", PROBLEMS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity(of, name):
    problem, targets = PROBLEMS[of](), "target" in of
    recipe = recipe_or_refusal(problem, ALGORITHMS[name])
    if recipe is None:
        return
    plan = problem.plan(recipe, n_steps=4)

    def watched(X, y):
        noise = Watched(5)
        train([training(plan, noise)], InMemoryRows(X, y))
        return noise

    without = watched(problem.X[1:], problem.y[1:])
    for kind in ("typical", "mislabelled", "long", "against the head"):
        with_row = watched(*with_changed_row(problem, kind))
        # What is stated for rounding grows with n, so the noise and the heads differ by as much.
        differing = np.max(np.abs(np.divide(with_row.scales, without.scales) - 1))
        assert differing < (1e-6 if targets else 1e-8)
        # One array a step, or one for each part that a step releases.
        assert len(with_row.sums) % 4 == 0
        moves = with_row.moves(without, plan.noise_multiplier, 1e-12)
        # In units of each part's noise, a step as a whole is a release of the plan's multiplier.
        moves = np.linalg.norm(np.reshape(moves, (4, -1)), axis=1)
        assert max(moves) <= 1 + 1e-9 + differing, kind
        # Differences of losses are lost in rounding where a target is that far out.
        far = targets and not name.startswith(("dpzero", "pazo"))
        if kind == ("mislabelled" if far else "against the head") and "projected" not in name:
            # The bound is met, not merely respected: the test would see a smaller true bound.
            assert max(moves) > 0.3


def test_a_row_that_is_not_finite_contributes_nothing():
    problem = make_problem()
    X = problem.X.copy()
    X[3] = 1e200  # its logits, and so its residuals, are not finite
    query = GradientQuery(CLIPPERS["l2"], None, sum_to_zero=False)
    W = 1e200 * np.ones_like(problem.info.view.W)
    view = problem.info.view.data.view(problem.info.view.W)
    ctx = StepContext(1, 1, view, 300.0, 0.0, 1.0, 0.0, W, np.dtype("float64"), NoiseSource(0), 1.0)
    query = next(query.step(ctx))
    with np.errstate(all="ignore"):
        C, _ = query.contribute(X @ W.T, Block(X, problem.y, row_norms(X)))
    assert np.isfinite(C).all()
    np.testing.assert_array_equal(C[3], 0)
