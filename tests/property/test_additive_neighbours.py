"""A row that is zeroed out moves each release of an additive fit by at most its sensitivity.

The second fit is handed what the first one released, so that both ask the same queries, one after the other.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor
from skmixdp._engine.recording import recorded_releases
from tests.noise import watch

N, D = 600, 4
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
    "classes": lambda rows: AdditiveDPClassifier(classes=[0, 1], **TERMS).fit(rows, Y),
    "declared": lambda rows: AdditiveDPClassifier(classes=[0, 1], linear=[3], **TERMS).fit(rows, Y),
    "public rows": lambda rows: AdditiveDPClassifier(**TERMS).fit(rows, Y, X_pub=X[1:60], y_pub=Y[1:60]),
    "few public rows": lambda rows: AdditiveDPClassifier(**TERMS).fit(rows, Y, X_pub=X[1:9], y_pub=Y[1:9]),
    "targets": lambda rows: AdditiveDPRegressor(**TERMS).fit(rows, X[:, 1] + 3),
}


def released(monkeypatch, fit, rows, absent, replayed=None):
    """The releases of a fit; ``replayed`` are handed out instead of its own."""
    replay = None if replayed is None else lambda release, log: replayed[len(log)].noisy
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = watch(patch, replay)
        with recorded_releases(absent):
            model = fit(rows)
    return log, model


@pytest.mark.covering("name row", "name held", "row held")
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_release_moves_by_more_than_its_sensitivity(monkeypatch, name, row, held):
    rows = HELD[held](np.concatenate([ROWS[row][None], X[1:]]))
    full, _ = released(monkeypatch, FITS[name], rows, np.zeros(N, bool))
    without, _ = released(monkeypatch, FITS[name], rows, np.arange(N) == 0, full)
    assert len(full) == len(without) > 10
    for one, other in zip(full, without, strict=True):
        assert one.sensitivity == other.sensitivity
        assert np.linalg.norm(one.exact - other.exact) <= one.sensitivity


@pytest.mark.parametrize("name", FITS)
def test_releases_use_up_the_budget_and_no_more(monkeypatch, name):
    log, model = released(monkeypatch, FITS[name], X, np.zeros(N, bool))
    spent = sum((release.sensitivity / release.scale) ** 2 for release in log)
    assert spent == pytest.approx(model.privacy_.mu**2, rel=1e-6)
    shares = dict(model.privacy_.shares)
    assert sum(shares.values()) == pytest.approx(1)
    if "knots" in shares:
        knots = sum((each.sensitivity / each.scale) ** 2 for each in log if each.run is log[0].run)
        assert knots == pytest.approx(shares["knots"] * model.privacy_.mu**2, rel=1e-6)
        assert log[0].sensitivity == pytest.approx(np.sqrt(3 if name == "declared" else D), rel=0.02)
    assert ("knots" in shares) == (name != "public rows")


def test_counts_are_exact(monkeypatch):
    log, _ = released(monkeypatch, FITS["classes"], X, np.zeros(N, bool))
    of_knots = [release for release in log if release.run is log[0].run]
    assert len(of_knots) in (2, 3)
    for release in of_knots:
        np.testing.assert_array_equal(release.exact, np.rint(release.exact))
        assert np.all(release.exact >= 0)
        n_columns = round(release.sensitivity**2)
        np.testing.assert_array_equal(release.exact.reshape(n_columns, -1).sum(axis=1), N)
