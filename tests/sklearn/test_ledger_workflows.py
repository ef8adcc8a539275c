"""What scikit-learn's workflows charge to a ledger: each fit, as it is, in whatever process."""

import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, fit_many
from skmixdp.algorithms import AdaMix
from skmixdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skmixdp.model_selection import WithPublicRows, public_params
from skmixdp.preprocessing import PublicOnly
from skmixdp.privacy import GaussianEvent, NoiseSource, PrivacyLedger, epsilon_of, noise_multiplier_for
from tests.conftest import failing

pytestmark = pytest.mark.usefixtures("routing")

DELTA, STEPS = 1e-3, 3
#: What every fit below releases, and what every charge therefore is.
EVENT = GaussianEvent(noise_multiplier_for(1.0, DELTA, n_steps=STEPS), STEPS)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=100.0, delta=DELTA)


@pytest.fixture
def head(ledger):
    def make(**parameters):
        parameters = {"delta": DELTA, "n_steps": STEPS} | parameters
        return MixedDPLogisticRegression(AdaMix(), ledger=ledger, **parameters)

    return make


def check_charges(ledger, expected, *, private=True, outcome="finished"):
    """``expected`` counts fits by their number of rows; all charges are those of the fits."""
    charges = ledger.charges()
    assert {charge.outcome for charge in charges} == {outcome}
    assert Counter(int(charge.description.split(", ")[1].split()[0]) for charge in charges) == expected
    assert {charge.event for charge in charges} == {EVENT}
    assert private is None or {charge.private for charge in charges} == {private}
    total = STEPS * len(charges)
    spent = epsilon_of(EVENT.noise_multiplier, total, delta=DELTA)
    assert ledger.spent == pytest.approx(spent)


# Each workflow: from a head's factory, rows and ``n_jobs`` to the fits it makes. Of the 60 private rows,
# three folds train on 40.


def cross_validation(head, rows, **options):
    cross_val_score(head(), rows.X, rows.y, cv=3, params=rows.public, error_score="raise", **options)
    return {40: 3}


def grid_search(head, rows, **options):
    search = GridSearchCV(head(), {"algorithm__quantile": [0.5, 0.9]}, cv=3, error_score="raise", **options)
    assert search.fit(rows.X, rows.y, **rows.public).best_estimator_.privacy_.dataset == "people"
    return {40: 6, 60: 1}


def curve(head, rows, **options):
    options |= {"train_sizes": [20, 40], "cv": 3, "error_score": "raise"}
    learning_curve(head(), rows.X, rows.y, params=rows.public, **options)
    return {20: 3, 40: 3}


def calibration(head, rows, **options):
    CalibratedClassifierCV(head(), cv=3, **options).fit(rows.X, rows.y, **rows.public)
    return {40: 3}


def calibration_of_one(head, rows, **options):
    return {60: 1, **calibration(head, rows, ensemble=False, **options)}


def one_versus_rest(head, rows, **options):
    # Public labels of three classes make no sense to a binary member, so there are none.
    OneVsRestClassifier(head(classes=[0, 1]), **options).fit(rows.X, rows.y)
    return {60: 3}


def voting(head, rows, **options):
    VotingClassifier([("a", head()), ("b", head())], **options).fit(rows.X, rows.y, **rows.public)
    return {60: 2}


def stacking(head, rows, **options):
    members = [("a", head(classes=[0, 1, 2])), ("b", head(classes=[0, 1, 2]))]
    final = LogisticRegression()  # it reads predictions for the private rows, unpaid
    StackingClassifier(members, final_estimator=final, cv=3, **options).fit(rows.X, rows.y)
    return {60: 2, 40: 6}


def stacking_on_a_private_head(head, rows, **options):
    member = head(classes=[0, 1, 2])
    StackingClassifier([("a", member)], clone(member), cv=3, **options).fit(rows.X, rows.y)
    return {60: 2, 40: 3}


def pipeline(head, rows, **options):
    steps = [("scale", PublicOnly(StandardScaler())), ("head", head())]
    Pipeline(steps, transform_input=["X_pub"]).fit(rows.X, rows.y, **rows.public)
    return {60: 1}


def loop(head, rows, **options):
    fits = (joblib.delayed(clone(head()).fit)(rows.X, rows.y, **rows.public) for _ in range(4))
    joblib.Parallel(**options)(fits)
    return {60: 4}


def loop_of_threads(head, rows, **options):
    with joblib.parallel_config("threading"):
        return loop(head, rows, **options)


WORKFLOWS = [
    *(cross_validation, grid_search, curve, calibration, calibration_of_one, one_versus_rest, voting),
    *(stacking, stacking_on_a_private_head, pipeline, loop, loop_of_threads),
]
#: What is done besides reads private rows without noise.
LEAKING = [cross_validation, grid_search, curve, calibration, calibration_of_one]
LEAKING += [stacking, stacking_on_a_private_head]


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
@pytest.mark.covering
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.__name__)
def test_every_fit_is_charged_as_it_is(workflow, n_jobs, head, rows, ledger):
    expected = workflow(head, rows, n_jobs=n_jobs)
    # In a worker, some workflows cannot be told from a plain fit.
    private = None if n_jobs == 2 and workflow in LEAKING else workflow not in LEAKING
    check_charges(ledger, expected, private=private)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_bagging_seeds_its_members_so_nothing_is_guaranteed(n_jobs, head, rows, ledger):
    bag = BaggingClassifier(head(), 3, bootstrap=False, max_samples=0.5, n_jobs=n_jobs)
    bag.fit(rows.X, rows.y, **rows.public)
    assert not any(member.privacy_.private for member in bag.estimators_)
    check_charges(ledger, {30: 3}, private=False)
    first, *_ = str(ledger.ledger.report()).splitlines()
    said = "MixedDPLogisticRegression, 30 rows; the noise comes from a seed (charged to 'people')"
    assert first == f"NO GUARANTEE: {said}"


def test_a_bootstrap_is_warned_of(head, rows, ledger):
    bag = BaggingClassifier(head(), 2)
    with pytest.warns(PrivacyLeakWarning, match="repeats private rows in one fit, .* fix: bootstrap=False"):
        bag.fit(rows.X, rows.y, **rows.public)
    check_charges(ledger, {60: 2}, private=False)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("ensemble", ["bagging", "voting", "stacking"])
def test_ensembles_number_labels_anew_and_are_refused_public_ones(ensemble, head, rows, ledger):
    words = np.array(["x", "y", "z"])
    for y, y_pub in ((words[rows.y], words[rows.y_pub]), (rows.y + 2, rows.y_pub + 2)):
        public = public_params(rows.X_pub, y_pub)
        if ensemble == "stacking":  # which takes no public rows otherwise
            made, public = StackingClassifier([("a", WithPublicRows(head(), rows.X_pub, y_pub))], head()), {}
        elif ensemble == "bagging":
            made = BaggingClassifier(head(), 2, bootstrap=False)
        else:
            made = VotingClassifier([("a", head())])
        with pytest.raises(ValueError, match="renumber y and do not change y_pub, so number both from 0 bef"):
            made.fit(rows.X, y, **public)
    assert ledger.charges() == []


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_stacking_would_hand_public_rows_to_its_final_estimator_and_is_refused(head, rows, ledger):
    for final in (LogisticRegression(), head()):
        stack = StackingClassifier([("a", head())], final_estimator=final, cv=3)
        with pytest.raises(ValueError, match=r"StackingClassifier passes X_pub .* put each member into"):
            stack.fit(rows.X, rows.y, **rows.public)
    assert ledger.charges() == []


def test_one_versus_rest_is_refused_public_labels_before_any_charge(head, rows, ledger):
    many = OneVsRestClassifier(head())
    with pytest.raises(ValueError, match="turn y into 0 and 1 and leave y_pub as it is"):
        many.fit(rows.X, rows.y, **rows.public)
    assert ledger.charges() == []


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_over_budget_ends_a_workflow(rows, head, ledger):
    few = ledger.ledger.add_dataset("small", epsilon=1.7, delta=DELTA)
    small = head().set_params(ledger=few)
    with pytest.raises(BudgetExceededError, match="dataset='small' has"):
        cross_val_score(small, rows.X, rows.y, cv=5, params=rows.public, error_score="raise")
    assert len(few.charges()) == 2


# -- one fit -------------------------------------------------------------------------------


def test_the_report_states_what_the_ledger_holds(rows, head, ledger):
    for _ in range(2):
        report = head().fit(*rows).privacy_
    assert (report.dataset, report.dataset_epsilon, report.dataset_delta) == ("people", 100.0, DELTA)
    assert report.dataset_spent == ledger.spent > report.epsilon
    assert f"people: epsilon {report.dataset_spent:.6g} of (100, 0.001) is spent" in str(report)
    assert report.to_dict()["dataset"] == "people"
    alone = MixedDPLogisticRegression(delta=DELTA).fit(*rows).privacy_
    assert alone.dataset is None and "ledger" not in str(alone)


def test_over_budget_releases_nothing_and_keeps_the_earlier_fit(rows, head, ledger, monkeypatch):
    few = ledger.ledger.add_dataset("small", epsilon=1.0, delta=DELTA)
    clf = head().set_params(ledger=few)
    coef = clf.fit(*rows).coef_
    monkeypatch.setattr(NoiseSource, "add_noise", failing("something was released"))
    with pytest.raises(BudgetExceededError):
        clf.fit(*rows)
    assert clf.coef_ is coef and len(few.charges()) == 1


def test_fits_of_one_call_are_charged_together_or_not_at_all(rows, head, ledger, monkeypatch):
    small = ledger.ledger.add_dataset("small", epsilon=1.6, delta=DELTA)
    copied = pickle.loads(pickle.dumps(small))  # another object for the same file
    heads = [head().set_params(ledger=data) for data in (ledger, small, copied, small)]
    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "add_noise", failing("something was released"))
        with pytest.raises(BudgetExceededError, match=r"^4 charges .* only the first 3 fit: dataset='small'"):
            fit_many(heads, *rows)
    assert small.charges() == ledger.charges() == []
    fit_many(heads[:-1], *rows)
    assert len(small.charges()) == 2 and len(ledger.charges()) == 1
    assert {charge.outcome for charge in (*small.charges(), *ledger.charges())} == {"finished"}


def test_charges_to_another_ledger_stay_and_say_how_they_ended(rows, head, ledger):
    other = PrivacyLedger(":memory:").add_dataset("small", epsilon=1.6, delta=DELTA)
    heads = [head().set_params(ledger=data) for data in (ledger, other, other, other)]
    with pytest.raises(BudgetExceededError):
        fit_many(heads, *rows)
    assert other.charges() == []
    assert [charge.outcome for charge in ledger.report().failed] == ["failed: BudgetExceededError"]


def test_clones_and_pickles_charge_the_same_ledger(rows, head, ledger):
    clf = head()
    assert clone(clf).ledger is ledger
    fitted = pickle.loads(pickle.dumps(clf)).fit(*rows)
    clone(fitted).fit(*rows)
    check_charges(ledger, {60: 2})


@pytest.fixture
def fits_in_memory(rows):
    """Four fits that charge a ledger in memory."""
    ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=100.0, delta=DELTA)
    clf = MixedDPLogisticRegression(AdaMix(), delta=DELTA, n_steps=STEPS, ledger=ledger)
    fits = [joblib.delayed(clone(clf).fit)(*rows) for _ in range(4)]
    return ledger, fits


def test_a_ledger_in_memory_serves_threads_and_says_that_it_serves_no_process(fits_in_memory):
    ledger, fits = fits_in_memory
    joblib.Parallel(n_jobs=2, prefer="threads")(fits)
    check_charges(ledger, {60: 4})
    with pytest.raises(TypeError, match="in memory cannot be pickled"):
        pickle.dumps(fits)


@pytest.mark.slow
def test_processes_that_cannot_share_a_ledger_in_memory_do_not_start(fits_in_memory):
    ledger, fits = fits_in_memory
    with pytest.raises(pickle.PicklingError) as caught:
        joblib.Parallel(n_jobs=2)(fits)
    assert "in memory cannot be pickled" in str(caught.value.__cause__)
    assert ledger.charges() == []


DASK = """
import sys
import joblib, numpy as np
from dask.distributed import Client
from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import PrivacyLedger

if __name__ == "__main__":
    ledger = PrivacyLedger(sys.argv[1])["people"]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    clf = MixedDPLogisticRegression("adamix", delta=1e-3, n_steps=3, classes=[0, 1, 2], ledger=ledger)
    with Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client:
        with joblib.parallel_config("dask"):
            joblib.Parallel()(joblib.delayed(clf.fit)(X, y) for _ in range(4))
"""


@pytest.mark.slow
def test_dask_workers_charge_the_ledger(ledger, tmp_path):
    pytest.importorskip("distributed", reason="needs dask.distributed: install skmixdp[dask]")
    script = tmp_path / "on_dask.py"
    script.write_text(DASK)
    command = [sys.executable, script, ledger.ledger.path]
    options = {"env": os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}, "timeout": 300}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    check_charges(ledger, {60: 4})
