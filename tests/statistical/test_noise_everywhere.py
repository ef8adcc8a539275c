"""Every path on which numbers leave private rows adds the noise that is stated for it, and new noise.

Each path is a fit, a score or a statistic by the public interface. What its releases summed to, what was
stated of them and what came out of them is recorded between the rows and the run. Then

- the scale that was asked for is the noise multiplier times the stated sensitivity over the root of the
  share, exactly, and the shares use up the steps of the report and no more;
- the draws, what came out less what went in over that scale, are standard normal, and uncorrelated between
  steps and between runs that are fitted together.

The same checks must fail on the same releases with a fault planted. Fits are not seeded. The checks of a
sound path are at most 16 statistics, each of which fails with a probability below 2e-8: below 1e-6 in all.
"""

import numpy as np
import pytest

from skmixdp import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.algorithms import DOPE, GEP, PAZO, AdaMix, DPZero, NoisyGD
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler
from tests.noise import FAULTS, REPEATED, assert_found, by_run, check_releases, recorded

SIGMA = 3.0
N, D, STEPS = 240, 6, 60

rng = np.random.default_rng(0)
Y = np.arange(N) % 3
X = (rng.normal(size=(3, D))[Y] + rng.normal(size=(N, D))).astype(np.float32)
PUBLIC = {"X_pub": rng.normal(size=(30, D)).astype(np.float32), "y_pub": np.arange(30) % 3}
LABELS, LABELS_PUB = (rows[:, :4] > 0 for rows in (X, PUBLIC["X_pub"]))
TERMS = {"epsilon": None, "noise_multiplier": SIGMA, "delta": 1e-4}
FOLDS = [np.flatnonzero(np.arange(N) % 3 != fold) for fold in range(3)]


def classifier(algorithm="noisy-gd", n_steps=STEPS, **parameters):
    return MixedDPLogisticRegression(algorithm, n_steps=n_steps, **{**TERMS, **parameters})


def of(*estimators):
    """The multiplier and the number of steps that the reports of fitted estimators state."""
    return [(estimator.privacy_.noise_multiplier, estimator.privacy_.n_steps) for estimator in estimators]


def fitted(estimator, rows=X, labels=Y, public=PUBLIC, **more):
    found = of(estimator.fit(rows, labels, **public, **more))
    assert found == [(SIGMA, estimator.n_steps)]
    return found


def fitted_together(estimators, rows=None):
    return of(*fit_many(estimators, X, Y, **PUBLIC, rows=rows))


def several(**parameters):
    return [classifier(learning_rate=rate, **parameters) for rate in (0.3, 1.0, 2.0)]


def module(name="dpzero", n_steps=80, **parameters):
    torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")
    network = torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    algorithm = DPZero(8) if name == "dpzero" else PAZO(name[-1])
    return ZerothOrderDPModuleClassifier(
        network, algorithm, init="module", learning_rate=1e-3, n_steps=n_steps, **{**TERMS, **parameters}
    )


def gradients(n_steps=20, **parameters):
    torch = pytest.importorskip("torch", reason="needs torch; install skmixdp[features]")
    network = torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    start = {"init": "module", "learning_rate": 1e-3, "n_steps": n_steps}
    return FirstOrderDPModuleClassifier(network, NoisyGD(), **start, **{**TERMS, **parameters})


def regression(**parameters):
    ridge = MixedDPRidge("noisy-gd", n_steps=100, **TERMS, **parameters)
    return fitted(ridge, X, X[:, :2], {"X_pub": PUBLIC["X_pub"], "y_pub": PUBLIC["X_pub"][:, :2]})


def counts(n_counts=520, groups=None, **parameters):
    """Noisy counts of the rows that a head gets right, by a multiplier of their own."""
    clf = classifier(n_steps=1, **parameters).fit(X, Y, **PUBLIC)
    for _ in range(n_counts):
        clf.private_score(X, Y, groups=groups, noise_multiplier=7.0)
    return of(clf) + [(7.0, 1)] * n_counts


def evaluations(groups=None, **parameters):
    """Histograms of scores by label, of one class against the rest."""
    clf = classifier(n_steps=1, **parameters).fit(X, Y, **PUBLIC)
    found = []
    for _ in range(4):
        noisy = private_evaluation(
            clf, X, Y, epsilon=5.0, delta=1e-4, groups=groups, layout="one_vs_rest", n_bins=200, **parameters
        )
        found.append((noisy.privacy.noise_multiplier, noisy.privacy.n_steps))
    return of(clf) + found


def scalers(groups=None, **parameters):
    wide = rng.uniform(-1, 1, size=(50, 400))
    found = []
    for _ in range(3):
        scaler = NoisyScaler(5.0, 1e-4, bounds=(-1.0, 2.0), **parameters).fit(wide, groups=groups)
        found += of(scaler)
    return found


def search(groups=None, **parameters):
    """Fits of three candidates side by side, and a count for each."""
    grid = {"learning_rate": [0.3, 1.0, 2.0]}
    head = MixedDPLogisticRegression("noisy-gd", n_steps=STEPS)
    terms = {"epsilon": 3.0, "delta": 1e-4, **parameters}
    found = PrivateSearchCV(head, grid, **terms).fit(X, Y, **PUBLIC, groups=groups)
    fits = of(found.best_estimator_) * 3
    return fits + [(found.privacy_.score_noise * found.privacy_.n_private, 1)] * 3


def search_on_public_rows():
    """The same with free scores."""
    grid = {"learning_rate": [0.3, 1.0, 2.0]}
    head = MixedDPLogisticRegression("noisy-gd", n_steps=STEPS)
    terms = {"epsilon": 3.0, "delta": 1e-4, "scoring": "public", "strategy": "grid"}
    return of(PrivateSearchCV(head, grid, **terms).fit(X, Y, **PUBLIC).best_estimator_) * 3


DISCRETE = {"noise": "discrete"}
#: What makes the releases of a path, and says for each of its runs which multiplier and how many steps
#: were stated.
PATHS = {
    "full batch": lambda: fitted(classifier()),
    "Poisson": lambda: fitted(classifier(batch_size=60)),
    "one row a batch": lambda: fitted(classifier(batch_size=1)),
    "persons": lambda: fitted(classifier(), groups=np.arange(N) // 4),
    "persons, Poisson": lambda: fitted(classifier(batch_size=20), groups=np.arange(N) // 4),
    "two classes": lambda: fitted(classifier(n_steps=170), X, Y > 0, PUBLIC | {"y_pub": PUBLIC["y_pub"] > 0}),
    "several labels": lambda: fitted(classifier(), X, LABELS, PUBLIC | {"y_pub": LABELS_PUB}),
    "several labels, discrete": lambda: fitted(
        classifier(n_steps=60, **DISCRETE), X, LABELS, PUBLIC | {"y_pub": LABELS_PUB}
    ),
    "regression": lambda: regression(),
    "regression, Poisson": lambda: regression(batch_size=60),
    "folds": lambda: fitted_together(several(), FOLDS),
    "folds, Poisson": lambda: fitted_together(several(batch_size=40), FOLDS),
    "several heads": lambda: fitted_together(several()),
    "several heads, Poisson": lambda: fitted_together(several(batch_size=60)),
    "adamix": lambda: fitted(classifier(AdaMix())),
    "subspace": lambda: fitted(classifier(AdaMix(n_components=4, clip_floor=0.5))),
    "gep": lambda: fitted(classifier(GEP())),
    "gep, Poisson": lambda: fitted(classifier(GEP(), batch_size=60)),
    "dope": lambda: fitted(classifier(DOPE())),
    "pazo-s": lambda: fitted(MixedDPLogisticRegression(PAZO("s"), n_steps=260, learning_rate=1e-3, **TERMS)),
    "module": lambda: fitted(module()),
    "module, Poisson": lambda: fitted(module(batch_size=60)),
    "module, pazo-s": lambda: fitted(module("pazo-s", n_steps=160)),
    "gradients": lambda: fitted(gradients()),
    "gradients, Poisson": lambda: fitted(gradients(batch_size=60)),
    "counts": counts,
    "evaluation": evaluations,
    "scaler": scalers,
    "scaler, means alone": lambda: scalers(with_std=False),
    "persons, counts": lambda: counts(groups=np.arange(N) // 4),
    "persons, evaluation": lambda: evaluations(groups=np.arange(N) // 4),
    "persons, scaler": lambda: scalers(groups=np.arange(50) // 2),
    "persons, search": lambda: search(np.arange(N) // 4, strategy="grid"),
    "search, grid": lambda: search(strategy="grid"),
    "search, public scores": search_on_public_rows,
    "discrete": lambda: fitted(classifier(n_steps=60, **DISCRETE)),
    "discrete, several heads": lambda: fitted_together(several(**DISCRETE)),
    "discrete, folds": lambda: fitted_together(several(**DISCRETE), FOLDS),
    "discrete, module": lambda: fitted(module(**DISCRETE)),
    "discrete, counts": lambda: counts(**DISCRETE),
    "discrete, evaluation": lambda: evaluations(**DISCRETE),
    "discrete, scaler": lambda: scalers(**DISCRETE),
    "float64": lambda: fitted(classifier(dtype="float64")),
}


def assert_on_grid(log):
    """Sums and noisy sums are whole multiples of a grid that is fine next to the noise."""
    for release in log:
        assert release.source.kind == "discrete"
        assert release.grid is not None and release.grid < release.scale / 100
        for array in (release.exact, release.noisy):
            units = array / release.grid
            assert np.array_equal(units, np.round(units)) and np.abs(units).max() < 2.0**53


@pytest.mark.parametrize("name", PATHS)
def test_the_noise_of_a_path_is_what_is_stated(monkeypatch, name):
    if "discrete" in name:
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    log, stated = recorded(monkeypatch, PATHS[name])
    check_releases(log, stated)
    if "discrete" in name:
        assert_on_grid(log)
    faults = dict(FAULTS)
    if len({len(run) for run in by_run(log)}) == 1 < len(log) / len(stated) < len(log):
        faults |= REPEATED
    assert_found(faults, log, stated)


def test_a_random_search_adds_noise_to_each_of_its_secret_trials(monkeypatch):
    def path():
        head = MixedDPLogisticRegression("noisy-gd", n_steps=STEPS)
        terms = {"epsilon": 3.0, "delta": 1e-4, "strategy": "random", "n_trials": 4}
        found = PrivateSearchCV(head, {"learning_rate": [0.3, 1.0]}, **terms).fit(X, Y, **PUBLIC)
        return [*of(found.best_estimator_), (found.privacy_.score_noise * N, 1)]

    log, (fit, score) = recorded(monkeypatch, path)
    lengths = [len(run) for run in by_run(log)]
    assert lengths.count(1) == lengths.count(STEPS) == len(lengths) / 2
    stated = [fit if length > 1 else score for length in lengths]
    check_releases(log, stated)
    assert_found(FAULTS, log, stated)
