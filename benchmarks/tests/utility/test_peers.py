"""Peers of the utility benchmark: their noise, their sensitivity, and what they find without noise."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import normalize

from benchmarks.tests.utility.conftest import TINY, problem_of
from benchmarks.utility import data
from benchmarks.utility.data import long_tail, regression
from benchmarks.utility.methods import (
    ADAPTERS,
    UnavailableError,
    adassp,
    clipped_descent,
    objective_perturbation,
    prototypes,
    releases,
)
from benchmarks.utility.problems import DELTA, Problem, make_problem
from skmixdp.privacy import NoiseSource, mu_of_budget
from tests.noise import assert_energies
from tests.rounding import assert_close

PAIR = {**TINY, "adapter": "two_classes", "of": "mixture", "groups": [[0], [1, 2]]}
TARGETS = {"adapter": "regression", "problem": "linear", "n_train": 500, "n_test": 200}

#: Of each method: its data, and options with a single setting.
OF_TARGETS = {"quantiles": [0.9], "ridges": [1], "intercepts": [0.3]}
METHODS = {
    "private_prototypes": (TINY, {"public_weights": [1], "radii": [0.8]}),
    "least_squares": (TINY, {"shares": [0.3], "ridges": [1], "public_weights": [1], "intercept": 0.3}),
    "feature_covariance": (
        TINY,
        {"share": 0.3, "ridges": [1], "step_sizes": [0.3], "n_steps": 4, "intercept": 0.3},
    ),
    "scaling_rule": (TINY, {"rates": [0.1], "n_steps": 6, "momentum": 0.9, "intercept": 0.3}),
    "adassp": (TARGETS, OF_TARGETS),
    "boosted_adassp": (TARGETS, {**OF_TARGETS, "rounds": [4], "longest": [0.5]}),
}

#: Those whose second moment and gradients, or residuals, have noise sources of their own.
TWO_SOURCES = ("feature_covariance", "boosted_adassp")

#: So large a budget that its noise is lost among hundreds of rows.
HUGE = 1e9


def assert_standard(draws):
    """They are standard normal, and would not pass if they were smaller or larger."""
    assert_energies([draws])
    for factor in (2 / 3, 3 / 2):
        with pytest.raises(AssertionError, match="mean square"):
            assert_energies([factor * draws])


# -- noise and budget ----------------------------------------------------------------------


@pytest.mark.parametrize("shots", [0, 5])
@pytest.mark.parametrize("name", METHODS)
def test_the_releases_of_a_setting_spend_the_budget_and_no_more(log, name, shots):
    options, parameters = METHODS[name]
    ADAPTERS[name].fit(problem_of(options, shots), [1.0], **parameters)
    spent = {}
    for release in log:
        spent[id(release.source)] = spent.get(id(release.source), 0) + 1 / release.scale**2
    spent = list(spent.values())
    if name in TWO_SOURCES:
        assert len(spent) == 2
        spent = [sum(spent)]
    # Three kinds of prototypes, each a method by itself.
    assert len(spent) == (3 if name == "private_prototypes" else 1)
    assert_close(spent, mu_of_budget(1.0, DELTA) ** 2, 1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_the_noise_is_what_the_budget_asks_for(log, name):
    options, parameters = METHODS[name]
    for seed in range(20):
        ADAPTERS[name].fit(problem_of(options, seed=seed), [1.0], **parameters)
    mu = mu_of_budget(1.0, DELTA)
    steps = {"feature_covariance": 4, "scaling_rule": 6}.get(name, 1)
    n_parts = {"least_squares": [0.3, 0.7], "adassp": [1 / 3] * 3}
    n_parts["boosted_adassp"] = [1 / 3, 1 / 3, *[1 / 12] * 4]
    n_parts["feature_covariance"] = [0.3, *[0.7 / steps] * steps]
    n_parts["private_prototypes"] = [1, 1, 12 / 64, 52 / 64]
    shares = n_parts.get(name, [1 / steps] * steps) * 20
    draws = [one.noise * mu * np.sqrt(share) for one, share in zip(log, shares, strict=True)]
    assert_standard(np.concatenate(draws))


def without_row(problem, row):
    kept = np.delete(np.arange(len(problem.X)), row)
    return Problem(**{**vars(problem), "X": problem.X[kept], "y": problem.y[kept]})


@pytest.mark.parametrize("shots", [0, 5])
@pytest.mark.parametrize("name", ["private_prototypes", "least_squares", "adassp", "boosted_adassp"])
def test_a_row_moves_each_release_by_its_sensitivity_at_most(log, name, shots):
    options, parameters = METHODS[name]
    if "adassp" in name:
        # The bound is part of the setting; at the longest row it moves with none of the others.
        parameters = {**parameters, "quantiles": [1.0]}
    problem = problem_of(options, shots)
    ADAPTERS[name].fit(problem, [HUGE], **parameters)
    n_releases = len(log)
    distances = []
    longest = int(np.linalg.norm(problem.X, axis=1).argmax())
    for row in set(range(0, 300, 30)) - {longest}:
        del log[n_releases:]
        ADAPTERS[name].fit(without_row(problem, row), [HUGE], **parameters)
        pairs = zip(log[:n_releases], log[n_releases:], strict=True)
        distances.append([np.linalg.norm(one.exact - other.exact) for one, other in pairs])
    if name == "boosted_adassp":  # later residuals follow earlier sums, which moved: they are not compared
        distances = np.array(distances)[:, :3]
    # The residuals of the second step depend on the first step's noisy means, which also moved a little.
    slack = 0.05 if name == "private_prototypes" else 1e-4
    assert np.max(distances) < 1 + slack
    assert np.max(distances) > 0.5


def test_rows_that_are_too_long_are_refused(log):
    rows = np.array([[0.6, 0.8], [0.9, 0.9]])
    noise = NoiseSource(0)
    for release in (
        lambda: releases.noisy_class_sums(rows, np.array([0, 1]), 2, 1.0, noise),
        lambda: releases.noisy_second_moment(rows, 1.0, noise),
    ):
        with pytest.raises(ValueError, match=r"length 1\.27"):
            release()
    assert log == []


def test_the_noise_of_a_second_moment_is_that_of_independent_entries_made_symmetric():
    X = normalize(np.random.default_rng(0).standard_normal((50, 60)))
    noisy = releases.noisy_second_moment(X, 3.0, NoiseSource(0))
    np.testing.assert_array_equal(noisy, noisy.T)
    noise = (noisy - X.T @ X) / 3
    upper = noise[np.triu_indices(60, 1)] * np.sqrt(2)
    assert_energies([np.diag(noise), upper])
    largest = np.linalg.eigvalsh(3 * noise)[-1]
    assert largest == pytest.approx(releases.edge(3.0, 60), rel=0.15)


def test_shares_of_a_budget_add_up():
    sigmas = releases.multipliers(1.0, [0.25, 0.75])
    assert sigmas[0] == pytest.approx(2 * releases.multipliers(1.0, [1.0])[0])
    assert sum(1 / sigma**2 for sigma in sigmas) == pytest.approx(mu_of_budget(1.0, DELTA) ** 2)
    for wrong in ([0.5, 0.6], [1.5, -0.5]):
        with pytest.raises(ValueError, match="add up to 1"):
            releases.multipliers(1.0, wrong)


def test_gradients_are_those_of_the_logistic_loss_shortened_to_length_1():
    rng = np.random.default_rng(0)
    X = normalize(rng.standard_normal((30, 5))).astype(np.float32)
    y = rng.integers(0, 4, 30)
    heads = np.stack([np.zeros((4, 5)), 50 * rng.standard_normal((4, 5))]).astype(np.float32)
    found = clipped_descent.clipped_gradients(heads, X, y)
    parts = np.array(
        [clipped_descent.clipped_gradients(heads, X[i : i + 1], y[i : i + 1]) for i in range(30)]
    )
    np.testing.assert_allclose(found, parts.sum(axis=0), atol=1e-5)
    lengths = np.linalg.norm(parts.reshape(30, 2, -1), axis=2)
    assert lengths.max() <= 1 + 1e-6 and (lengths[:, 1] > 0.999).any()
    # At zero no gradient is too long: each row's is (1/4 - its own class) times the row.
    residuals = np.full((30, 4), 0.25) - np.eye(4)[y]
    np.testing.assert_allclose(found[0], residuals.T @ X, atol=1e-5)
    # Where it is, its direction stays.
    logits = heads[1].astype(float) @ X[0]
    gradient = np.outer(np.exp(logits - np.logaddexp.reduce(logits)) - np.eye(4)[y[0]], X[0])
    np.testing.assert_allclose(parts[0, 1], gradient / max(1, np.linalg.norm(gradient)), atol=1e-5)


# -- objective perturbation ------------------------------------------------------------------


def hockey_stick(epsilon, sigma, penalty, rows, other):
    """Delta of two data sets of one feature, by the density of the minimiser; labels are 1."""

    def density(w, X):
        residual = 1 / (1 + np.exp(X * w))
        linear = (X * residual).sum() - penalty * w
        slope = (X**2 * residual * (1 - residual)).sum() + penalty
        return np.exp(-((linear / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi)) * slope

    def above(w):
        return max(0.0, density(w, rows) - np.exp(epsilon) * density(w, other))

    span = (abs(rows).sum() + 8 * sigma) / penalty
    points = np.linspace(-span, span, 41)
    return sum(quad(above, a, b)[0] for a, b in itertools.pairwise(points))


def test_the_noise_of_objective_perturbation_bounds_the_densities_of_its_minimisers():
    epsilon, delta, penalty = 1.0, 1e-2, 1.0
    sigma = objective_perturbation.noise_scale(epsilon, delta, penalty)
    one, two = np.array([0.3, -0.5]), np.array([0.3, -0.5, 1.0])
    found = max(hockey_stick(epsilon, sigma, penalty, *pair) for pair in ((one, two), (two, one)))
    assert delta / 50 < found <= delta
    less = max(hockey_stick(epsilon, sigma / 2, penalty, *pair) for pair in ((one, two), (two, one)))
    assert less > delta


def test_delta_is_the_mean_excess_of_the_privacy_loss():
    epsilon, penalty = 0.8, 2.0
    for sigma in (0.4, 3.0):  # the loss exceeds epsilon without noise, and only for large noise

        def excess(u, sigma=sigma):
            loss = np.log1p(0.25 / penalty) + 0.5 / sigma**2 + abs(u) / sigma
            return max(0.0, -np.expm1(epsilon - loss)) * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)

        expected = 2 * quad(excess, 0, 12, limit=500)[0]
        assert objective_perturbation.delta_of(epsilon, penalty, sigma) == pytest.approx(expected, rel=1e-5)


def test_more_budget_or_penalty_means_less_noise():
    scales = [objective_perturbation.noise_scale(epsilon, DELTA, 3.0) for epsilon in (0.1, 1.0, 8.0)]
    assert scales == sorted(scales, reverse=True)
    weak, strong = (objective_perturbation.noise_scale(1.0, DELTA, penalty) for penalty in (0.2, 100.0))
    assert strong < weak
    # Not even a fixed head, whose loss is Gaussian but one-sided, needs more than this.
    assert strong > releases.multipliers(1.0, [1.0])[0]
    with pytest.raises(ValueError, match=r"penalty=0\.1 is too weak"):
        objective_perturbation.noise_scale(1.0, DELTA, 0.1)


def test_the_linear_term_of_the_minimiser_has_the_noise_that_it_should(monkeypatch):
    """It is recovered from the head that comes out, as in the proof."""
    heads = []
    solve = objective_perturbation.minimiser

    def watched(X, signs, penalty, linear):
        w = solve(X, signs, penalty, linear)
        margins = signs * (X @ w)
        heads.append((penalty, X.T @ (signs / (1 + np.exp(margins))) - penalty * w))
        return w

    monkeypatch.setattr(objective_perturbation, "minimiser", watched)
    for seed in range(30):
        problem = problem_of(PAIR, seed=seed)
        ADAPTERS["objective_perturbation"].fit(problem, [1.0], shares=[0.2], intercept=0.3)
    penalty = heads[0][0]
    assert np.log1p(0.25 / penalty) == pytest.approx(0.2)
    sigma = objective_perturbation.noise_scale(1.0, DELTA, penalty)
    assert_standard(np.concatenate([linear for _, linear in heads]) / sigma)


def test_objective_perturbation_is_penalised_logistic_regression_but_for_its_noise():
    problem = problem_of(PAIR)
    X, _, X_test = releases.unit_rows(problem, 0.3)
    signs = 2.0 * problem.y - 1
    found = objective_perturbation.minimiser(X.astype(float), signs, 0.5, np.zeros(X.shape[1]))
    plain = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-8).fit(X, problem.y)
    np.testing.assert_allclose(found, plain.coef_[0], atol=1e-3)
    (score,) = ADAPTERS["objective_perturbation"].fit(problem, [30.0], shares=[0.02], intercept=0.3)
    assert score.measures.accuracy == pytest.approx(plain.score(X_test, problem.y_test), abs=0.03)
    with pytest.raises(UnavailableError, match="two classes"):
        ADAPTERS["objective_perturbation"].fit(problem_of(TINY), [1.0], shares=[0.2], intercept=0.3)


# -- without noise to matter -----------------------------------------------------------------


@pytest.mark.parametrize("shots", [0, 5])
def test_prototypes_are_class_means_but_for_noise(shots):
    problem = problem_of(TINY, shots)
    scores = ADAPTERS["private_prototypes"].fit(problem, [HUGE], public_weights=[1], radii=[0.8, 1.5])
    found = {score.setting.removesuffix(", public rows x 1"): score.measures for score in scores}
    centre = problem.X_pub.mean(axis=0) if shots else 0
    X, X_test = (normalize(part - centre) for part in (np.vstack([problem.X, problem.X_pub]), problem.X_test))
    y = np.concatenate([problem.y, problem.y_pub])
    means = np.stack([X[y == label].mean(axis=0) for label in problem.classes])
    nearest = problem.measures_of(np.square(X_test[:, None] - means).sum(axis=2).argmin(axis=1))
    assert found["mean"] == nearest
    cosine = problem.measures_of((X_test @ normalize(means).T).argmax(axis=1))
    assert found["cosine"] == cosine
    assert found["two steps, radius 1.5"].accuracy == pytest.approx(nearest.accuracy, abs=0.01)
    assert min(one.accuracy for one in found.values()) > 0.8


def test_public_prototypes_are_the_rows_that_private_ones_resemble():
    problem = problem_of(TINY, 5)
    options = {"n_prototypes": [1, 2], "most": [1.0]}
    single, double = ADAPTERS["public_prototypes"].fit(problem, [HUGE], **options)
    X, X_pub, X_test = releases.unit_rows(problem)
    votes = np.stack([np.clip(X_pub @ X[problem.y == k].T, 0, 1).sum(axis=1) for k in range(3)])
    chosen = votes.argmax(axis=1)
    assert single.measures == problem.measures_of((X_test @ X_pub[chosen].T).argmax(axis=1))
    pair = X_pub[np.argsort(-votes, axis=1)[:, :2]].mean(axis=1)
    assert double.measures == problem.measures_of((X_test @ normalize(pair).T).argmax(axis=1))


def test_public_prototypes_are_drawn_with_the_exponential_mechanism():
    scores = np.tile([0.0, 1.0, 2.5], (20_000, 1))
    found = prototypes.drawn(scores, 1.0, 1, NoiseSource(0))
    shares = np.bincount(found[:, 0]) / len(scores)

    def distance(epsilon):
        weights = np.exp(epsilon * scores[0])
        expected = weights / weights.sum()
        return np.max(abs(shares - expected) / np.sqrt(expected * (1 - expected) / len(scores)))

    assert distance(1.0) < 5
    assert distance(2 / 3) > 5 and distance(3 / 2) > 5
    # Two draws share the budget, and never draw the same.
    pair = prototypes.drawn(scores, 2.0, 2, NoiseSource(0))
    assert (pair[:, 0] != pair[:, 1]).all()
    np.testing.assert_array_equal(pair[:, 0], found[:, 0])


@pytest.mark.parametrize("shots", [0, 5])
def test_least_squares_is_least_squares_but_for_noise(shots):
    problem = problem_of(TINY, shots)
    options = {"shares": [0.5], "ridges": [1e-3], "public_weights": [1], "intercept": 0.3}
    (score,) = ADAPTERS["least_squares"].fit(problem, [HUGE], **options)
    X, X_pub, X_test = releases.unit_rows(problem, 0.3)
    y = np.concatenate([problem.y, problem.y_pub])
    coef, *_ = np.linalg.lstsq(np.vstack([X, X_pub]), np.eye(3)[y], rcond=None)
    expected = problem.measures_of((X_test @ coef).argmax(axis=1))
    assert score.measures.accuracy == expected.accuracy


@pytest.mark.parametrize("shots", [0, 5])
def test_descent_comes_near_to_logistic_regression(shots):
    problem = problem_of(TINY, shots)
    X, _, X_test = releases.unit_rows(problem, 0.3)
    plain = LogisticRegression(C=1e3, fit_intercept=False, max_iter=1000).fit(X, problem.y)
    limit = plain.score(X_test, problem.y_test)
    options = {"share": 0.5, "ridges": [1.0], "step_sizes": [1.0], "n_steps": 30, "intercept": 0.3}
    (newton,) = ADAPTERS["feature_covariance"].fit(problem, [HUGE], **options)
    rate = 200 / (HUGE * len(problem.X))
    options = {"rates": [rate], "n_steps": 60, "momentum": 0.9, "intercept": 0.3}
    (plain_steps,) = ADAPTERS["scaling_rule"].fit(problem, [HUGE], **options)
    for score in (newton, plain_steps):
        assert score.measures.accuracy == pytest.approx(limit, abs=0.015)


def test_the_total_step_is_linear_in_epsilon(monkeypatch):
    sizes = []
    method = ADAPTERS["scaling_rule"].fit
    monkeypatch.setattr(
        "benchmarks.utility.methods.scaling_rule.with_momentum",
        lambda size, momentum, shape: sizes.append(size) or (lambda gradient: gradient),
    )
    method(problem_of(TINY), [0.5, 2.0], rates=[0.1, 0.3], n_steps=8, momentum=0.9, intercept=0.3)
    assert_close(np.array(sizes) * 8, [0.1 * 0.5 * 400, 0.3 * 0.5 * 400, 0.1 * 800, 0.3 * 800])


def test_adassp_is_ridge_regression_but_for_noise():
    problem = problem_of(TARGETS)
    (score,) = ADAPTERS["adassp"].fit(problem, [HUGE], quantiles=[1.0], ridges=[0], intercepts=[0.3])
    plain = problem.measures(Ridge(1e-6).fit(problem.X, problem.y))
    assert score.measures.r2 == pytest.approx(plain.r2, abs=0.002) and plain.r2 > 0.9


def test_boosting_without_cuts_and_noise_leaves_ridge_regression_as_it_is():
    problem = problem_of(TARGETS)
    options = {"quantiles": [1.0], "ridges": [0], "intercepts": [0.3]}
    (plain,) = ADAPTERS["adassp"].fit(problem, [HUGE], **options)
    for n_rounds, longest in ((1, 1.0), (3, 2.0), (60, 0.1)):
        cuts = {"rounds": [n_rounds], "longest": [longest]}
        (score,) = ADAPTERS["boosted_adassp"].fit(problem, [HUGE], **options, **cuts)
        # Residuals that are cut are fitted in several rounds, and those of noise stay below 0.1.
        assert score.measures.r2 == pytest.approx(plain.measures.r2, abs=0.01)


def test_the_ridge_of_adassp_makes_up_for_small_eigenvalues_only():
    # The second moment has no eigenvalue below 1e4: it needs no ridge.
    assert adassp.wanted_ridge(1e4, 10, 5.0, 5.0) == 0
    needed = adassp.wanted_ridge(-3.0, 10, 5.0, 5.0)
    assert needed == adassp.wanted_ridge(0.0, 10, 5.0, 5.0) == pytest.approx(5 * np.sqrt(10 * np.log(4000)))
    assert 0 < adassp.wanted_ridge(40.0, 10, 5.0, 5.0) < needed
    # It covers what noise does to a matrix of that size.
    assert needed > releases.edge(5.0, 10)


def test_rows_of_adassp_are_shortened_to_their_bound():
    rows = adassp.clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 2.0, 0.5)
    assert_close(np.linalg.norm(rows, axis=1), [1, np.sqrt((0.25**2 + 0.25) / 1.25)])
    assert_close(rows[1], np.array([0.15, 0.2, 0.5]) / np.hypot(1, 0.5))


# -- data -------------------------------------------------------------------------------------


def test_a_long_tail_falls_geometrically_and_spares_the_test_rows():
    options = {"of": "mixture", "n_train": 3000, "n_test": 300, "n_features": 4, "n_classes": 5}
    rows = long_tail.load(None, smallest=0.02, at_least=6, **options)
    whole = data.mixture.load(None, **{key: value for key, value in options.items() if key != "of"})
    counts = np.bincount(rows.y)
    np.testing.assert_array_equal(np.sort(counts)[::-1], [600, 226, 85, 32, 12])
    assert not np.array_equal(counts, np.sort(counts)[::-1])  # the order of the classes is drawn
    np.testing.assert_array_equal(rows.X_test, whole.X_test)
    kept = {tuple(row) for row in whole.X}
    assert all(tuple(row) in kept for row in rows.X) and len(np.unique(rows.X, axis=0)) == len(rows.X)
    assert np.bincount(long_tail.load(None, smallest=0.001, **options).y).min() == 6
    again = long_tail.load(None, tail_seed=1, **options)
    assert not np.array_equal(np.bincount(again.y), counts)


def test_the_accuracy_of_a_long_tail_is_that_for_its_own_shares():
    rows = long_tail.load(None, of="mixture", n_train=3000, n_test=300, n_features=4, n_classes=5)
    problem = make_problem(rows, 0, 0)
    largest = int(np.bincount(rows.y).argmax())
    found = problem.measures_of(np.full(300, largest))
    assert found.balanced_accuracy == pytest.approx(0.2)
    assert found.accuracy == pytest.approx(np.bincount(rows.y)[largest] / len(rows.y))


def test_two_groups_of_classes_become_two_classes():
    whole = data.load(cache=None, **TINY)
    rows = data.load(cache=None, **{**PAIR, "groups": [[2], [0]]})
    kept = whole.y != 1
    np.testing.assert_array_equal(rows.X, whole.X[kept])
    np.testing.assert_array_equal(rows.y, (whole.y[kept] == 0).astype(int))
    assert set(rows.y_test) == {0, 1}


@pytest.mark.parametrize(
    ("problem", "low", "high"),
    [("linear", 0.95, 0.98), ("ill-conditioned", 0.94, 0.98), ("friedman", 0.85, 0.9)],
)
def test_a_regression_has_the_signal_that_it_should(problem, low, high):
    rows = regression.load(None, problem=problem, n_train=4000, n_test=1000)
    assert len(rows.X) == 4000 and len(rows.X_test) == 1000
    found = make_problem(rows, 30, 0)
    assert len(found.X_pub) == 30 and len(found.X) == 3970
    (score,) = ADAPTERS["non_private"].fit(found, ())
    assert low < score.measures.r2 < high and np.isnan(score.measures.accuracy)
    outside = (rows.y < rows.bounds[0]) | (rows.y > rows.bounds[1])
    assert outside.mean() < 1e-3


def test_a_regression_that_is_not_there_is_named():
    assert regression.load(None, problem="diabetes").y.max() <= 346
    with pytest.raises(ValueError, match="'cubic'; name one of diabetes, linear"):
        regression.load(None, problem="cubic")
