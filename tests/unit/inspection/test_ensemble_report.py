"""The guarantee of all members of an ensemble, in one call."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.inspection import ensemble_report
from skmixdp.privacy import PrivacyLedger, epsilon_of

DELTA = 1e-3
X, Y = load_iris(return_X_y=True)


def head(**parameters):
    settings = {"epsilon": 1.0, "delta": DELTA, "classes": [0, 1, 2]} | parameters
    return MixedDPLogisticRegression("noisy-gd", **settings)


def total_of(mus):
    return epsilon_of(1 / math.sqrt(sum(mu**2 for mu in mus)), 1, delta=DELTA)


@pytest.mark.parametrize(
    ("make", "n_members"),
    [
        (lambda member: VotingClassifier([("a", member), ("b", member)]), 2),
        (lambda member: OneVsRestClassifier(member.set_params(classes=[0, 1])), 3),
        (
            lambda member: StackingClassifier([("a", member.fit(X, Y))], final_estimator=head(), cv="prefit"),
            2,
        ),
        (lambda member: make_pipeline(FunctionTransformer(), member), 1),
    ],
    ids=["voting", "one versus rest", "stacking", "pipeline"],
)
def test_members_compose_exactly(make, n_members):
    report = ensemble_report(make(head()).fit(X, Y))
    assert len(report.members) == n_members
    assert report.private
    assert report.unprotected == ()
    assert report.epsilon == pytest.approx(total_of([head().fit(X, Y).privacy_.mu] * n_members))
    assert report.delta == DELTA


def test_the_total_is_what_a_ledger_sums():
    people = PrivacyLedger(":memory:").add_dataset("people", epsilon=100.0, delta=DELTA)
    vote = VotingClassifier([("a", head(ledger=people)), ("b", head(epsilon=0.5, ledger=people))]).fit(X, Y)
    assert ensemble_report(vote).epsilon == pytest.approx(people.spent)
    assert len(people.charges()) == 2


def test_seeded_members_are_not_private():
    report = ensemble_report(BaggingClassifier(head(), 3, bootstrap=False, random_state=0).fit(X, Y))
    assert not report.private
    assert len(report.members) == 3
    assert str(report).startswith("NO GUARANTEE: the noise of ensemble.estimators_[0], ")
    assert report.no_guarantee.endswith("ensemble.estimators_[2] comes from a seed")


def test_members_without_a_report_are_named():
    vote = VotingClassifier([("a", head()), ("b", LogisticRegression(max_iter=1000))])
    with pytest.warns(PrivacyLeakWarning, match="LogisticRegression"):
        report = ensemble_report(vote.fit(X, Y))
    assert report.unprotected == ("ensemble.estimators_[1]",)
    assert not report.private
    assert "ensemble.estimators_[1] may have been fitted" in str(report)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_calibrators_and_final_estimators_are_unprotected():
    calibrated = ensemble_report(CalibratedClassifierCV(head(), cv=2).fit(X, Y))
    assert len(calibrated.members) == 2
    assert [where.rpartition(".")[2] for where in calibrated.unprotected] == ["calibrators"] * 2
    stacked = ensemble_report(StackingClassifier([("a", head())], cv=2).fit(X, Y))
    assert stacked.unprotected == ("ensemble.final_estimator_",)
    assert "StackingClassifier: drops fits, each of which" in stacked.no_guarantee


def test_several_estimators_may_be_passed():
    members = [head().fit(X, Y), head(epsilon=0.3).fit(X, Y)]
    report = ensemble_report(members)
    assert report.epsilon == pytest.approx(total_of([member.privacy_.mu for member in members]))
    assert ensemble_report([members[0], members[0]]).members == ensemble_report(members[:1]).members


def test_members_without_mu_add_epsilon_and_delta():
    sampled = head(batch_size=50, n_steps=5).fit(X, Y)
    full = head().fit(X, Y)
    report = ensemble_report([sampled, full])
    assert sampled.privacy_.mu is None
    assert report.delta == pytest.approx(2 * DELTA)
    assert report.epsilon == pytest.approx(sampled.privacy_.epsilon + full.privacy_.epsilon)
    assert ensemble_report(sampled).epsilon == sampled.privacy_.epsilon


def test_refusals():
    with pytest.raises(ValueError, match="contains no fitted estimator with privacy_"):
        ensemble_report(LogisticRegression(max_iter=1000).fit(X, Y))
    with pytest.raises(ValueError, match="contains no fitted estimator"):
        ensemble_report(VotingClassifier([("a", head())]))
    with pytest.raises(ValueError, match=r"neighboring='add_or_remove_one' and 'replace_one'"):
        ensemble_report([head().fit(X, Y), head(neighboring="replace_one").fit(X, Y)])


class Named(BaseEstimator):
    """Holds members under a name that a user chose."""

    def fit(self, members):
        self.members_ = members
        return self


def test_the_report_is_escaped_and_has_json():
    nasty = '<img src="x">'
    report = ensemble_report(Named().fit({nasty: head().fit(X, Y)}))
    assert nasty not in report._repr_html_()
    assert "&lt;img" in report._repr_html_()
    assert report.to_dict()["members"] == [[where, *numbers] for where, *numbers in report.members]
    assert report.to_dict()["epsilon"] == report.epsilon
    assert np.isfinite(report.epsilon)
