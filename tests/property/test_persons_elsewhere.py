"""Scores, evaluations, scalers and searches show of all rows of one person what their noise pays for."""

from functools import cache
from itertools import product

import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger
from tests.property.test_persons_replay import COEF, NEIGHBOURS, X_PUB, Y_PUB, K, Persons, check
from tests.replay import shown

TERMS = {"epsilon": 30.0, "delta": 1e-4}


@cache
def head(**parameters):
    """A head that has seen public rows alone."""
    return MixedDPLogisticRegression(**TERMS, classes=range(K), **parameters).fit(X_PUB, Y_PUB)


@cache
def regression(n_targets=2):
    return MixedDPRidge(**TERMS, target_scale=2.0).fit(X_PUB, (X_PUB @ COEF)[:, :n_targets])


def charged(path):
    """A path, with what it adds to a ledger."""

    def with_ledger(one, calls):
        ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=5000, delta=1e-3, unit="person")
        outcome = path(one, ledger)
        return outcome, [(charge.event, charge.description) for charge in ledger.charges()]

    return with_ledger


def score(method, model=head, **parameters):
    def path(one, ledger):
        fitted = model(**parameters)
        fitted.ledger = ledger
        found = getattr(fitted, method)(one.X, one.y, groups=one.groups, epsilon=30.0, delta=1e-4)
        fitted.ledger = None
        return found

    return path


def evaluation(**parameters):
    def path(one, ledger):
        model, y = (head(), one.y) if one.y.ndim == 1 else (regression(1), one.y[:, 0])
        terms = {**TERMS, "groups": one.groups, "ledger": ledger, **parameters}
        found = private_evaluation(model, one.X, y, **terms)
        return found, str(found), str(found.privacy)

    return path


def scaler(**parameters):
    def path(one, ledger):
        return shown(NoisyScaler(**{**TERMS, **parameters}, ledger=ledger).fit(one.X, groups=one.groups))

    return path


def search(**parameters):
    def path(one, ledger):
        terms = {**TERMS, "ledger": ledger, "strategy": "grid", **parameters}
        inner = MixedDPLogisticRegression("noisy-gd", n_steps=3, classes=range(K))
        found = PrivateSearchCV(inner, {"learning_rate": [0.3, 1.0]}, **terms)
        found.fit(one.X, one.y, X_PUB, Y_PUB, groups=one.groups)
        return found.best_estimator_, found.cv_results_["mean_test_score"], str(found.privacy_)

    return path


PATHS = {
    "score": score("private_score"),
    "confusion": score("private_confusion"),
    "score, float64": score("private_score", dtype="float64"),
    "score of a regression": score("private_score", regression),
    "evaluation": evaluation(),
    "evaluation, one by one": evaluation(layout="one_vs_rest"),
    "evaluation of a regression": evaluation(target_bounds=(-5.0, 5.0)),
    "scaler": scaler(bounds=(-3.0, 3.0)),
    "scaler, means alone": scaler(bounds=(-3.0, 3.0), with_std=False),
    "scaler without bounds": scaler(),
    "search": search(),
    "search, public scores": search(scoring="public"),
}
CASES = list(product(PATHS, NEIGHBOURS))


@pytest.mark.covering("path", "neighbour")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers beyond the range, in the neighbours
@pytest.mark.parametrize(("path", "neighbour"), CASES)
def test_a_release_shows_what_its_noise_pays_for(monkeypatch, path, neighbour):
    # The models are made before, so that no release of theirs is recorded.
    assert [regression(), regression(1)] if "regression" in path else [head(), head(dtype="float64")]
    one = Persons.drawn(targets="regression" in path)
    check(monkeypatch, charged(PATHS[path]), one, neighbour, state="warn")
