"""Noisy comparisons of heads for targets."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from skmixdp.algorithms.auto import AutoRegression
from skmixdp.components import FullBatch
from skmixdp.components.protocols import PublicInfo
from skmixdp.components.public import PublicData
from skmixdp.privacy.noise import NoiseSource
from tests.asking import answered, exact_sums
from tests.conftest import Watched, learned
from tests.private_names import (
    TARGET_RELEASES,
    Block,
    GaussianMechanism,
    InMemoryRows,
    Learner,
    MultilabelLoss,
    Options,
    SquaredLoss,
    Worth,
    gains,
    gains_query,
    noisy_targets,
    share_for,
    start_comparison,
    start_predicts,
    usual_gain,
)

rng = np.random.default_rng(0)
N, D = 400, 3
COEF = rng.normal(size=(1, D))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_row_moves_the_histograms_of_all_targets_by_no_more_than_stated(k):
    y = rng.normal(size=(N, k)) * 10.0 ** np.arange(k)
    noise = NoiseSource(0)
    learner = Learner(N, None, noise, np.dtype("float64"))
    asked = noisy_targets(learner, k, GaussianMechanism(1.0, TARGET_RELEASES, noise))
    released = None
    for _ in range(TARGET_RELEASES):
        _, query = asked.send(released)
        _, counts = query.contribute(np.zeros((N, 0)), Block(np.ones((N, 1)), y, np.ones(N)))
        moved = np.linalg.norm(np.asarray(counts), axis=1).max()
        assert moved <= query.releases[0].sensitivity <= moved * (1 + 1e-9)
        released = SimpleNamespace(arrays=[np.asarray(counts).sum(axis=0)], stated=query.releases)


def test_gains_of_several_labels_are_differences_of_their_losses():
    loss, Z = MultilabelLoss(3), 4 * rng.normal(size=(20, 9))
    y = rng.integers(2, size=(20, 3), dtype=np.int8)
    first, second, third = (loss.values(part, y) for part in np.split(Z, 3, axis=1))
    np.testing.assert_allclose(
        gains(Z, y, loss), np.stack([first - second, first - third], axis=1), atol=1e-12
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ["wrong", "right", "far", "long", "missing"])
def test_no_neighbour_moves_the_sum_by_more_than_its_noise_is_for(dtype, row):
    """Sums as they are computed: the row is zeroed out, and others stay."""
    X, y = rng.normal(size=(N, D)).astype(dtype), rng.normal(size=(N, 1)).astype(dtype)
    first, other = np.zeros((1, D)), COEF
    X[7], y[7] = {
        "wrong": (COEF[0], -9.0),
        "right": (COEF[0], float(COEF[0] @ COEF[0])),
        "far": (COEF[0], 1e15),
        "long": (1e18 * COEF[0], 0.0),
        "missing": (0.0, 0.0),
    }[row]
    sums, absent = [], np.arange(N) == 7
    for members in (None, ~absent):
        noise = Watched()

        def asked(learner):
            query = gains_query(first, [other], 0.1, SquaredLoss(1))
            return (yield from learner.ask(GaussianMechanism(3.0, 1, learner.noise), query))

        learned(InMemoryRows(X, y), asked, noise=noise, members=members)
        sums.append(float(noise.sums[0][0]))
        stated = noise.scales[0] / 3.0
    moved = abs(sums[0] - sums[1])
    assert moved <= stated <= 1.02  # sums in single precision are rounded
    assert moved == pytest.approx({"missing": 0.0}.get(row, 1.0), abs=1e-9)


@pytest.mark.parametrize("k", [1, 3])
def test_gains_are_differences_of_squared_errors(k):
    X, y = rng.normal(size=(50, 4)), rng.normal(size=(50, k))
    heads = rng.normal(size=(3, k, 4))
    errors = [np.sum((X @ head.T - y) ** 2, axis=1) for head in heads]
    wanted = np.stack([errors[0] - errors[1], errors[0] - errors[2]], axis=1)
    Z = np.hstack([X @ head.T for head in heads])
    np.testing.assert_allclose(gains(Z, y, SquaredLoss(k)), wanted, atol=1e-10)
    query = gains_query(heads[0], heads[1:], 2.0, SquaredLoss(k))
    sums = exact_sums(query, InMemoryRows(X, y))
    np.testing.assert_allclose(sums, np.clip(wanted / 2, -1, 1).sum(axis=0), atol=1e-9)


def test_the_usual_gain_is_finite():
    assert usual_gain(np.linspace(-1, 1, 101)) == pytest.approx(0.9)
    assert usual_gain(np.zeros(10)) == usual_gain(np.array([np.nan, np.inf])) == 0


# -- the check of the start ------------------------------------------------------------------


def problem(n_pub=60, factor=1.0, noise=0.5):
    """Private rows, and the public facts with the public targets multiplied by ``factor``."""
    X = rng.normal(size=(N + n_pub, D))
    y = X @ COEF.T + noise * rng.normal(size=(len(X), 1))
    data = PublicData(X[N:], factor * y[N:], SquaredLoss(1))
    info = PublicInfo(data.view(data.solution), 1.0, N, N, 10.0, start=lambda part: part.solution)
    return X[:N], y[:N], info


@pytest.mark.parametrize(("factor", "useful"), [(1.0, True), (-1.0, False), (0.3, True), (30.0, False)])
def test_public_rows_that_mean_something_else_are_found(factor, useful):
    X, y, info = problem(factor=factor)
    with warnings.catch_warnings(record=True, action="always") as warned:
        found = learned(InMemoryRows(X, y), lambda learner: start_predicts(info, learner, 5.0))
    assert found is useful
    assert [str(each.message).split(",")[0] for each in warned] == (
        [] if useful else ["the head of the public rows predicts private rows worse than a constant"]
    )


def test_a_start_that_is_as_bad_for_public_rows_is_kept():
    """Targets without a law: a fit to a few rows is worse than a constant for all others."""
    X, y, info = problem(n_pub=10)
    data = PublicData(info.view.data.X, rng.normal(size=(10, 1)) * 3, SquaredLoss(1), 1e-6)
    info = PublicInfo(data.view(data.solution), 1.0, N, N, 10.0, start=lambda part: part.solution)
    law_less = rng.normal(size=y.shape)
    assert learned(InMemoryRows(X, law_less), lambda learner: start_predicts(info, learner, 1.0))


def test_it_is_kept_where_the_noise_could_have_done_it():
    X, y, info = problem(factor=-1.0)
    rows = InMemoryRows(X, y)
    # Without noise, the sum is about -0.5 N: within two deviations of 0.3 N each.
    assert learned(rows, lambda learner: start_predicts(info, learner, 0.5 * N))


def test_one_release_of_its_multiplier():
    X, y, info = problem()
    noise = Watched()
    learned(InMemoryRows(X, y), lambda learner: start_predicts(info, learner, 7.0), noise=noise)
    assert noise.scales == pytest.approx([7.0], rel=1e-6)


# -- the comparison at the end ---------------------------------------------------------------


def closed(W, info, X, y, multiplier=5.0):
    """What is returned for a last head ``W``, and the exact sum that was asked for."""

    class Inner:
        def result(self, W, state):
            return W

    rounds = start_comparison(Inner(), info).ask(W, None, multiplier)
    query = next(rounds)
    sums = exact_sums(query, InMemoryRows(X, y))
    return answered(rounds, sums), float(sums[0])


def test_a_better_start_is_returned_with_a_warning():
    X, y, info = problem()
    with pytest.warns(UserWarning, match=r"the 60 public rows suffice: .* the start is returned"):
        head, seen = closed(-info.view.W, info, X, y)
    assert seen > 10
    np.testing.assert_array_equal(head, info.view.W)


@pytest.mark.parametrize("change", [0.0, 0.01, -0.01])
def test_a_head_that_is_about_as_good_is_returned(change):
    X, y, info = problem()
    head, seen = closed(info.view.W + change, info, X, y, 200.0)
    assert abs(seen) <= 400
    np.testing.assert_array_equal(head, info.view.W + change)


def test_its_budget_follows_public_facts():
    _, _, info = problem()
    share = share_for(1.0, N, 1.0, Worth(0.03, 0.1, (0.002, 0.02)))
    assert start_comparison(None, info).share == share and share > 0
    assert start_comparison(None, problem(n_pub=9)[2]) is None


def test_training_ends_with_it():
    options = Options("auto", None, FullBatch(), False)
    recipe = AutoRegression().recipe(problem()[2], options)
    assert recipe.comparison is not None and recipe.comparison.share > 0
    assert AutoRegression().recipe(problem(n_pub=9)[2], options).comparison is None
