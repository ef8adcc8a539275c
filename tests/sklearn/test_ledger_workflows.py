"""What scikit-learn's workflows charge to a ledger: each fit, as it is, in whatever process."""

from collections import Counter

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix
from skmixdp.model_selection import WithPublicRows, public_params
from skmixdp.preprocessing import PublicOnly
from skmixdp.privacy import (
    GaussianEvent,
    PrivacyLedger,
    epsilon_of,
    noise_multiplier_for,
)

DELTA, STEPS = 1e-3, 3
#: What every fit below releases, and what every charge therefore is.
EVENT = GaussianEvent(noise_multiplier_for(1.0, DELTA, n_steps=STEPS), STEPS)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=100.0, delta=DELTA)


@pytest.fixture
def head(ledger):
    def make(**parameters):
        parameters = {"delta": DELTA, "n_steps": STEPS} | parameters
        return MixedDPLogisticRegression(AdaMix(), ledger=ledger, **parameters)

    return make


def check_charges(ledger, expected, *, private=True):
    """``expected`` counts fits by their number of rows; all charges are those of the fits."""
    charges = ledger.charges()
    assert Counter(int(charge.description.split(", ")[1].split()[0]) for charge in charges) == expected
    assert {charge.event for charge in charges} == {EVENT}
    assert {charge.private for charge in charges} == {private}
    total = STEPS * len(charges)
    spent = epsilon_of(EVENT.noise_multiplier, total, delta=DELTA)
    assert ledger.spent == pytest.approx(spent)


# Each workflow: from a head's factory, rows, public rows and n_jobs to the fits it makes. Of the 60
# private rows, three folds train on 40.


def cross_validation(head, rows, public, n_jobs):
    cross_val_score(head(), rows.X, rows.y, cv=3, params=public, n_jobs=n_jobs, error_score="raise")
    return {40: 3}


def grid_search(head, rows, public, n_jobs):
    grid = {"algorithm__quantile": [0.5, 0.9]}
    search = GridSearchCV(head(), grid, cv=3, n_jobs=n_jobs, error_score="raise").fit(
        rows.X, rows.y, **public
    )
    assert search.best_estimator_.privacy_.dataset == "people"
    return {40: 6, 60: 1}


def curve(head, rows, public, n_jobs):
    learning_curve(
        head(), rows.X, rows.y, train_sizes=[20, 40], cv=3, params=public, n_jobs=n_jobs, error_score="raise"
    )
    return {20: 3, 40: 3}


def calibration(head, rows, public, n_jobs):
    CalibratedClassifierCV(head(), cv=3, n_jobs=n_jobs).fit(rows.X, rows.y, **public)
    return {40: 3}


def calibration_of_one(head, rows, public, n_jobs):
    CalibratedClassifierCV(head(), cv=3, ensemble=False, n_jobs=n_jobs).fit(rows.X, rows.y, **public)
    return {40: 3, 60: 1}


def one_versus_rest(head, rows, public, n_jobs):
    # Public labels of three classes make no sense to a binary member, so there are none.
    OneVsRestClassifier(head(classes=[0, 1]), n_jobs=n_jobs).fit(rows.X, rows.y)
    return {60: 3}


def voting(head, rows, public, n_jobs):
    VotingClassifier([("a", head()), ("b", head())], n_jobs=n_jobs).fit(rows.X, rows.y, **public)
    return {60: 2}


def stacking(head, rows, public, n_jobs):
    members = [("a", head(classes=[0, 1, 2])), ("b", head(classes=[0, 1, 2]))]
    final = LogisticRegression()  # it reads predictions for the private rows, unpaid
    StackingClassifier(members, final_estimator=final, cv=3, n_jobs=n_jobs).fit(rows.X, rows.y)
    return {60: 2, 40: 6}


def stacking_on_a_private_head(head, rows, public, n_jobs):
    member = head(classes=[0, 1, 2])
    stack = StackingClassifier([("a", member)], final_estimator=clone(member), cv=3, n_jobs=n_jobs)
    stack.fit(rows.X, rows.y)
    return {60: 2, 40: 3}


def pipeline(head, rows, public, n_jobs):
    steps = [("scale", PublicOnly(StandardScaler())), ("head", head())]
    Pipeline(steps, transform_input=["X_pub"]).fit(rows.X, rows.y, **public)
    return {60: 1}


def loop(head, rows, public, n_jobs):
    fits = (joblib.delayed(clone(head()).fit)(rows.X, rows.y, **public) for _ in range(4))
    joblib.Parallel(n_jobs=n_jobs)(fits)
    return {60: 4}


def loop_of_threads(head, rows, public, n_jobs):
    with joblib.parallel_config("threading"):
        return loop(head, rows, public, n_jobs)


WORKFLOWS = [
    cross_validation,
    grid_search,
    curve,
    calibration,
    calibration_of_one,
    one_versus_rest,
    voting,
    stacking,
    stacking_on_a_private_head,
    pipeline,
    loop,
    loop_of_threads,
]


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
@pytest.mark.covering
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.__name__)
def test_every_fit_is_charged_as_it_is(workflow, n_jobs, head, rows, ledger):
    public = public_params(rows.X_pub, rows.y_pub)
    check_charges(ledger, workflow(head, rows, public, n_jobs))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bagging_seeds_its_members_so_nothing_is_guaranteed(n_jobs, head, rows, ledger):
    bag = BaggingClassifier(head(), 3, bootstrap=False, max_samples=0.5, n_jobs=n_jobs)
    bag.fit(rows.X, rows.y, **public_params(rows.X_pub, rows.y_pub))
    assert not any(member.privacy_.private for member in bag.estimators_)
    check_charges(ledger, {30: 3}, private=False)
    assert "NOT PRIVATE" in str(ledger.ledger.report())


def test_a_bootstrap_repeats_rows_and_is_warned_of(head, rows, ledger):
    bag = BaggingClassifier(head(), 2)
    with pytest.warns(UserWarning, match="do not bootstrap private rows"):
        bag.fit(rows.X, rows.y, **public_params(rows.X_pub, rows.y_pub))
    check_charges(ledger, {60: 2}, private=False)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("ensemble", ["bagging", "voting", "stacking"])
def test_ensembles_number_labels_anew_and_are_refused_public_ones(ensemble, head, rows, ledger):
    made = {
        "bagging": lambda: BaggingClassifier(head(), 2, bootstrap=False),
        "voting": lambda: VotingClassifier([("a", head())]),
        "stacking": lambda: None,
    }[ensemble]()
    words = np.array(["x", "y", "z"])
    for y, y_pub in ((words[rows.y], words[rows.y_pub]), (rows.y + 2, rows.y_pub + 2)):
        if ensemble == "stacking":  # which takes no public rows otherwise
            members = [("a", WithPublicRows(head(), rows.X_pub, y_pub))]
            with pytest.raises(ValueError, match="renumber y and do not change y_pub"):
                StackingClassifier(members, head()).fit(rows.X, y)
            continue
        with pytest.raises(
            ValueError, match=r"renumber y and do not change y_pub, so number both from 0 beforehand"
        ):
            made.fit(rows.X, y, **public_params(rows.X_pub, y_pub))
    assert ledger.charges() == []


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_stacking_would_hand_public_rows_to_its_final_estimator_and_is_refused(head, rows, ledger):
    public = public_params(rows.X_pub, rows.y_pub)
    for final in (LogisticRegression(), head()):
        stack = StackingClassifier([("a", head())], final_estimator=final, cv=3)
        with pytest.raises(ValueError, match=r"StackingClassifier passes X_pub .* put each member into"):
            stack.fit(rows.X, rows.y, **public)
    assert ledger.charges() == []
