"""Arrays of 33, 100 and 1,000 rows or columns get the noise of their stated scale, in every entry.

Small models have small arrays, so a fault in large ones alone would pass all other tests. Each path here is a
fit, a score or a statistic by the public interface. What its releases summed to and what came out is recorded
between the rows and the run. Then

- the squares of sensitivity over scale add up to the budget that the report states, and no further;
- the draws of all releases of one shape are standard normal, those in rows beyond the 32nd by themselves too,
  and all together have the tails of a Gaussian.

The same checks must fail on the same releases with 2/3 and 3/2 of the noise in one shape of array, and with
0.9 of it where a shape has draws enough to tell. Fits are not seeded; a sound path fails with a probability
below 1e-9.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import DPZero, ModelMix
from skmixdp.preprocessing import NoisyScaler
from tests.noise import assert_energies, assert_tails, recorded

D = 8
MANY_ROWS = 32

#: Draws with which 2/3 and 3/2 of the noise, and 0.9 of it, are told apart from all of it.
ENOUGH, ENOUGH_FOR_A_TENTH = 1000, 9000

#: Sound energies are rejected with a smaller probability than this, and sound tails too.
LEVEL = 5e-10

#: Draws with which tails are compared.
ENOUGH_FOR_TAILS = 10_000


def rows(k, n, seed=0):
    """Rows of ``k`` classes, all of which occur."""
    drawn = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = np.random.default_rng(5).normal(size=(k, D))[y] + 0.5 * drawn.normal(size=(n, D))
    return X.astype(np.float32), y


def classifier(k, algorithm="auto", n=None, public=True, **parameters):
    X, y = rows(k, n or 2 * k)
    X_pub, y_pub = rows(k, 2 * k, seed=1) if public else (None, None)
    terms = {"epsilon": 3.0, "delta": 1e-4, "classes": range(k), **parameters}
    return MixedDPLogisticRegression(algorithm, **terms).fit(X, y, X_pub, y_pub)


def steps(k, algorithm, **parameters):
    """So many steps that the gradients have enough entries for a tenth."""
    n_steps = math.ceil(1.05 * ENOUGH_FOR_A_TENTH / (k * (D + 1)))
    return classifier(k, algorithm, n_steps=n_steps, **parameters)


def batches(k):
    terms = {"epsilon": None, "noise_multiplier": 3.0, "n_steps": 30, "batch_size": 30}
    return classifier(k, "noisy-gd", **terms)


def counted(k):
    """Counts of the classes for weights and for scores."""
    return classifier(k, n=1000 * k if k < 1000 else 300 * k, class_weight="balanced", epsilon=30.0)


def regression(k):
    X, _ = rows(k, 2 * k)
    targets = np.random.default_rng(2).normal(size=(len(X), k))
    return MixedDPRidge(epsilon=3.0, delta=1e-4, target_scale=1.0).fit(X, targets)


def wide(k, head):
    """Columns instead of classes."""
    X = np.random.default_rng(3).normal(size=(300, k)).astype(np.float32)
    y = X[:, 0] > 0 if head is MixedDPLogisticRegression else X[:, 0].astype(float)
    return head(epsilon=3.0, delta=1e-4).fit(X, y)


def scaler(k):
    X = np.random.default_rng(4).uniform(-1, 1, size=(50, k))
    return NoisyScaler(5.0, 1e-4, bounds=(-1.0, 2.0)).fit(X)


def directions(k):
    """Differences of losses along so many directions."""
    X, y = rows(3, 60)
    head = MixedDPLogisticRegression(
        DPZero(k), epsilon=3.0, delta=1e-4, n_steps=math.ceil(9500 / k), learning_rate=1e-3
    )
    return head.fit(X, y)


def confusion(k):
    X, y = rows(k, 2 * k)
    head = classifier(k, "noisy-gd", n_steps=1)
    head.private_confusion(X, y, noise_multiplier=7.0)
    return head


#: What makes a fitted estimator for a number of rows or columns of its arrays, and what further releases add
#: to its squared budget.
PATHS = {
    "noisy-gd": partial(steps, algorithm="noisy-gd"),
    "adamix": partial(steps, algorithm="adamix"),
    "gep": partial(steps, algorithm="gep"),
    "dope": partial(steps, algorithm="dope-sgd"),
    "coupling": partial(steps, algorithm="coupling"),
    "modelmix": partial(steps, algorithm=ModelMix()),
    "pda-dpmd": partial(steps, algorithm="pda-dpmd"),
    "Poisson": batches,
    "no public rows": partial(classifier, public=False),
    "public rows, geometry": partial(classifier, rows=RowMapping(geometry=True)),
    "class counts": counted,
    "regression": regression,
    "wide rows": partial(wide, head=MixedDPLogisticRegression),
    "wide rows, regression": partial(wide, head=MixedDPRidge),
    "scaler": scaler,
    "directions": directions,
    "confusion": confusion,
    "discrete": partial(steps, algorithm="noisy-gd", noise="discrete"),
}
#: Squared Gaussian-DP parameter of what a path releases in addition to its fit.
FURTHER = {"confusion": 1 / 7.0**2}
#: Larger sizes that `make test` tries too; the others are slow.
QUICK = {
    100: ("noisy-gd", "gep", "regression", "confusion", "public rows, geometry", "wide rows"),
    1000: ("noisy-gd", "no public rows", "wide rows", "scaler"),
}
CASES = [
    pytest.param(name, k, marks=() if k == 33 or name in QUICK[k] else pytest.mark.slow)
    for k in (33, 100, 1000)
    for name in PATHS
]


def stated_budget(report):
    """Squared Gaussian-DP parameter of all releases of a fit, per zeroed-out row of a batch."""
    if report.mu is not None:
        return report.mu**2
    return report.n_steps / report.noise_multiplier**2


def by_shape(log):
    """Draws of all releases of one shape, and of their rows beyond the 32nd."""
    groups = {}
    for release in log:
        z = (release.noisy - release.exact) / release.scale
        groups.setdefault(("all rows", z.shape), []).append(z.ravel())
        if len(z) > MANY_ROWS:
            groups.setdefault(("later rows", z.shape), []).append(z[MANY_ROWS:].ravel())
    return {name: np.concatenate(parts) for name, parts in groups.items()}


def check(log, budget):
    spent = sum((release.sensitivity / release.scale) ** 2 for release in log)
    assert budget * (1 - 1e-6) <= spent <= budget * (1 + 1e-9), "another budget was spent"
    groups = by_shape(log)
    assert_energies(list(groups.values()), LEVEL)
    everything = np.concatenate([z for (rows, _), z in groups.items() if rows == "all rows"])
    if len(everything) >= ENOUGH_FOR_TAILS:
        assert_tails(everything)


def changed(log, group, factor):
    """The releases with another scale of noise in one group of entries."""
    which, shape = group

    def draw(release):
        noise = release.noisy - release.exact
        if noise.shape == shape:
            noise[MANY_ROWS if which == "later rows" else 0 :] *= factor
        return replace(release, noisy=release.exact + noise)

    return [draw(release) for release in log]


@pytest.mark.parametrize(("name", "k"), CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_large_arrays_have_the_noise_that_is_stated(monkeypatch, name, k):
    if name == "discrete":
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    log, estimator = recorded(monkeypatch, lambda: PATHS[name](k))
    budget = stated_budget(estimator.privacy_) + FURTHER.get(name, 0.0)
    check(log, budget)
    assert any(max(release.exact.shape) >= k for release in log)
    for group, z in by_shape(log).items():
        factors = [2 / 3, 3 / 2] * (z.size >= ENOUGH) + [0.9] * (z.size >= ENOUGH_FOR_A_TENTH)
        for factor in factors:
            with pytest.raises(AssertionError, match="mean square"):
                check(changed(log, group, factor), budget)
