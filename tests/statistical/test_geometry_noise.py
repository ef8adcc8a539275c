"""Every release of a fit that learns its geometry has the noise that its share of the budget asks for.

The scales are computed here from epsilon, delta and the shares that the report states. Fits are not seeded; a
sound path fails with a probability below 1e-6.
"""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.features import ZeroShotHead
from tests.noise import FAULTS, recorded
from tests.statistical.test_noise_of_tables import check, draws_of, terms

N, D, K = 300, 8, 3
rng = np.random.default_rng(0)
Y = np.arange(N) % K
X = rng.normal(size=(K, D))[Y] + rng.normal(size=(N, D)) + 2.0
X_PUB, Y_PUB = X[:24], Y[:24]
TERMS = {"epsilon": 8.0, "delta": 1e-4}
NAMES = ZeroShotHead(["a", "b", "c"], embeddings=rng.normal(size=(K, D)))


def classifier(**parameters):
    # What noisy columns tell decides which stages follow; test_noise_of_tables.py has them.
    fixed = {**TERMS, "classes": range(K), "logit_adjustment": 0, "scale": False}
    return MixedDPLogisticRegression(**{**fixed, **parameters})


#: What makes a fitted estimator, and how often, so that each stage draws some 200 numbers.
PATHS = {
    "no public rows": (30, lambda: classifier().fit(X, Y)),
    "discrete noise": (30, lambda: classifier(noise="discrete").fit(X, Y)),
    "names of classes": (30, lambda: classifier(init=NAMES).fit(X, Y)),
    "public rows, geometry": (
        200,
        lambda: classifier(rows=RowMapping(geometry=True)).fit(X, Y, X_PUB, Y_PUB),
    ),
    "public rows": (200, lambda: classifier(rows=RowMapping(geometry=False)).fit(X, Y, X_PUB, Y_PUB)),
    "regression, public rows": (200, lambda: MixedDPRidge(**TERMS).fit(X, X[:, :2], X_PUB, X_PUB[:, :2])),
    "regression": (30, lambda: MixedDPRidge(target_scale=1.0, scale=False, **TERMS).fit(X, X[:, :2])),
}


@pytest.mark.filterwarnings("ignore:the .* public rows suffice")
@pytest.mark.parametrize("name", PATHS)
def test_each_stage_asks_for_the_noise_of_its_share(monkeypatch, name):
    draws_of(recorded(monkeypatch, lambda: terms(PATHS[name][1]())))


@pytest.mark.filterwarnings("ignore:the .* public rows suffice")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("no public rows", "names of classes") else pytest.mark.slow)
        for name in PATHS
    ],
)
def test_each_stage_has_the_noise_of_its_share(monkeypatch, name):
    n_fits, fit = PATHS[name]
    fits = [recorded(monkeypatch, lambda: terms(fit())) for _ in range(n_fits)]
    check(fits)
    for fault in ("2/3", "3/2", "1e-6"):
        with pytest.raises(AssertionError, match="mean square"):
            check([(FAULTS[fault](log), stated) for log, stated in fits])
