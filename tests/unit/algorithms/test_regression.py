"""Algorithms on squared loss: plain descent and ridge regression without noise, and refusals."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skmixdp import MixedDPRidge
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.components import PoissonBatch
from skmixdp.privacy import NoiseSource
from tests.catalog import ALGORITHMS
from tests.conftest import Silent, make_regression_problem, recipe_or_refusal
from tests.private_names import SquaredLoss, dotted_path
from tests.rounding import assert_close

FLOAT = np.dtype("float64")
NO_CLIP = 1e9


@pytest.mark.covering
@pytest.mark.parametrize(("n_targets", "n_pub"), [(1, 30), (3, 0)])
@pytest.mark.parametrize("algorithm", [NoisyGD(clip=NO_CLIP), AdaMix(clip_floor=NO_CLIP)], ids=repr)
def test_without_noise_and_clip_the_limit_is_ridge_regression(monkeypatch, n_targets, n_pub, algorithm):
    """Of all rows, on the mapped features, with the intercept column penalised as the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = 30 * X @ rng.normal(size=(5, n_targets)) + 10 * rng.normal(size=(400, n_targets)) + 100
    monkeypatch.setattr(dotted_path("transaction.NoiseSource"), Silent)
    public = (X[:n_pub], y[:n_pub]) if n_pub else (None, None)
    reg = MixedDPRidge(
        algorithm,
        n_steps=800,
        learning_rate=3.0,
        l2=0.02,
        dtype="float64",
        target_scale=20.0,
        target_center=90.0,
    ).fit(X[n_pub:], y[n_pub:], *public)
    rows = reg._row_map(X, FLOAT)
    reference = Ridge(alpha=0.02 * 400, fit_intercept=False, solver="cholesky").fit(rows, (y - 90) / 20)
    assert_close(reg.predict(X), 20 * reference.predict(rows).reshape(y.shape) + 90, 1e-8)


def test_clipped_squared_loss_is_hubers(monkeypatch):
    """A feature that normalising makes constant: the limit is Huber's estimate of location."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=300), np.full(30, 50.0)])
    monkeypatch.setattr(dotted_path("transaction.NoiseSource"), Silent)
    reg = MixedDPRidge(
        NoisyGD(clip=0.5),
        fit_intercept=False,
        target_scale=1.0,
        n_steps=2000,
        learning_rate=1.0,
        dtype="float64",
    ).fit(1.0 + np.arange(330)[:, np.newaxis], y)
    assert abs(np.clip(y - reg.coef_[0], -0.5, 0.5).sum()) < 1e-6
    assert abs(reg.coef_[0]) < 0.3 < 4 < y.mean()


@pytest.mark.covering("name n_pub")
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("n_pub", [24, 0])
@pytest.mark.parametrize("sampling", [None, PoissonBatch(60)], ids=["full", "poisson"])
def test_every_algorithm_trains_squared_loss_or_refuses_it(name, n_pub, sampling):
    problem = make_regression_problem(n_pub=n_pub)
    recipe = recipe_or_refusal(problem, ALGORITHMS[name], sampling=sampling)
    if recipe is None:
        return
    W, _ = problem.trained(recipe, noise=NoiseSource(0), n_steps=3)
    assert W.shape == problem.info.view.W.shape
    assert np.isfinite(W).all()


def test_a_loss_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"^NoisyGD cannot train squared loss: clip='lipschitz' needs"):
        make_regression_problem().recipe(NoisyGD(clip="lipschitz"))
    assert SquaredLoss(2).name == "squared loss"
