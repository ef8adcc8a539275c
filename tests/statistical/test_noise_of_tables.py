"""Every release of a fit to a table has the noise that its share of the budget asks for.

The scales are computed here from epsilon, delta, the shares that the report states, and the sensitivities as
they are defined: the root of the number of columns for a histogram, 1 for a second moment, and the root of 8
for the temperature. The draws must be accepted, and rejected with 2/3 and 3/2 of the noise. Fits are not
seeded; a sound path fails with a probability below 1e-6.
"""

import math

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.features import ZeroShotHead
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import mu_of_budget
from tests.noise import FAULTS, assert_energies, assert_scales, by_run, recorded, scaled

N, D, K = 4000, 8, 3
TERMS = {"epsilon": 8.0, "delta": 1e-5}
rng = np.random.default_rng(0)
Y = np.arange(N) % K
X = rng.normal(size=(K, D))[Y] + rng.normal(size=(N, D))
WIDE = np.column_stack([X, rng.normal(size=(N, 12))])
TABLE = X * np.where(np.arange(D) < 1, 1e4, 1.0)
#: Few rows, whose mean and directions are learned. What noisy columns tell decides which stages follow.
FEW, OF_FEW = X[:300] + 2.0, {"epsilon": 8.0, "scale": False}
NAMES = ZeroShotHead(["a", "b", "c"], embeddings=rng.normal(size=(K, D)))
#: Releases of each stage.
STAGES = {
    "class counts": 1,
    "mean prediction": 1,
    "scale of the targets": 3,
    "columns": 3,
    "first head": 15,
    "lengths of gradients": 1,
    "check of units": 1,
    "check of the start": 1,
    "mean": 1,
    "directions": 3,
    "length of the rows": 8,
    "second moment": 1,
    "comparison": 1,
    "temperature": 1,
    "residuals": 1,
    "label shares": 1,
    "class shares": 1,
    "strength of the adjustment": 1,
}


def sensitivities(n_features, n_targets, n_labels):
    return {
        "label shares": math.sqrt(n_labels) / 2,
        "scale of the targets": math.sqrt(2),  # of two targets
        "columns": math.sqrt(n_features),
        "check of units": math.sqrt(n_features + n_targets),
        "lengths of gradients": 1.0,
        "second moment": 1.0,
        "temperature": math.sqrt(8),
        "class counts": 1.0,
        "class shares": 1.0,
        "strength of the adjustment": math.sqrt(3),
        "mean prediction": math.sqrt(2),  # of three classes and more
        # Four histograms of two targets, and then the sums of each.
        "residuals": (math.sqrt(2 * n_targets), math.sqrt(n_targets * (1 + 1 / 4 + 1 / 16 + 1 / 16))),
    }


def classifier(X, *public, **parameters):
    head = MixedDPLogisticRegression(classes=range(K), logit_adjustment=0, **{**TERMS, **parameters})
    return head.fit(X, Y[: len(X)], *public)


def rare():
    """Ten classes, nine of which have 2% of the rows each."""
    y = np.maximum(np.arange(N) % 50 - 40, 0)
    return MixedDPLogisticRegression(classes=range(10), logit_adjustment=0, **TERMS).fit(TABLE, y)


def adjusted(**parameters):
    y = np.repeat(np.arange(20), np.arange(20, 180, 8))
    fixed = {"classes": range(20), "rows": RowMapping(geometry=False), "logit_adjustment": 1.0}
    return MixedDPLogisticRegression(**{**TERMS, **fixed, **parameters}).fit(X[: len(y), :3], y)


def labels(neighboring):
    head = MixedDPLogisticRegression(neighboring=neighboring, **TERMS)
    return head.fit(X[:600, :3], (rng.random((600, 20)) < 0.3).astype(int))


def terms(estimator):
    """Name, multiplier, number of releases and sensitivity of each stage."""
    epsilon = estimator.epsilon
    mu = mu_of_budget(epsilon, estimator.delta, noise=estimator.noise, neighboring=estimator.neighboring)
    shares = dict(estimator.privacy_.shares)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-12)
    assert epsilon * (1 - 1e-6) <= estimator.privacy_.epsilon <= epsilon
    n_releases = {**STAGES, "training": estimator.n_iter_}
    n_targets = len(estimator.coef_) if isinstance(estimator, MixedDPRidge) else 0
    if n_targets:
        n_releases["second moment"] = 2
    known = sensitivities(estimator.n_features_in_, n_targets, len(estimator.coef_))
    # The check left public rows out, and then counts came.
    if {"class counts", "check of units"} <= shares.keys():
        shares = {name: shares[name] for name in ("check of units", "class counts")} | shares
    return [
        (name, math.sqrt(n_releases[name] / share) / mu, n_releases[name], known.get(name))
        for name, share in shares.items()
    ]


def scaler():
    """All of the budget is for three histograms."""
    fitted = NoisyScaler(8.0, 1e-5).fit(TABLE)
    mu = mu_of_budget(8.0, 1e-5)
    assert fitted.privacy_.mu == pytest.approx(mu, rel=1e-6)
    return [("columns", math.sqrt(3) / mu, 3, math.sqrt(D))]


#: What is fitted, how often, and the new stages that it has.
PATHS = {
    "few rows": (30, lambda: terms(classifier(FEW, **OF_FEW)), {"mean", "directions"}),
    "few rows, discrete": (30, lambda: terms(classifier(FEW, noise="discrete", **OF_FEW)), {"mean"}),
    "few rows, names": (30, lambda: terms(classifier(FEW, init=NAMES, **OF_FEW)), {"mean"}),
    "few rows, public geometry": (
        200,
        lambda: terms(classifier(FEW, FEW[:24], Y[:24], rows=RowMapping(geometry=True), **OF_FEW)),
        {"mean", "comparison"},
    ),
    "few rows, public": (
        200,
        lambda: terms(classifier(FEW, FEW[:24], Y[:24], rows=RowMapping(geometry=False), **OF_FEW)),
        {"check of the start", "comparison"},
    ),
    "few targets, public": (
        200,
        lambda: terms(MixedDPRidge(**TERMS).fit(FEW, FEW[:, :2], FEW[:24], FEW[:24, :2])),
        {"check of units"},
    ),
    "few targets": (
        30,
        lambda: terms(MixedDPRidge(target_scale=1.0, **{**TERMS, **OF_FEW}).fit(FEW, FEW[:, :2])),
        {"length of the rows"},
    ),
    "table": (20, lambda: terms(classifier(TABLE)), {"columns", "second moment", "temperature"}),
    "public rows": (
        20,
        lambda: terms(classifier(TABLE, TABLE[:60], Y[:60])),
        {"check of units", "second moment", "temperature"},
    ),
    "public rows in other units": (
        20,
        lambda: terms(classifier(TABLE, 10 * TABLE[:60], Y[:60])),
        {"check of units", "columns", "second moment", "temperature"},
    ),
    "columns that are not used": (20, lambda: terms(classifier(WIDE)), {"columns", "temperature"}),
    "geometry": (
        20,
        lambda: terms(classifier(TABLE, rows=RowMapping(geometry=True))),
        {"columns", "temperature"},
    ),
    "regression": (
        20,
        lambda: terms(MixedDPRidge(**TERMS).fit(TABLE, X[:, :2])),
        {"scale of the targets", "columns", "second moment", "lengths of gradients", "residuals"},
    ),
    "rare classes": (20, lambda: terms(rare()), {"class counts", "temperature", "mean prediction"}),
    "adjusted": (10, lambda: terms(adjusted()), {"class counts"}),
    "adjusted and balanced": (
        10,
        lambda: terms(adjusted(class_weight="balanced")),
        {"class counts", "class shares"},
    ),
    "chosen adjustment": (
        10,
        lambda: terms(adjusted(logit_adjustment="auto")),
        {"strength of the adjustment"},
    ),
    "labels": (20, lambda: terms(labels("add_or_remove_one")), {"label shares"}),
    "labels, replace one": (20, lambda: terms(labels("replace_one")), {"label shares"}),
    "scaler": (1, scaler, {"columns"}),
}


def draws_of(one_fit):
    """The draws of each stage of a fit by name, after a check of the scales that were asked for."""
    log, stated = one_fit
    runs = by_run(log)
    assert len(runs) == len(stated)
    draws = {}
    for run, (name, multiplier, n_releases, sensitivity) in zip(runs, stated, strict=True):
        asked = run[0].scale / run[0].scale_for(1.0)
        assert asked == pytest.approx(multiplier, rel=1e-6), name
        assert_scales(run, asked, n_releases)
        if sensitivity is not None:
            # And the rounding of sums, which is small.
            least = np.broadcast_to(sensitivity, len(run)) * (1 - 1e-12)
            computed = np.array([release.sensitivity for release in run])
            assert (least <= computed).all() and (computed < 1.02 * least).all(), name
        draws[name] = np.concatenate([release.draws(multiplier) for release in run])
    return draws


def check(fits):
    found = [draws_of(fit) for fit in fits]
    # Noise may, in 1 of 100 fits at most, make a magnitude that changes which stages follow.
    names = {name for draws in found for name in draws}
    assert_energies([np.concatenate([draws[name] for draws in found if name in draws]) for name in names])


#: Those with many fits, or with noise that takes long.
SLOW = {"few rows, public geometry", "few rows, public", "few targets, public", "few targets"}
SLOW |= {"few rows, discrete"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(SLOW))
def test_each_stage_asks_for_the_noise_of_its_share(monkeypatch, name):
    draws_of(recorded(monkeypatch, PATHS[name][1]))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PATHS]
)
def test_each_stage_has_the_noise_of_its_share(monkeypatch, name):
    n_fits, path, stages = PATHS[name]
    fits = [recorded(monkeypatch, path) for _ in range(n_fits)]
    assert stages <= {stage for _, stated in fits for stage, *_ in stated}
    check(fits)
    for fault in ("2/3", "3/2", "1e-6"):
        with pytest.raises(AssertionError, match="mean square"):
            check([(FAULTS[fault](log), stated) for log, stated in fits])


#: Fits whose new releases are attacked one by one, and these.
ALONE = {
    "table": (60, {"columns", "second moment", "temperature"}),
    "rare classes": (60, {"class counts", "mean prediction"}),
    "regression": (40, {"residuals", "lengths of gradients"}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ALONE)
def test_another_noise_in_one_release_by_name_is_found(monkeypatch, name):
    n_fits, stages = ALONE[name]
    fits = [recorded(monkeypatch, PATHS[name][1]) for _ in range(n_fits)]
    check(fits)
    for stage in stages:
        for factor in (2 / 3, 3 / 2):
            faulty = []
            for log, stated in fits:
                runs = zip(by_run(log), stated, strict=True)
                wrong = {id(run[0].run) for run, (own, *_) in runs if own == stage}
                fault = scaled(factor, lambda release, wrong=wrong: id(release.run) in wrong)
                faulty.append((fault(log), stated))
            with pytest.raises(AssertionError, match="mean square"):
                check(faulty)
