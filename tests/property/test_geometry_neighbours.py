"""A row that is zeroed out moves each release of a fit by at most its sensitivity, in all stages."""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.features import ZeroShotHead
from tests.replay import FORMS, check_sensitivities, released

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
TARGETS = np.arange(N) % 5 - 2.0
WEIGHTS = np.where(np.arange(N) == 0, 1e9, rng.lognormal(size=N))
FITS = {
    "no public rows": lambda rows: head().fit(rows, Y),
    "rows of unit length": lambda rows: head(epsilon=40.0, scale=False).fit(rows, Y),
    "names": lambda rows: head(init=NAMES).fit(rows, Y),
    "balanced": lambda rows: head(class_weight="balanced").fit(rows, Y),
    "public rows": lambda rows: head(rows=RowMapping(geometry=True)).fit(
        rows, Y, X_pub=X[1:40], y_pub=Y[1:40]
    ),
    "useless public rows": lambda rows: head().fit(rows, Y, X_pub=X[1:61], y_pub=(Y[1:61] + 1) % K),
    "public rows in other units": lambda rows: head().fit(rows, Y, X_pub=100 * X[1:61], y_pub=Y[1:61]),
    "public targets in other units": lambda rows: MixedDPRidge(**TERMS).fit(
        rows, TARGETS, X_pub=X[1:61], y_pub=100.0 * (TARGETS[1:61] + 2)
    ),
    "unlabelled rows": lambda rows: head().fit(rows, Y, X_unlabeled=X[1:40]),
    "unlabelled and public rows": lambda rows: head().fit(rows, Y, X[1:9], Y[1:9], X_unlabeled=X[9:40]),
    "regression": lambda rows: MixedDPRidge(target_scale=1.0, **TERMS).fit(rows, TARGETS),
    "lengths of gradients": lambda rows: MixedDPRidge(**{**TERMS, "epsilon": 40.0}).fit(rows, TARGETS),
    "weights": lambda rows: head(epsilon=40.0).fit(rows, Y, sample_weight=WEIGHTS),
    "weights of targets": lambda rows: MixedDPRidge(**TERMS).fit(rows, TARGETS, sample_weight=WEIGHTS),
}


def head(**parameters):
    return MixedDPLogisticRegression(classes=range(K), **{**TERMS, **parameters})


@pytest.mark.covering("name row", "name held", "row held")
@pytest.mark.parametrize("held", FORMS)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", FITS)
def test_no_release_moves_by_more_than_its_sensitivity(monkeypatch, name, row, held):
    rows = FORMS[held](np.concatenate([ROWS[row][None], X[1:]]))
    check_sensitivities(monkeypatch, lambda: FITS[name](rows), N, more_than=20)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_fits_have_the_stages_that_are_checked():
    seen = {name for fit in FITS.values() for name, _ in fit(X).privacy_.shares}
    wanted = {"columns", "mean", "directions", "second moment", "temperature", "check of the start"}
    wanted |= {"check of units", "scale of the targets", "first head", "lengths of gradients"}
    wanted |= {"class counts", "mean prediction"}
    assert seen >= wanted | {"scale of weights", "mean weight"}, wanted - seen


@pytest.mark.parametrize("name", ["unlabelled rows", "unlabelled and public rows"])
def test_nothing_of_public_rows_is_in_a_private_sum(monkeypatch, name):
    for release in released(monkeypatch, lambda: FITS[name](X), np.ones(N, bool))[0]:
        np.testing.assert_array_equal(release.exact, 0)
