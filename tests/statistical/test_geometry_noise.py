"""Every release of a fit that learns its geometry has the noise that its share of the budget asks for.

The scales are computed here from epsilon, delta and the shares that the report states. Fits are not seeded; a
sound path fails with a probability below 1e-6.
"""

import math

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.features import ZeroShotHead
from skmixdp.privacy import mu_of_budget
from tests.noise import FAULTS, assert_energies, assert_scales, by_run, recorded

N, D, K = 300, 8, 3
rng = np.random.default_rng(0)
Y = np.arange(N) % K
X = rng.normal(size=(K, D))[Y] + rng.normal(size=(N, D)) + 2.0
X_PUB, Y_PUB = X[:24], Y[:24]
TERMS = {"epsilon": 8.0, "delta": 1e-4}
NAMES = ZeroShotHead(["a", "b", "c"], embeddings=rng.normal(size=(K, D)))
#: Releases of each stage, in their order.
STAGES = {
    "check of units": 1,
    "check of the start": 1,
    "mean": 1,
    "directions": 3,
    "length of the rows": 8,
    "second moment": 1,
    "temperature": 1,
}


def classifier(**parameters):
    # What noisy columns tell decides which stages follow; test_noise_of_tables.py has them.
    fixed = {**TERMS, "classes": range(K), "logit_adjustment": 0, "scale": False}
    return MixedDPLogisticRegression(**{**fixed, **parameters})


def terms(estimator):
    """Multiplier and number of releases of each stage, from epsilon and the stated shares."""
    mu = mu_of_budget(TERMS["epsilon"], TERMS["delta"], noise=estimator.noise)
    shares = dict(estimator.privacy_.shares)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-12)
    n_releases = {**STAGES, "training": estimator.n_iter_, "comparison": 1}
    assert estimator.privacy_.epsilon == pytest.approx(TERMS["epsilon"], rel=1e-6)
    assert estimator.privacy_.epsilon <= TERMS["epsilon"]
    return [(math.sqrt(n_releases[name] / share) / mu, n_releases[name]) for name, share in shares.items()]


#: What makes a fitted estimator, and how often, so that each stage draws some 200 numbers.
PATHS = {
    "no public rows": (30, lambda: classifier().fit(X, Y)),
    "discrete noise": (30, lambda: classifier(noise="discrete").fit(X, Y)),
    "names of classes": (30, lambda: classifier(init=NAMES).fit(X, Y)),
    "public rows, geometry": (200, lambda: classifier(geometry=True).fit(X, Y, X_PUB, Y_PUB)),
    "public rows": (200, lambda: classifier(geometry=False).fit(X, Y, X_PUB, Y_PUB)),
    "regression, public rows": (200, lambda: MixedDPRidge(**TERMS).fit(X, X[:, :2], X_PUB, X_PUB[:, :2])),
    "regression": (30, lambda: MixedDPRidge(target_scale=1.0, scale=False, **TERMS).fit(X, X[:, :2])),
}


@pytest.mark.filterwarnings("ignore:the .* public rows suffice")
@pytest.mark.parametrize("name", PATHS)
def test_each_stage_asks_for_the_noise_of_its_share(monkeypatch, name):
    scales_of(recorded(monkeypatch, lambda: terms(PATHS[name][1]())))


def scales_of(one_fit):
    """The draws of each stage of a fit, after a check of the scales that were asked for."""
    log, stated = one_fit
    runs = by_run(log)
    assert len(runs) == len(stated)
    draws = []
    for run, (multiplier, n_releases) in zip(runs, stated, strict=True):
        asked = run[0].scale / run[0].scale_for(1.0)
        assert asked == pytest.approx(multiplier, rel=1e-6)  # mu is found to such a precision
        assert_scales(run, asked, n_releases)
        draws.append([release.draws(multiplier) for release in run])
    return draws


def check(fits):
    """The scales of all releases, and the draws of each stage over all fits."""
    stages = zip(*map(scales_of, fits), strict=True)
    assert_energies([np.concatenate([draws for fit in stage for draws in fit]) for stage in stages])


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
        with pytest.raises(AssertionError):
            check([(FAULTS[fault](log), stated) for log, stated in fits])
