"""A row that is zeroed out moves each release of a fit by at most its sensitivity, in all stages of the fit.

The second fit is handed what the first one released, so that both ask the same queries, one after the other.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp._engine.recording import recorded_releases
from skmixdp.features import ZeroShotHead
from tests.noise import watch

N, D, K = 400, 7, 3
rng = np.random.default_rng(0)
Y = np.arange(N) % K
X = rng.normal(size=(K, D))[Y] + rng.normal(size=(N, D)) + 1.0
NAMES = ZeroShotHead(["a", "b", "c"], embeddings=rng.normal(size=(K, D)))
#: The seed makes both fits start the power method from the same directions.
TERMS = {"epsilon": 8.0, "delta": 1e-4, "random_state": 0}
#: What the row is that differs, and in which form rows are held.
ROWS = {
    "typical": X[0],
    "huge": 1e25 * X[0],
    "tiny": 1e-30 * X[0],
    "zeros": np.zeros(D),
    "one entry": 1e12 * np.eye(D)[0],
}
HELD = {"dense": np.asarray, "sparse": sp.csr_array, "float32": lambda rows: rows.astype(np.float32)}
FITS = {
    "no public rows": lambda rows: MixedDPLogisticRegression(classes=range(K), **TERMS).fit(rows, Y),
    "names": lambda rows: MixedDPLogisticRegression(classes=range(K), init=NAMES, **TERMS).fit(rows, Y),
    "balanced": lambda rows: MixedDPLogisticRegression(
        classes=range(K), class_weight="balanced", **TERMS
    ).fit(rows, Y),
    "public rows": lambda rows: MixedDPLogisticRegression(geometry=True, **TERMS).fit(
        rows, Y, X_pub=X[1:40], y_pub=Y[1:40]
    ),
    "useless public rows": lambda rows: MixedDPLogisticRegression(classes=range(K), **TERMS).fit(
        rows, Y, X_pub=X[1:61], y_pub=(Y[1:61] + 1) % K
    ),
    "public rows in other units": lambda rows: MixedDPLogisticRegression(**TERMS).fit(
        rows, Y, X_pub=100 * X[1:61], y_pub=Y[1:61]
    ),
    "public targets in other units": lambda rows: MixedDPRidge(**TERMS).fit(
        rows, np.arange(N) % 5 - 2.0, X_pub=X[1:61], y_pub=100.0 * (np.arange(1, 61) % 5)
    ),
    "unlabelled rows": lambda rows: MixedDPLogisticRegression(classes=range(K), **TERMS).fit(
        rows, Y, X_unlabeled=X[1:40]
    ),
    "unlabelled and public rows": lambda rows: MixedDPLogisticRegression(classes=range(K), **TERMS).fit(
        rows, Y, X_pub=X[1:9], y_pub=Y[1:9], X_unlabeled=X[9:40]
    ),
    "regression": lambda rows: MixedDPRidge(target_scale=1.0, **TERMS).fit(rows, np.arange(N) % 5 - 2.0),
}


def released(monkeypatch, fit, rows, absent, replayed=None):
    """The releases of a fit; ``replayed`` are handed out instead of its own."""
    replay = None if replayed is None else lambda release, log: replayed[len(log)].noisy
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = watch(patch, replay)
        with recorded_releases(absent):
            fit(rows)
    return log


@pytest.mark.covering("name row", "name held", "row held")
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_release_moves_by_more_than_its_sensitivity(monkeypatch, name, row, held):
    rows = HELD[held](np.concatenate([ROWS[row][None], X[1:]]))
    full = released(monkeypatch, FITS[name], rows, np.zeros(N, bool))
    without = released(monkeypatch, FITS[name], rows, np.arange(N) == 0, full)
    assert len(full) == len(without) > 20
    for one, other in zip(full, without, strict=True):
        assert one.sensitivity == other.sensitivity
        assert np.linalg.norm(one.exact - other.exact) <= one.sensitivity


@pytest.mark.parametrize("name", ["unlabelled rows", "unlabelled and public rows"])
def test_nothing_of_public_rows_is_in_a_private_sum(monkeypatch, name):
    for release in released(monkeypatch, FITS[name], X, np.ones(N, bool)):
        np.testing.assert_array_equal(release.exact, 0)
