"""Steps of pipelines of other libraries are seen at ``fit``, and so are rows that are not those passed."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.inference import private_inference
from skmixdp.preprocessing import NoisyScaler, RowNormalizer, check_pipeline

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 3))
Y = (RNG.random(400) < 0.2).astype(int)


def head():
    return MixedDPLogisticRegression(classes=[0, 1], delta=1e-4)


class Resampling(Pipeline):
    """As imblearn's: a subclass with its own ``fit``, whose steps may change the number of rows."""

    def fit(self, X, y=None, **params):
        rows, labels = X, y
        for _, step in self.steps[:-1]:
            if hasattr(step, "fit_resample"):
                rows, labels = step.fit_resample(rows, labels)
            else:
                rows = step.fit_transform(rows, labels)
        self.steps[-1][1].fit(rows, labels)
        return self


class Copied(Pipeline):
    """As sklearn-pandas' TransformerPipeline: it sets ``steps`` alone, and fits by a function."""

    def __init__(self, steps):
        self.steps = list(steps)

    def fit(self, X, y=None):
        rows = X
        for _, step in self.steps[:-1]:
            rows = step.fit(rows, y).transform(rows)
        _call(self.steps[-1][-1].fit, rows, y)
        return self


def _call(fit, *rows):
    return fit(*rows)


class Alone:
    """No estimator at all: steps without names, and a method of another name."""

    def __init__(self, steps):
        self.steps = [step for _, step in steps]

    def train(self, X, y):
        for step in self.steps[:-1]:
            X = step.fit_transform(X)
        self.steps[-1].fit(X, y)
        return self

    fit = train


class Mapped:
    """Steps in a dict, and another name for the object itself."""

    def __init__(self, steps):
        self.steps = dict(steps)

    def fit(this, X, y):  # noqa: N805
        *before, last = this.steps.values()
        for step in before:
            X = step.fit_transform(X)
        last.fit(X, y)
        return this


class Three(Alone):
    """Steps as tuples of three, as those of a ColumnTransformer."""

    def __init__(self, steps):
        super().__init__(steps)
        self.steps = tuple((name, step, "all") for name, step in steps)

    def fit(self, X, y):
        for _, step, _ in self.steps[:-1]:
            X = step.fit_transform(X)
        self.steps[-1][1].fit(X, y)
        return self


class Child(Pipeline):
    """A subclass that leaves the fit to scikit-learn."""


class Estimator(BaseEstimator):
    """An estimator that has ``steps`` as a parameter."""

    def __init__(self, steps=()):
        self.steps = steps

    fit = Copied.fit


KINDS = [Resampling, Copied, Alone, Mapped, Three, Child, Estimator]


@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(), PCA(2), SimpleImputer()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_learns_is_named_by_warning_and_report(kind, step):
    last = head()
    with pytest.warns(PrivacyLeakWarning, match=rf"{type(step).__name__}\): .*fix: PublicOnly") as caught:
        kind([("first", clone(step)), ("head", last)]).fit(X, Y)
    assert sum(warning.category is PrivacyLeakWarning for warning in caught) == 1
    assert not last.privacy_.private and last.privacy_.leaks[0].startswith(type(step).__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_learn_nothing_are_no_leak(kind):
    with warnings.catch_warnings(action="error"):
        last = head()
        kind([("unit", RowNormalizer()), ("head", last)]).fit(X, Y)
        scaler = NoisyScaler(bounds=(-5, 5), delta=1e-4)
        kind([("scale", scaler), ("head", head())]).fit(X, Y)
    assert last.privacy_.private and not last.privacy_.leaks


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_of_a_pipeline_finds_the_same(kind):
    found = check_pipeline(kind([("first", StandardScaler()), ("head", head())]), public_rows=False)
    assert [finding.step for finding in found] == ["StandardScaler"]


class Sampler(BaseEstimator):
    """As SMOTE: rows made of others, or dropped."""

    def __init__(self, change="more"):
        self.change = change

    def fit_resample(self, X, y):
        places = {
            "more": np.r_[: len(y), :10],
            "fewer": np.flatnonzero(y == y[0]),
            "as many": np.r_[10:400, :10],
        }
        return X[places[self.change]], y[places[self.change]]


@pytest.mark.parametrize("change", ["more", "fewer", "as many"])
def test_rows_of_a_sampler_are_no_rows_of_the_guarantee(change):
    last = head()
    with pytest.warns(PrivacyLeakWarning, match=r"sampler \(Sampler\): new rows made from private ones"):
        Resampling([("sampler", Sampler(change)), ("head", last)]).fit(X, Y)
    assert last.privacy_.no_guarantee.startswith("NO GUARANTEE: Sampler: new rows made from private ones")


class Doubling(Alone):
    """Rows that come twice, by no step that could be asked."""

    def fit(self, X, y):
        places = np.r_[: len(y), : len(y)]
        self.steps[-1].fit(X[places], y[places])
        return self


class Dropping(Alone):
    def fit(self, X, y):
        self.steps[-1].fit(X[y == 0], X[y == 0, 0] > 0)
        return self


@pytest.mark.parametrize("kind", [Doubling, Dropping])
def test_another_number_of_rows_is_named_whatever_made_it(kind):
    last = head()
    with pytest.warns(PrivacyLeakWarning, match=f"{kind.__name__}: other rows than those that were passed"):
        kind([("head", last)]).fit(X, Y)
    assert not last.privacy_.private and "other rows than" in last.privacy_.no_guarantee


def test_another_number_of_rows_is_named_in_a_pipeline_within():
    last = head()
    with pytest.warns(PrivacyLeakWarning, match="Doubling: other rows"):
        Doubling([("inner", Alone([("unit", RowNormalizer()), ("head", last)]))]).fit(X, Y)


def test_members_of_an_ensemble_have_fewer_rows():
    bagging = BaggingClassifier(head(), n_estimators=2, max_samples=0.5, bootstrap=False)
    pipe = Alone([("unit", RowNormalizer()), ("bagging", bagging)])
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        warnings.filterwarnings("ignore", message="BaggingClassifier")
        pipe.fit(X, Y)


def test_a_regression_and_an_inference_see_it_too():
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        Alone(
            [("a", StandardScaler()), ("b", MixedDPRidge(delta=1e-4, target_scale=1.0, target_center=0.0))]
        ).fit(X, X[:, 0])

    class Inference(RowNormalizer):
        def fit(self, X, y):
            self.result_ = private_inference(X, y, family="logistic", classes=[0, 1], epsilon=1.0, delta=1e-4)
            return self

    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        Alone([("a", StandardScaler()), ("b", Inference())]).fit(np.tile(X, (10, 1)), np.tile(Y, 10))


def test_a_function_that_is_passed_a_pipeline_is_none_itself():
    def evaluate(pipe, rows):
        """Fit to a part of the rows."""
        return pipe.fit(rows[:300], Y[:300]).steps[-1].privacy_

    assert evaluate(Alone([("unit", RowNormalizer()), ("head", head())]), X).private


class SkrubLearner(BaseEstimator):
    """As skrub's: a graph of operations, into which no check looks."""

    def __init__(self, data_op=None):
        self.data_op = data_op

    def fit(self, environment):
        self.data_op.fit(StandardScaler().fit_transform(environment["X"]), environment["y"])
        return self


def test_a_learner_of_skrub_is_a_leak_as_a_whole():
    last = head()
    with pytest.warns(PrivacyLeakWarning, match="SkrubLearner: whatever its fit stores"):
        SkrubLearner(last).fit({"X": X, "y": Y})
    assert not last.privacy_.private


class Failing:
    """An object around a fit whose attributes fail."""

    @property
    def steps(self):
        raise RuntimeError

    def fit(self, last):
        last.fit(X, Y)
        return last.privacy_


def test_objects_whose_steps_fail_stop_nothing():
    assert Failing().fit(head()).private


@pytest.mark.parametrize("steps", ["text", 3, [1, 2], (), {"a": 1}, [StandardScaler]])
def test_other_steps_are_none(steps):
    plan = type("Plan", (), {"fit": Failing.fit, "steps": steps})()
    assert plan.fit(head()).private
