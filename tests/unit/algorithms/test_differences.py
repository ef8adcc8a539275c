"""DOPE and GEP against dense formulas, on full batches and sampled ones."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import DOPE, GEP
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData
from tests.conftest import Silent, Watched, make_problem
from tests.private_names import InMemoryRows, SoftmaxLoss, deviation_norms, embedding_of
from tests.rounding import assert_close, assert_relative

FLOAT = np.dtype("float64")


class SomeRows:
    """The same rows in every step, out of an expected half."""

    def __init__(self, mask):
        self.mask = mask

    def rate(self, n_private):
        return 0.5

    def draw(self, n_private, noise):
        return self.mask


def dense_gradients(X, y, W, loss):
    R = loss.residuals(X @ W.T, y)
    return R[:, :, None] * X[:, None, :]


def clipped(vectors, threshold):
    lengths = np.sqrt(np.sum(vectors**2, axis=tuple(range(1, vectors.ndim))))
    shape = (-1,) + (1,) * (vectors.ndim - 1)
    return vectors * np.minimum(1, threshold / np.maximum(lengths, 1e-300)).reshape(shape)


def one_step(problem, algorithm, noise, mask=None):
    """A step of size 1 without l2; half of the rows are expected where a mask is given."""
    recipe = problem.recipe(algorithm, learning_rate=1.0)
    if mask is not None:
        recipe = replace(recipe, sampling=SomeRows(mask))
        problem = replace(problem, info=replace(problem.info, batch_size=problem.info.n_private / 2))
    return problem.trained(recipe, noise=noise, n_steps=1)


@pytest.fixture(params=["full batch", "sampled batch", "empty batch"])
def mask(request):
    return {
        "full batch": None,
        "sampled batch": np.random.default_rng(4).random(300) < 0.5,
        "empty batch": np.zeros(300, bool),
    }[request.param]


def taking_part(problem, mask):
    keep = slice(None) if mask is None else mask
    return problem.X[keep], problem.y[keep], 300.0 if mask is None else 150.0


def test_dope_clips_differences_and_adds_the_centre_to_the_mean(problem, mask):
    clip = 0.3 if problem.info.view.data.loss.n_outputs == 1 else 0.6
    W, _ = one_step(problem, DOPE(clip, momentum=0.0), Silent(0), mask)
    view = problem.info.view
    X, y, b = taking_part(problem, mask)
    M = view.gradient
    differences = clipped(dense_gradients(X, y, view.W, view.data.loss) - M, clip)
    # Some are clipped and some are not, or the test shows little.
    assert len(X) == 0 or 0.05 < np.mean(np.linalg.norm(differences, axis=(1, 2)) < 0.99 * clip) < 0.95
    a = 24 / 324
    expected = view.W - (a * M + (1 - a) * (M + differences.sum(axis=0) / b))
    np.testing.assert_allclose(W, expected, atol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("n_components", [None, 5])
def test_gep_clips_coordinates_and_residuals_apart(problem, mask, n_components):
    algorithm = GEP(n_components, clip=0.3, residual_clip=0.25, momentum=0.0)
    W, _ = one_step(problem, algorithm, Silent(0), mask)
    view = problem.info.view
    loss, shape = view.data.loss, view.W.shape
    X, y, b = taking_part(problem, mask)
    g = dense_gradients(X, y, view.W, loss).reshape(len(X), view.W.size)
    public = dense_gradients(view.data.X, view.data.y, view.W, loss).reshape(24, -1)
    _, values, directions = np.linalg.svd(public, full_matrices=False)
    V = directions[values > 1e-4 * values[0]][:n_components]
    z = g @ V.T
    total = (clipped(z, 0.3) @ V + clipped(g - z @ V, 0.25)).sum(axis=0).reshape(shape)
    a = 24 / 324
    expected = view.W - (a * view.gradient + (1 - a) * total / b)
    np.testing.assert_allclose(W, expected, atol=1e-9)


def test_an_empty_batch_leaves_nothing_to_release(problem):
    for algorithm in (DOPE(), GEP()):
        noise = Watched(0)
        one_step(problem, algorithm, noise, np.zeros(300, bool))
        for total in noise.sums:
            np.testing.assert_array_equal(total, 0)


def test_the_parts_of_a_step_share_it_equally(problem):
    noise = Watched(0)
    _, plan = one_step(problem, GEP(clip=0.3, residual_clip=0.2), noise)
    expected = [np.sqrt(2) * plan.noise_multiplier * clip for clip in (0.3, 0.2)]
    assert_relative(noise.scales, expected, 1e-5)  # and the rounding of long terms
    bare = make_problem(n_pub=0)
    noise = Watched(0)
    _, plan = one_step(bare, GEP(residual_clip=0.2), noise)
    assert_relative(noise.scales, [plan.noise_multiplier * 0.2], 1e-5)


def test_quantile_clips_come_from_rows_that_are_held_out():
    problem = make_problem(d=30)
    view = problem.info.view
    found = problem.recipe(GEP(quantile=0.75, clip_floor=1e-3)).query
    embedding = embedding_of(view, None)
    inside, outside = found.inside.at(view).threshold, found.clipper.at(view).threshold
    assert inside == np.quantile(embedding.held_out_coordinates, 0.75)
    assert outside == np.quantile(embedding.held_out_residuals, 0.75)
    # In the span of all public rows nothing would be left of them.
    assert outside > 0.1 * np.quantile(view.gradient_norms, 0.75)
    floored = problem.recipe(GEP(clip_floor=9.0)).query
    assert floored.inside.at(view).threshold == floored.clipper.at(view).threshold == 9.0

    g = dense_gradients(view.data.X, view.data.y, view.W, view.data.loss)
    lengths = np.linalg.norm(g - g.mean(axis=0), axis=(1, 2))
    assert_close(deviation_norms(view), lengths)
    dope = problem.recipe(DOPE(quantile=0.75, clip_floor=1e-3)).query
    assert dope.clipper.at(view).threshold == pytest.approx(np.quantile(lengths, 0.75))


@pytest.mark.parametrize("algorithm", ["dope-sgd", "gep"])
def test_discrete_noise_is_refused(algorithm):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    clf = MixedDPLogisticRegression(algorithm, noise="discrete", n_steps=1)
    with pytest.raises(ValueError, match=r"^noise='discrete' needs sums on a grid, and (DOPE|GEP) computes"):
        clf.fit(X, y, X[:9], y[:9])


@pytest.mark.covering("algorithm parameters")
@pytest.mark.parametrize("algorithm", ["dope-sgd", "gep"])
@pytest.mark.parametrize("parameters", [{}, {"batch_size": 200}, {"neighboring": "replace_one"}])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_learns_by_name(algorithm, parameters, dtype):
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(3, 6))
    y, y_pub = np.arange(900) % 3, np.arange(30) % 3
    X, X_pub = centres[y] + rng.normal(size=(900, 6)), centres[y_pub] + rng.normal(size=(30, 6))
    clf = MixedDPLogisticRegression(algorithm, dtype=dtype, random_state=0, **parameters)
    assert clf.fit(X, y, X_pub, y_pub).score(X, y) > 0.9


def test_single_and_double_precision_agree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 20)), np.arange(500) % 4
    X_pub, y_pub = rng.normal(size=(40, 20)), np.arange(40) % 4
    # In single precision, the rounding of sums adds up to a hundredth to GEP's noise.
    for algorithm, rounding in ((DOPE(0.3), 1e-3), (GEP(clip=0.3, residual_clip=0.3), 5e-3), (GEP(7), 5e-3)):
        heads = [
            MixedDPLogisticRegression(algorithm, n_steps=5, dtype=dtype, random_state=1)
            .fit(X, y, X_pub, y_pub)
            .coef_
            for dtype in ("float32", "float64")
        ]
        np.testing.assert_allclose(*heads, atol=rounding * np.abs(heads[0]).max())


def test_no_array_of_all_rows_and_parameters_is_formed():
    n, d, k, n_pub = 20_000, 1024, 100, 200
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32) / np.float32(np.sqrt(d))
    y = np.arange(n) % k
    data = PublicData(rng.normal(size=(n_pub, d)) / np.sqrt(d), np.arange(n_pub) % k, SoftmaxLoss(k))
    problem = make_problem()
    problem.info = PublicInfo(data.view(np.zeros((k, d))), 0.27, n, float(n), 2.0)
    recipe, rows = problem.recipe(GEP(), learning_rate=1.0), InMemoryRows(X, y)
    tracemalloc.start()
    try:
        W, _ = problem.trained(recipe, rows=rows, n_steps=1, dtype="float32")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.isfinite(W).all()
    # All gradients would take 8 GB in float32. The products with the public rows, 16 MB, are kept.
    assert peak < 100e6, peak


@pytest.mark.parametrize("algorithm", [DOPE, GEP])
@pytest.mark.parametrize("name", ["clip", "clip_floor"])
def test_thresholds_that_the_rounding_of_long_rows_would_pass_are_refused(algorithm, name):
    with pytest.raises(ValueError, match=f"{name}=1e-07 .*must be .*from 1e-6 to 1e100"):
        make_problem().recipe(algorithm(**{name: 1e-7}))
