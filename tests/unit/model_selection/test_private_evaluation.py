"""What is charged and reported for an evaluation, and what is refused before that."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.model_selection import (
    OneVsRestEvaluation,
    ResidualEvaluation,
    ScoreEvaluation,
    private_evaluation,
)
from skmixdp.privacy import PrivacyLedger, noise_multiplier_for

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
Y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
CLF, MANY, REG = LogisticRegression().fit(X, Y), LogisticRegression().fit(X, THREE), Ridge().fit(X, X[:, 0])
BOUNDS = {"target_bounds": (-3, 3)}

CASES = {
    "two classes": (CLF, Y, {}, ScoreEvaluation),
    "top": (MANY, THREE, {}, ScoreEvaluation),
    "one-versus-rest": (MANY, THREE, {"layout": "one_vs_rest"}, OneVsRestEvaluation),
    "regression": (REG, X[:, 0], BOUNDS, ResidualEvaluation),
}


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:").add_dataset("people", epsilon=2.0, delta=1e-5)


@pytest.fixture
def silent(no_noise, ledger):
    """A ledger that must stay empty, while no noise is drawn."""
    yield ledger
    assert not ledger.charges()


def test_the_report_states_what_is_public():
    public = private_evaluation(REG, X, X[:, 0], epsilon=1.0, **BOUNDS).privacy.treated_as_public
    assert "the number of private rows, and the model" in public
    assert "the bounds of targets and residuals (declared)" in public


def test_the_number_of_cells_follows_from_public_facts():
    sizes = [len(private_evaluation(CLF, X, Y, epsilon=e, delta=1e-4).logits) - 1 for e in (0.1, 1, 30)]
    assert sizes == sorted(sizes) and sizes[0] == 16 and sizes[-1] > 16
    assert len(private_evaluation(CLF, X, Y, epsilon=1.0, n_bins=24).logits) == 25
    other = private_evaluation(CLF, -X[::-1], 1 - Y, epsilon=1.0)
    np.testing.assert_array_equal(private_evaluation(CLF, X, Y, epsilon=1.0).logits, other.logits)


@pytest.mark.filterwarnings("ignore")
def test_models_of_this_library_pipelines_and_frames():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    head = MixedDPLogisticRegression("noisy-gd", epsilon=1.0, classes=["no", "yes"], n_steps=3)
    labels = np.array(["no", "yes"])[Y]
    clf = head.fit(frame, labels)
    assert private_evaluation(clf, frame, labels, epsilon=1.0).share().value == pytest.approx(0.5, abs=0.3)
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    assert isinstance(private_evaluation(pipe, X, Y, epsilon=1.0), ScoreEvaluation)
    ridge = MixedDPRidge(epsilon=1.0).fit(X, X[:, 0])
    assert isinstance(private_evaluation(ridge, X, X[:, 0], epsilon=1.0, **BOUNDS), ResidualEvaluation)


class Failing(ClassifierMixin, BaseEstimator):
    """A classifier that quotes rows in its warnings or its errors."""

    def __init__(self, fails=True):
        self.fails = fails

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        if self.fails:
            raise KeyError(f"no entry {X[0, 0]}")
        warnings.warn(f"odd entry {X[0, 0]}", UserWarning, stacklevel=2)
        np.log(np.zeros(1))
        return np.full((len(X), 2), 0.5)


def test_warnings_of_a_model_on_private_rows_are_withheld(recwarn):
    with np.errstate(all="raise"):
        private_evaluation(Failing(fails=False), X, Y, epsilon=1.0)
    assert not recwarn.list


def test_errors_of_a_model_quote_no_row(silent):
    with pytest.raises(ValueError, match="predict_proba of Failing fails on X with an error") as caught:
        private_evaluation(Failing(), X, Y, epsilon=1.0, ledger=silent)
    assert str(X[0, 0]) not in str(caught.value) and caught.value.__cause__ is None
    assert caught.value.__context__ is None


LABELS = np.column_stack([Y, 1 - Y])
SEVERAL = MixedDPLogisticRegression(epsilon=1.0).fit(X, LABELS)
BAD = {
    "epsilon=None": {"epsilon": None},
    "layout='best'": {"layout": "best"},
    "n_bins=2": {"n_bins": 2},
    "y=None": {"y": None},
    "y holds a label that is not one of the classes": {"y": Y + 1},
    "estimator=.* with predict_proba": {"estimator": LinearSVC().fit(X, Y)},
    "must be a fitted regressor, or": {"estimator": StandardScaler().fit(X)},
    "not fitted yet": {"estimator": LogisticRegression()},
    "features": {"X": X[:, :2]},
    "X has 0 sample": {"X": X[:0], "y": Y[:0]},
    "target_bounds=.* must be None": {"target_bounds": (0, 1)},
    "layout='top' needs one label": {"y": LABELS, "layout": "top"},
    "with other values than zeros and ones": {"y": 2 * LABELS},
    "y has shape": {"y": np.column_stack([LABELS, Y])},
    "target_bounds=None": {"estimator": REG, "y": X[:, 0]},
    "target_bounds=.* low < high": {"estimator": REG, "y": X[:, 0], "target_bounds": (1, 1)},
    "residual_bound=-1": {"estimator": REG, "y": X[:, 0], "residual_bound": -1, **BOUNDS},
    "y has 2 targets": {"estimator": REG, "y": X[:, :2], **BOUNDS},
    "residual_bound=1e\\+300": {"estimator": REG, "y": X[:, 0], "residual_bound": 1e300, **BOUNDS},
    "target_bounds=.* up to 1e100": {"estimator": REG, "y": X[:, 0], "target_bounds": (-1e200, 1)},
    "y should be a 1d array of labels of one type": {"y": [0] * 399 + [(1, 2)]},
    "y is no table of labels; pass one of 0": {"estimator": SEVERAL},
    "y is no table of labels; .* each label": {"estimator": make_pipeline(SEVERAL), "y": LABELS[:, :1]},
    "y is no table of labels": {"estimator": SEVERAL, "y": [np.zeros((2, 2)), np.zeros((2, 3))] * 200},
    "an array of shape .400, 2, 2.; pass": {"estimator": SEVERAL, "y": np.zeros((400, 2, 2))},
    "several labels per row": {"estimator": OneVsRestClassifier(LogisticRegression()).fit(X, LABELS)},
    "y contains NaN or infinity": {"estimator": REG, "y": np.full(400, np.inf), **BOUNDS},
}


@pytest.mark.parametrize("match", BAD)
def test_bad_input_is_refused_in_one_sentence_before_any_charge(match, silent):
    call = {"estimator": CLF, "X": X, "y": Y, "epsilon": 1.0, "ledger": silent} | BAD[match]
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        private_evaluation(call.pop("estimator"), call.pop("X"), call.pop("y"), **call)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".") and message.count(". ") <= ("not fitted yet" in message)


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_threshold_of_a_model_is_warned_of(wrapped):
    model = FixedThresholdClassifier(CLF, threshold=0.1).fit(X, Y)
    with pytest.warns(UserWarning, match="the summary is at 0.5"):
        found = private_evaluation(make_pipeline(model) if wrapped else model, X, Y, epsilon=1.0)
    assert found.summary()["recall at 0.5"] == found.at(0.5)["recall"]


def test_types_of_arrays_are_treated_as_public_and_those_of_columns_are_not():
    public = private_evaluation(CLF, X, Y, epsilon=1.0).privacy.treated_as_public
    assert public[-1].startswith("the type of X if it is an array (declared)")
    assert not any("columns" in fact for fact in public)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_models_of_others_do_not_compute_in_the_types_of_columns(model):
    frame = pd.DataFrame(X).rename(columns=str)
    given = []
    model = clone(model).fit(frame, Y)
    model.predict_proba = lambda rows, sound=model.predict_proba: (given.append(rows), sound(rows))[1]
    for held in (frame.astype("f4"), frame.astype("f4").astype(object), frame.astype("f4").astype("Float32")):
        private_evaluation(model, held, Y, epsilon=1.0)
    assert {str(dtype) for rows in given for dtype in rows.dtypes} == {"float64", "object"}
    first, second, third = [model.predict_proba(rows) for rows in given[:]]
    assert first.tobytes() == second.tobytes() == third.tobytes()


def test_discrete_noise_gives_whole_numbers():
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    found = private_evaluation(CLF, X, Y, epsilon=1.0, noise="discrete")
    assert found.privacy.noise == "discrete"
    assert found.privacy.noise_multiplier == noise_multiplier_for(1.0, 1e-5, n_steps=1, noise="discrete")
