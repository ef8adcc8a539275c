"""A seed instead of secret noise is warned of once, before anything is drawn or charged."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from skmixdp import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.algorithms import PAZO
from skmixdp.exceptions import NotPrivateWarning
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger
from skmixdp.privacy.noise import NoiseSource

DELTA = 1e-3


def fit_head(estimator):
    def run(rows, **given):
        return clone(estimator).set_params(**given).fit(*rows)

    return run


def fit_module(kind):
    def run(rows, **given):
        torch = pytest.importorskip("torch")
        X, X_pub = rows.X.astype(np.float32), rows.X_pub.astype(np.float32)
        clf = kind(torch.nn.Linear(X.shape[1], 3), n_steps=2, learning_rate=0.1, delta=DELTA, **given)
        return clf.fit(X, rows.y, X_pub, rows.y_pub)

    return run


def fit_side_by_side(rows, **given):
    heads = [MixedDPLogisticRegression(delta=DELTA, **given) for _ in range(3)]
    return fit_many(heads, *rows)[0]


def search(rows, strategy="grid", seed=None, **given):
    head = MixedDPLogisticRegression(delta=DELTA, random_state=seed)
    return PrivateSearchCV(head, {"n_steps": [2, 3]}, delta=DELTA, strategy=strategy, **given).fit(*rows)


def search_of_seeded_heads(rows, *, random_state=None, **given):
    return search(rows, strategy="random", seed=random_state, **given)


def scale(rows, **given):
    return NoisyScaler(delta=DELTA, bounds=(-100, 100), **given).fit(rows.X)


FITS = {
    "classifier": fit_head(MixedDPLogisticRegression(delta=DELTA)),
    "regressor": fit_head(MixedDPRidge(delta=DELTA)),
    "zeroth order": fit_head(MixedDPLogisticRegression(PAZO("m"), delta=DELTA)),
    "module": fit_module(partial(ZerothOrderDPModuleClassifier, algorithm="dpzero")),
    "gradients of a module": fit_module(FirstOrderDPModuleClassifier),
    "fit_many": fit_side_by_side,
    "search": search,
    "search of seeded heads": search_of_seeded_heads,
    "scaler": scale,
}


@pytest.fixture(params=FITS)
def fit_one(request):
    return FITS[request.param]


def warned_by(action, *args, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action(*args, **kwargs)
    return result, [w for w in caught if issubclass(w.category, NotPrivateWarning)]


@pytest.mark.covering
@pytest.mark.parametrize("seed", [0, np.int64(3), np.random.RandomState(0)], ids=["int", "NumPy", "state"])
def test_a_seed_is_warned_of_once(fit_one, rows, seed):
    fitted, warned = warned_by(fit_one, rows, random_state=seed)
    assert not fitted.privacy_.private
    (warning,) = warned
    assert "random_state is set" in str(warning.message) and "NOT private" in str(warning.message)


def test_no_seed_is_not_warned_of(fit_one, rows):
    fitted, warned = warned_by(fit_one, rows)
    assert fitted.privacy_.private and warned == []


def test_the_warning_comes_before_noise_and_charge(fit_one, rows, monkeypatch):
    def drawn(*args):
        raise AssertionError("noise was drawn")

    for name in ("normal", "uniform", "add_noise"):
        monkeypatch.setattr(NoiseSource, name, drawn)
    ledger = PrivacyLedger(":memory:").add_dataset("a", epsilon=3.0, delta=DELTA)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)
        with pytest.raises(NotPrivateWarning):
            fit_one(rows, random_state=0, ledger=ledger)
    assert ledger.charges() == []


@pytest.mark.parametrize("name", ["classifier", "regressor", "scaler"])
def test_the_warning_points_at_the_call(rows, name):
    _, (warning,) = warned_by(FITS[name], rows, random_state=0)
    assert warning.filename == __file__


def test_a_bad_seed_is_an_error_and_no_warning(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)
        with pytest.raises(ValueError, match=r"random_state=-1 must be None"):
            FITS["classifier"](rows, random_state=-1)


def test_one_seeded_head_of_many_is_warned_of(rows):
    heads = [MixedDPLogisticRegression(delta=DELTA, random_state=seed) for seed in (None, 0, None)]
    _, warned = warned_by(fit_many, heads, *rows)
    assert len(warned) == 1 and [head.privacy_.private for head in heads] == [True, False, True]
    _, warned = warned_by(heads[1].fit, *rows)
    assert len(warned) == 1  # what fit_many said it said for its own fits alone


def test_a_private_score_by_a_seed_is_warned_of(rows):
    for seed in (None, 0):
        clf = FITS["classifier"](rows, random_state=seed)
        _, warned = warned_by(clf.private_score, rows.X, rows.y, noise_multiplier=30.0)
        assert len(warned) == (seed is not None)
