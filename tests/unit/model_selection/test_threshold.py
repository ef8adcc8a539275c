"""PrivateThresholdClassifier: how it splits, what it charges, and what it predicts."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.exceptions import BudgetExceededError, NotPrivateWarning, PrivacyLeakWarning
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV, PrivateThresholdClassifier, WithPublicRows
from skmixdp.preprocessing import NoisyScaler, PublicOnly, RowNormalizer, TableEncoder, check_pipeline
from skmixdp.privacy import GaussianEvent, NoiseSource, PrivacyLedger, epsilon_of_event
from tests.conftest import failing
from tests.noise import watch

#: Where rows are few, or the budget is small, the F1 may be hidden.
pytestmark = pytest.mark.filterwarnings("ignore:the f1 at the threshold")

X, Y = make_classification(6000, 6, n_informative=4, n_redundant=0, weights=[0.9], random_state=0)
X_TEST, Y_TEST, X, Y = X[:2000], Y[:2000], X[2000:], Y[2000:]
HEAD = MixedDPLogisticRegression(epsilon=3.0, classes=[0, 1])


@pytest.fixture(scope="module")
def fitted():
    return PrivateThresholdClassifier(HEAD, goal="recall", value=0.8, epsilon=3.0).fit(X, Y)


def test_the_threshold_reaches_its_goal_on_other_rows():
    # With 4,000 rows, 80 positives tell the recall, and one fit of 150 was below 0.65. Here the bounds are
    # more than six standard deviations away.
    X, Y = make_classification(32_000, 6, n_informative=4, n_redundant=0, weights=[0.9], random_state=0)
    X_TEST, Y_TEST = X[:2000], Y[:2000]
    fitted = PrivateThresholdClassifier(HEAD, goal="recall", value=0.8, epsilon=3.0).fit(X[2000:], Y[2000:])
    assert 0.65 < recall_score(Y_TEST, fitted.predict(X_TEST)) < 0.95
    assert fitted.threshold_ == fitted.evaluation_.threshold("recall", 0.8)
    by_hand = fitted.predict_proba(X_TEST)[:, 1] >= fitted.threshold_
    np.testing.assert_array_equal(fitted.predict(X_TEST), by_hand.astype(int))
    assert fitted.score(X_TEST, Y_TEST) == np.mean(by_hand == Y_TEST)


def test_the_fit_never_sees_the_held_out_rows(fitted):
    assert fitted.estimator_.privacy_.n_private == 3200
    assert fitted.evaluation_.cells.n_rows == fitted.evaluation_.privacy.n_private == 800


def test_the_split_does_not_depend_on_the_rows():
    """Another row or label at one place leaves all rows in their part."""
    seen = []

    class Spy(DummyClassifier):
        def fit(self, X, y):
            seen.append(X[:, 0].copy())
            return super().fit(X, y)

    places = np.column_stack([np.arange(200.0), X[:200]])
    y, z = np.arange(200) % 2, np.arange(200) % 2
    z[17], other = 0, places.copy()
    other[17, 1:] = 1e3
    for rows, labels in ((places, y), (other, z)):
        with pytest.warns(UserWarning, match="random_state"):
            PrivateThresholdClassifier(Spy(), random_state=0).fit(rows, labels)
    np.testing.assert_array_equal(seen[0], seen[1])
    assert len(seen[0]) == 160
    assert sorted(seen[0].tolist()) != list(range(160))


def test_a_mu_is_that_of_both_releases():
    """A release without an exact mu is not bounded by that of the other, whose epsilon is larger."""
    sampled = clone(HEAD).set_params(algorithm="noisy-gd", batch_size=100, n_steps=3, epsilon=0.1)
    for head, epsilon in ((sampled, 2.0), (clone(HEAD).set_params(epsilon=2.0), 0.1)):
        report = PrivateThresholdClassifier(head, epsilon=epsilon).fit(X, Y).privacy_
        assert report.epsilon == pytest.approx(2.0)
        assert report.mu is None if head is sampled else report.mu > 0.3


def test_both_releases_are_charged():
    entry = PrivacyLedger(":memory:").add_dataset("people", epsilon=9.0, delta=1e-5)
    head = clone(HEAD).set_params(ledger=entry, epsilon=1.0)
    PrivateThresholdClassifier(head, epsilon=0.5, ledger=entry).fit(X, Y)
    assert [charge.description for charge in entry.charges()] == [
        "MixedDPLogisticRegression, 3200 rows",
        "private_evaluation, 800 rows",
    ]
    assert 1.0 < entry.spent < 1.5


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_report_states_the_weaker_of_the_two(epsilon):
    """No row is in both parts, so each has the guarantee of its part."""
    clf = PrivateThresholdClassifier(make_pipeline(RowNormalizer(), HEAD), epsilon=epsilon).fit(X, Y)
    assert clf.privacy_.epsilon == pytest.approx(max(epsilon, 3.0), rel=1e-3)
    assert clf.evaluation_.privacy.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert clf.privacy_.n_private == len(X)
    assert f"of epsilon {clf.evaluation_.privacy.epsilon:.6g}" in clf.privacy_.warnings[-1]
    assert f"({clf.privacy_.epsilon:.6g}, 1e-05)" in str(model_card(clf))
    seeded = PrivateThresholdClassifier(clone(HEAD).set_params(random_state=0), epsilon=epsilon).fit(X, Y)
    assert not seeded.privacy_.private and seeded.evaluation_.privacy.private


@pytest.mark.usefixtures("no_noise")
def test_a_budget_that_does_not_last_is_an_error():
    entry = PrivacyLedger(":memory:").add_dataset("people", epsilon=1.0, delta=1e-5)
    clf = PrivateThresholdClassifier(clone(HEAD).set_params(epsilon=0.5), epsilon=3.0, ledger=entry)
    with pytest.raises(BudgetExceededError):
        clf.fit(X, Y)
    assert not hasattr(clf, "threshold_") and not entry.charges()


@pytest.mark.parametrize("piped", [False, True])
def test_two_charges_that_do_not_last_together_are_refused_before_the_fit(piped, tmp_path, monkeypatch):
    """Each of them alone would be admitted, and the ledger may be opened twice."""
    PrivacyLedger(tmp_path / "l.sqlite").add_dataset("people", epsilon=1.0, delta=1e-5)
    head = clone(HEAD).set_params(ledger=PrivacyLedger(tmp_path / "l.sqlite")["people"], epsilon=0.9)
    entry = PrivacyLedger(tmp_path / "l.sqlite")["people"]
    estimator = make_pipeline(RowNormalizer(), head) if piped else head
    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "add_noise", failing("noise was drawn"))
        with pytest.raises(BudgetExceededError):
            PrivateThresholdClassifier(estimator, epsilon=0.9, ledger=entry).fit(X, Y)
    assert not entry.charges()
    PrivateThresholdClassifier(estimator, epsilon=0.2, ledger=entry).fit(X, Y)
    assert len(entry.charges()) == 2


def test_ledgers_in_memory_of_the_same_name_are_two():
    one, two = (PrivacyLedger(":memory:").add_dataset("people", epsilon=1.0, delta=1e-5) for _ in "ab")
    head = clone(HEAD).set_params(ledger=one, epsilon=0.9)
    PrivateThresholdClassifier(head, epsilon=0.9, ledger=two).fit(X, Y)
    assert len(one.charges()) == len(two.charges()) == 1


def test_a_fitted_classifier_takes_all_rows(fitted):
    inner = fitted.estimator_
    again = PrivateThresholdClassifier(inner, goal="cost", value=(1, 9), holdout="prefit").fit(X_TEST, Y_TEST)
    assert again.estimator_ is inner and again.evaluation_.cells.n_rows == len(X_TEST)
    assert again.threshold_ < 0.5
    assert "this holds only if no row is in both" in again.privacy_.warnings[-1]


def test_text_labels_and_public_rows():
    labels = np.array(["ill", "well"])[Y]
    clf = PrivateThresholdClassifier(MixedDPLogisticRegression(epsilon=3.0)).fit(
        X, labels, X_pub=X_TEST[:100], y_pub=np.array(["ill", "well"])[Y_TEST[:100]]
    )
    assert set(clf.predict(X_TEST)) == {"ill", "well"} == set(clf.classes_)
    assert clf.estimator_.privacy_.n_public == 100 == clf.privacy_.n_public


def test_public_rows_reach_it_in_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        clf = PrivateThresholdClassifier(MixedDPLogisticRegression(epsilon=3.0))
        pipe = Pipeline([("scale", PublicOnly(StandardScaler())), ("clf", clf)], transform_input=["X_pub"])
        pipe.fit(X, Y, X_pub=(X_TEST[:100],), y_pub=(Y_TEST[:100],))
        inner = make_pipeline(PublicOnly(StandardScaler()), HEAD, transform_input=["X_pub"])
        other = PrivateThresholdClassifier(inner).fit(X, Y, X_pub=X_TEST[:100], y_pub=Y_TEST[:100])
    assert pipe[-1].estimator_.privacy_.n_public == 100 == other.estimator_[-1].privacy_.n_public
    assert pipe.score(X_TEST, Y_TEST) > 0.7


def test_it_is_an_estimator(fitted):
    copy = clone(fitted)
    assert copy.get_params()["value"] == 0.8 and not hasattr(copy, "threshold_")
    with pytest.raises(NotFittedError):
        copy.predict(X)
    with pytest.warns(PrivacyLeakWarning):  # of cross-validation itself
        assert len(cross_val_score(copy, X, Y, cv=2)) == 2


def test_a_leaking_estimator_is_named():
    assert not check_pipeline(PrivateThresholdClassifier(HEAD))
    clf = PrivateThresholdClassifier(LogisticRegression()).fit(X, Y)
    assert clf.privacy_.no_guarantee.startswith("NO GUARANTEE: LogisticRegression")
    assert any("the fit of the classifier has no report" in text for text in clf.privacy_.warnings)
    assert len(check_pipeline(clf)) == 1


HEADS = [("a", HEAD), ("b", HEAD)]


def several_budgets():
    """Estimators with a budget that the report of the last step does not count."""
    return {
        "scaler": private_pipeline(NoisyScaler(epsilon=1.0, bounds=(-5, 5)), clone(HEAD)),
        "voting": VotingClassifier(HEADS, voting="soft"),
        "bagging": BaggingClassifier(HEAD, n_estimators=2, bootstrap=False),
        "stack": make_pipeline(RowNormalizer(), StackingClassifier(HEADS, final_estimator=HEAD)),
        "calibrated": CalibratedClassifierCV(HEAD, cv=2),
        "frozen": FrozenEstimator(HEAD),
    }


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("holdout", [0.2, "prefit"])
@pytest.mark.parametrize("kind", several_budgets())
def test_budgets_that_the_report_would_not_count_are_refused(kind, holdout):
    with pytest.raises(TypeError, match=r"has a budget that no report|is frozen") as caught:
        PrivateThresholdClassifier(several_budgets()[kind], holdout=holdout).fit(X, Y)
    assert str(caught.value).endswith(".")


def test_the_members_of_a_fitted_ensemble_are_found_when_frozen():
    voting = VotingClassifier([("a", FrozenEstimator(clone(HEAD).fit(X, Y)))], voting="soft").fit(X, Y)
    with pytest.raises(TypeError, match="a of the estimator has a budget"):
        PrivateThresholdClassifier(voting, holdout="prefit").fit(X, Y)


@pytest.mark.filterwarnings("ignore:the model has a threshold")
def test_estimators_with_one_budget_pass():
    """A search, a threshold and an estimator with its public rows have one report for all that they fit."""
    for estimator in (PrivateThresholdClassifier(HEAD), WithPublicRows(HEAD, X_TEST[:100], Y_TEST[:100])):
        fitted = PrivateThresholdClassifier(estimator, epsilon=0.1).fit(X, Y)
        assert fitted.privacy_.epsilon == pytest.approx(3.0, rel=1e-3) and fitted.privacy_.private


ODD_ROW = {
    "label": (None, "holds a label that is not one of the classes"),
    "label, public classes": (None, "holds a label that is not one of the classes"),
    "label, carried classes": (None, "holds a label that is not one of the classes"),
    "nan": (np.nan, "X contains NaN"),
    "text": ("x", "X holds text"),
    "nan in a pipeline": (np.inf, "X contains NaN"),
}


@pytest.mark.parametrize("kind", ODD_ROW)
def test_an_odd_row_is_refused_before_the_fit_wherever_it_falls(kind):
    entry = PrivacyLedger(":memory:").add_dataset("people", epsilon=99.0, delta=1e-3)
    head = clone(HEAD).set_params(ledger=entry, classes=None if "," in kind else [0, 1])
    known = (X_TEST[:100], Y_TEST[:100])
    public = known if kind == "label, public classes" else (None, None)
    estimator = WithPublicRows(head, *known) if "carried" in kind else head
    estimator = make_pipeline(RowNormalizer(), head) if "pipeline" in kind else estimator
    entry_, match = ODD_ROW[kind]
    rows, labels = X.astype(object if kind == "text" else float), Y.copy()
    if entry_ is None:
        labels[:] = 0
        labels[5] = 7
    else:
        rows[5, 0] = entry_
    for _ in range(8):  # of which some hold out the row
        with pytest.raises(ValueError, match=match):
            PrivateThresholdClassifier(estimator, ledger=entry).fit(rows, labels, *public)
    assert not entry.charges()


def test_gaps_that_an_encoder_takes_are_no_odd_rows():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.loc[::7, "a"] = np.nan
    model = private_pipeline(TableEncoder(dict.fromkeys(frame, (-5, 5))), clone(HEAD))
    for estimator in (
        model,
        PrivateSearchCV(model, {"mixeddplogisticregression__learning_rate": [0.3, 1.0]}),
    ):
        assert PrivateThresholdClassifier(estimator).fit(frame, Y).privacy_.private


def test_few_rows_and_a_small_budget_have_cells_too():
    few = PrivateThresholdClassifier(HEAD, epsilon=0.005, delta=1e-5).fit(X[:60], Y[:60])
    assert len(few.evaluation_.logits) == 17


def test_a_fit_without_a_report_has_no_guarantee():
    class Unreported(DummyClassifier):
        def __init__(self, epsilon=1.0, delta=1e-5):
            super().__init__()
            self.epsilon, self.delta = epsilon, delta

    clf = PrivateThresholdClassifier(Unreported()).fit(X, Y)
    assert "a fit to private rows that has no report" in clf.privacy_.no_guarantee
    public_model = PrivateThresholdClassifier(DummyClassifier().fit(X, Y), holdout="prefit").fit(X, Y)
    assert public_model.privacy_.private


@pytest.mark.filterwarnings("ignore")
def test_leaks_of_a_fit_are_those_of_its_evaluation():
    pipe = make_pipeline(StandardScaler(), HEAD)
    for clf in (
        PrivateThresholdClassifier(pipe).fit(X, Y),
        PrivateThresholdClassifier(pipe.fit(X, Y), holdout="prefit").fit(X_TEST, Y_TEST),
    ):
        assert clf.evaluation_.no_guarantee.startswith("NO GUARANTEE: StandardScaler")
        assert clf.evaluation_.no_guarantee == clf.privacy_.no_guarantee


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_report_states_the_weaker_noise_and_all_warnings(epsilon):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    clf = PrivateThresholdClassifier(HEAD, epsilon=epsilon, noise="discrete").fit(X, Y)
    assert (clf.evaluation_.privacy.noise, clf.privacy_.noise) == ("discrete", "cryptographic")
    assert {*clf.estimator_.privacy_.warnings, *clf.evaluation_.privacy.warnings} < {*clf.privacy_.warnings}


def test_a_seed_of_the_histogram_alone_is_in_the_report():
    with pytest.warns(NotPrivateWarning):
        clf = PrivateThresholdClassifier(HEAD, random_state=0).fit(X, Y)
    assert clf.estimator_.privacy_.private
    for report in (clf.evaluation_.privacy, clf.privacy_):
        assert report.noise == "seeded" and not report.private


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "zero_out", "replace_one"])
def test_the_histogram_has_the_noise_of_its_relation(monkeypatch, neighboring):
    """A row moves a count by 1, and a replaced row two counts."""
    head = clone(HEAD).set_params(neighboring=neighboring)
    log = watch(monkeypatch)
    clf = PrivateThresholdClassifier(head, neighboring=neighboring, epsilon=2.0).fit(X, Y)
    mu = (2 if neighboring == "replace_one" else 1) / log[-1].scale
    assert epsilon_of_event(GaussianEvent(1 / mu, 1), 1e-5, "zero_out") == pytest.approx(2.0, rel=1e-5)
    assert clf.evaluation_.noise_scale == log[-1].scale
    assert clf.evaluation_.privacy.neighboring == clf.privacy_.neighboring == neighboring


BAD = {
    "the estimator has 3 classes": {"estimator": MixedDPLogisticRegression(classes=[0, 1, 2])},
    "goal='best'": {"goal": "best"},
    "value=None": {"goal": "recall"},
    "holdout=1": {"holdout": 1},
    "epsilon=-1": {"epsilon": -1},
    "noise='none'": {"noise": "none"},
    "delta=1e-06 differs from delta=1e-05 of the estimator": {"delta": 1e-6},
    "neighboring='replace_one' differs from neighboring=": {"neighboring": "replace_one"},
}


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("match", BAD)
def test_bad_parameters_are_refused_before_the_fit(match):
    with pytest.raises(ValueError, match=match) as caught:
        PrivateThresholdClassifier(**{"estimator": HEAD, **BAD[match]}).fit(X, Y)
    assert str(caught.value).endswith(".")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "the target y is None"),
        (np.arange(4000) % 3, "y has more than two classes"),
        (np.arange(4000), "y has more than two classes"),
        (X[:, 0], "continuous values"),
        (np.column_stack([Y, Y]), "1d array"),
        ([0] * 3999 + [(1, 2)], "labels of one type"),
    ],
)
def test_other_labels_are_refused_before_the_fit(y, match):
    with pytest.raises(ValueError, match=match):
        PrivateThresholdClassifier(HEAD).fit(X, y)


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="does not accept sample_weight"):
        PrivateThresholdClassifier(HEAD).fit(X, Y, sample_weight=Y)
