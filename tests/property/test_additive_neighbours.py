"""A row that is zeroed out moves each release of an additive fit by at most its sensitivity."""

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp import AdditiveDPClassifier, AdditiveDPPoissonRegressor, AdditiveDPRegressor, fit_many
from tests.replay import FORMS, check_neighbours, check_sensitivities, released

N, D, ROW = 600, 4, 23
rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=N), rng.lognormal(size=N), rng.random(N), np.arange(N) % 2])
X[np.arange(N) % 3 > 0, 2] = 0.0
Y = (np.abs(X[:, 0]) > 0.7).astype(int)
TERMS = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
PUBLIC_TERMS = {**TERMS, "epsilon": 2.0}
CHOOSING = {**TERMS, "epsilon": 60.0, "interactions": "auto"}
#: A class of one row in 20, in which :data:`ROW` is, and public rows that have as many of both classes.
RARE = (np.arange(N) % 20 == ROW % 20).astype(int)
RARE_TERMS = {**TERMS, "epsilon": 30.0}
PUBLIC_OF_RARE = {"X_pub": X[3:43] + 2.0 * RARE[3:43, None], "y_pub": np.arange(40) % 2}
#: What the row is that differs.
ROWS = {
    "typical": X[0],
    "range": np.array([1e30, -1e30, 1e-30, 5.0]),
    "largest": np.full(D, 1e308),
    "zeros": np.zeros(D),
    "spike": X[1],
}
FITS = {
    "classes": (AdditiveDPClassifier(classes=[0, 1], **TERMS), Y, {}),
    "declared": (AdditiveDPClassifier(classes=[0, 1], linear=[3], **TERMS), Y, {}),
    "public rows": (AdditiveDPClassifier(**PUBLIC_TERMS), Y, {"X_pub": X[1:20], "y_pub": Y[1:20]}),
    "few public rows": (AdditiveDPClassifier(**TERMS), Y, {"X_pub": X[1:9], "y_pub": Y[1:9]}),
    "pairs": (AdditiveDPClassifier(classes=[0, 1], interactions=[(0, 1), (3, 2)], **TERMS), Y, {}),
    "several classes": (AdditiveDPClassifier(classes=[0, 1, 2], **TERMS), Y + (X[:, 1] > 2), {}),
    "rare class": (AdditiveDPClassifier(classes=[0, 1], **RARE_TERMS), RARE, {}),
    "rare class, public rows": (AdditiveDPClassifier(**RARE_TERMS), RARE, PUBLIC_OF_RARE),
    "rare class, useless public rows": (
        AdditiveDPClassifier(**RARE_TERMS),
        RARE,
        {"X_pub": PUBLIC_OF_RARE["X_pub"], "y_pub": 1 - PUBLIC_OF_RARE["y_pub"]},
    ),
    "targets": (AdditiveDPRegressor(**TERMS), X[:, 1] + 3, {}),
    "counts": (AdditiveDPPoissonRegressor(**{**TERMS, "epsilon": 40.0}), Y, {}),
    "counts, public rows": (
        AdditiveDPPoissonRegressor(**{**TERMS, "epsilon": 40.0}),
        Y,
        {"X_pub": X[1:20], "y_pub": Y[1:20]},
    ),
    "chosen pairs": (AdditiveDPClassifier(classes=[0, 1], **CHOOSING), Y, {}),
    "chosen pairs of targets": (AdditiveDPRegressor(**CHOOSING), X[:, 1] + 3, {}),
}


def fit(name, rows, *calls, y=None, **more):
    """A fitted estimator, with a callback or without, to other labels where they are given."""
    model, own, public = FITS[name]
    model = clone(model)
    if calls:
        model.set_callbacks(*calls)
    return model.fit(rows, own if y is None else y, **public, **more)


#: A row that differs, for replays: as it might stand in the table.
OTHERS = {
    "range": [1e30, -1e30, 1e-30, 5.0],
    "infinite": [np.inf, -np.inf, np.inf, -np.inf],
    "missing": [np.nan] * D,
    "spike": X[1],
    "new value": [0.0, 0.0, 0.0, 0.5],
    "subnormal": [5e-324] * D,
}


def neighbours(name, other, **more):
    """Paths of a fit to some rows and to neighbouring ones."""

    def path(rows):
        def run(calls):
            model = fit(name, rows, calls, **more)
            return model, str(model.privacy_), model._row_map.basis

        return run

    changed = X.copy()
    changed[ROW] = OTHERS[other]
    return path(X), path(changed)


@pytest.mark.covering("name", "other")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_shows_what_its_noise_pays_for(monkeypatch, name, other):
    """Nothing but the sums differs in a fit to neighbouring rows that gets the same noisy arrays."""
    check_neighbours(monkeypatch, *neighbours(name, other), ROW)


@pytest.mark.covering
@pytest.mark.parametrize("n_rows", [1, 2, 40])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_to_persons_shows_what_its_noise_pays_for(monkeypatch, name, other, n_rows):
    """A person of two rows gets other rows and another number of them; all histograms count it once."""
    groups, y = np.arange(N) // 2, FITS[name][1]
    own = np.flatnonzero(groups == ROW)
    rest = np.delete(np.arange(N), own)
    more = np.r_[np.full(n_rows, own[0]), rest]
    rows = X[more].copy()
    rows[:n_rows] = OTHERS[other]

    def path(X, y, groups):
        def run(calls):
            model = fit(name, X, calls, y=y, groups=groups)
            return model, str(model.privacy_), model._row_map.basis

        return run

    first = check_neighbours(
        monkeypatch, path(X, y, groups), path(rows, y[more], groups[more]), ROW, each_row=False
    )
    assert all(each.exact.sum() <= D * N / 2 * (1 + 1e-9) for each in histograms(first.releases))


def histograms(log):
    """The releases of knots, whose run is the first; none with knots of public rows."""
    return [each for each in log if each.run is log[0].run and each.exact.ndim == 1]


@pytest.mark.covering
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FITS)
def test_folds_show_what_their_noise_pays_for(monkeypatch, name, other):
    """Of three folds, a row moves the one that has it, and all of that one counts its rows alone."""
    in_fold = np.arange(N) % 3 == ROW % 3
    changed = X.copy()
    changed[ROW] = OTHERS[other]

    def path(rows):
        def run(calls):
            models = [clone(FITS[name][0]) for _ in range(3)]
            fit_many(
                models, rows, FITS[name][1], **FITS[name][2], rows=[in_fold, ~in_fold, np.arange(N) < 500]
            )
            return [(model, str(model.privacy_), model._row_map.basis) for model in models]

        return run

    first = check_neighbours(monkeypatch, path(X), path(changed), ROW, each_row=False)
    assert all(each.mask is not None for each in first.releases)


@pytest.mark.covering("name row", "name held", "row held")
@pytest.mark.parametrize("held", FORMS)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_release_moves_by_more_than_its_sensitivity(monkeypatch, name, row, held):
    rows = FORMS[held](np.concatenate([ROWS[row][None], X[1:]]))
    check_sensitivities(monkeypatch, lambda: fit(name, rows), N, more_than=10)


@pytest.mark.parametrize("name", FITS)
def test_releases_use_up_the_budget_and_no_more(monkeypatch, name):
    log, model = released(monkeypatch, lambda: fit(name, X), np.zeros(N, bool))
    spent = sum((release.sensitivity / release.scale) ** 2 for release in log)
    assert spent == pytest.approx(model.privacy_.mu**2, rel=1e-6)
    shares = dict(model.privacy_.shares)
    assert sum(shares.values()) == pytest.approx(1)
    if "knots" in shares:
        knots = sum((each.sensitivity / each.scale) ** 2 for each in log if each.run is log[0].run)
        lines = 0.01 if name == "declared" else 0.0  # a run of its own
        assert knots == pytest.approx((shares["knots"] - lines) * model.privacy_.mu**2, rel=1e-6)
        assert log[0].sensitivity == pytest.approx(np.sqrt(3 if name == "declared" else D), rel=0.02)
    assert ("knots" in shares) == (not name.endswith("public rows") or name == "few public rows")
