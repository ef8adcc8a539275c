"""A row that is zeroed out moves each release of an additive fit by at most its sensitivity.

The second fit is handed what the first one released, so that both ask the same queries, one after the other.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor
from skmixdp._engine.recording import recorded_releases
from tests.noise import assert_energies, assert_uncorrelated, watch
from tests.replay import compare, seen

N, D, ROW = 600, 4, 23
rng = np.random.default_rng(0)
X = np.column_stack(
    [
        rng.normal(size=N),
        rng.lognormal(size=N),
        np.where(np.arange(N) % 3, 0.0, rng.random(N)),
        np.arange(N) % 2,
    ]
)
Y = (np.abs(X[:, 0]) > 0.7).astype(int)
TERMS = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
PUBLIC_TERMS = {**TERMS, "epsilon": 2.0}
#: What the row is that differs.
ROWS = {
    "typical": X[0],
    "range": np.array([1e30, -1e30, 1e-30, 5.0]),
    "largest": np.full(D, 1e308),
    "zeros": np.zeros(D),
    "spike": X[1],
}
HELD = {
    "dense": np.asarray,
    "sparse": sp.csr_array,
    "float32": lambda rows: np.float32(np.clip(rows, -1e38, 1e38)),
}
FITS = {
    "classes": (AdditiveDPClassifier(classes=[0, 1], **TERMS), Y, {}),
    "declared": (AdditiveDPClassifier(classes=[0, 1], linear=[3], **TERMS), Y, {}),
    "public rows": (AdditiveDPClassifier(**PUBLIC_TERMS), Y, {"X_pub": X[1:20], "y_pub": Y[1:20]}),
    "few public rows": (AdditiveDPClassifier(**TERMS), Y, {"X_pub": X[1:9], "y_pub": Y[1:9]}),
    "pairs": (AdditiveDPClassifier(classes=[0, 1], interactions=[(0, 1), (3, 2)], **TERMS), Y, {}),
    "targets": (AdditiveDPRegressor(**TERMS), X[:, 1] + 3, {}),
}


def fit(name, rows, *calls):
    """A fitted estimator, with a callback or without."""
    model, y, public = FITS[name]
    model = clone(model)
    if calls:
        model.set_callbacks(*calls)
    return model.fit(rows, y, **public)


#: A row that differs, for replays: as it might stand in the table.
OTHERS = {
    "range": [1e30, -1e30, 1e-30, 5.0],
    "infinite": [np.inf, -np.inf, np.inf, -np.inf],
    "missing": [np.nan] * D,
    "spike": X[1],
    "new value": [0.0, 0.0, 0.0, 0.5],
    "subnormal": [5e-324] * D,
}


@pytest.mark.covering("name other")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_shows_what_its_noise_pays_for(monkeypatch, name, other):
    """Nothing but the sums differs in a fit to neighbouring rows that gets the same noisy arrays."""
    one, two = X.copy(), X.copy()
    two[ROW] = OTHERS[other]

    def path(rows):
        def run(calls):
            model = fit(name, rows, calls)
            return model, str(model.privacy_), model._row_map.basis

        return run

    first = seen(monkeypatch, path(one))
    assert not first.failed, first.facts["outcome"]
    compare(first, seen(monkeypatch, path(two), first), ROW)


@pytest.mark.parametrize("other", ["range", "infinite", "missing"])
def test_a_fit_to_persons_shows_what_its_noise_pays_for(monkeypatch, other):
    one, two, model = X.copy(), X.copy(), FITS["classes"][0]
    two[ROW] = OTHERS[other]

    def path(rows):
        def run(calls):
            fitted = clone(model).set_callbacks(calls).fit(rows, Y, groups=np.arange(N) // 3)
            return fitted, str(fitted.privacy_), fitted._row_map.basis

        return run

    first = seen(monkeypatch, path(one), each_row=False)
    assert not first.failed, first.facts["outcome"]
    compare(first, seen(monkeypatch, path(two), first, each_row=False), ROW)


def released(monkeypatch, name, rows, absent, replayed=None):
    """The releases of a fit; ``replayed`` are handed out instead of its own."""
    replay = None if replayed is None else lambda release, log: replayed[len(log)].noisy
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = watch(patch, replay)
        with recorded_releases(absent):
            model = fit(name, rows)
    return log, model


@pytest.mark.covering("name row", "name held", "row held")
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_release_moves_by_more_than_its_sensitivity(monkeypatch, name, row, held):
    rows = HELD[held](np.concatenate([ROWS[row][None], X[1:]]))
    full, _ = released(monkeypatch, name, rows, np.zeros(N, bool))
    without, _ = released(monkeypatch, name, rows, np.arange(N) == 0, full)
    assert len(full) == len(without) > 10
    for one, other in zip(full, without, strict=True):
        assert one.sensitivity == other.sensitivity
        assert np.linalg.norm(one.exact - other.exact) <= one.sensitivity


@pytest.mark.parametrize("name", FITS)
def test_releases_use_up_the_budget_and_no_more(monkeypatch, name):
    log, model = released(monkeypatch, name, X, np.zeros(N, bool))
    spent = sum((release.sensitivity / release.scale) ** 2 for release in log)
    assert spent == pytest.approx(model.privacy_.mu**2, rel=1e-6)
    shares = dict(model.privacy_.shares)
    assert sum(shares.values()) == pytest.approx(1)
    if "knots" in shares:
        knots = sum((each.sensitivity / each.scale) ** 2 for each in log if each.run is log[0].run)
        assert knots == pytest.approx(shares["knots"] * model.privacy_.mu**2, rel=1e-6)
        assert log[0].sensitivity == pytest.approx(np.sqrt(3 if name == "declared" else D), rel=0.02)
    assert ("knots" in shares) == (name != "public rows")


def test_histograms_have_the_noise_that_is_stated(monkeypatch):
    steps, firsts = [], []
    for _ in range(2):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log = watch(patch)
            clone(FITS["classes"][0]).set_params(random_state=None).fit(X, Y)
        of_knots = [release for release in log if release.run is log[0].run]
        steps += [(each.noisy - each.exact).ravel() / each.scale for each in of_knots]
        firsts.append(steps[-len(of_knots)])  # noise decides how many histograms follow
    assert len(steps) >= 4
    assert_energies(steps)
    assert_uncorrelated(*firsts)


def test_persons_move_a_histogram_by_no_more_than_a_row(monkeypatch):
    persons, model = np.arange(N) // 3, clone(FITS["classes"][0])

    def counts(rows):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log = watch(patch)
            model.fit(rows, Y, groups=persons)
        return log[0]

    other = X.copy()
    other[persons == 5] = [[1e30, -1e30, 1e-30, 5.0], [np.nan] * D, [np.inf] * D]
    one, two = counts(X), counts(other)
    assert one.exact.sum() == pytest.approx(D * N / 3)
    # One person's rows were replaced: taken away, and added.
    assert np.linalg.norm(one.exact - two.exact) <= 2 * one.sensitivity


def test_counts_are_exact(monkeypatch):
    log, _ = released(monkeypatch, "classes", X, np.zeros(N, bool))
    of_knots = [release for release in log if release.run is log[0].run]
    assert len(of_knots) in (2, 3)
    for release in of_knots:
        np.testing.assert_array_equal(release.exact, np.rint(release.exact))
        assert np.all(release.exact >= 0)
        n_columns = round(release.sensitivity**2)
        np.testing.assert_array_equal(release.exact.reshape(n_columns, -1).sum(axis=1), N)
