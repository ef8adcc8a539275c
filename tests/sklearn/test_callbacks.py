"""Callbacks of scikit-learn see what is released and no more; bars show what takes long."""

import io
import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skmixdp import (
    FirstOrderDPModuleClassifier,
    MixedDPLogisticRegression,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    fit_many,
)
from skmixdp.inspection import StepHistory
from skmixdp.model_selection import PrivateSearchCV, public_params
from tests.private_names import dotted_path, no_bars, process
from tests.secrets import Needles
from tests.stand_ins import Terminal

callbacks = pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")

pytestmark = pytest.mark.filterwarnings("ignore")


class Spy:
    """Records every call; stops after a step, or fails at one."""

    def __init__(self, stop=None, fail=None):
        self.stop, self.fail = stop, fail
        self.calls, self.heads, self.steps = [], [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
        self.calls.append(f"end {context.task_name}")
        if metadata is None:
            return False
        self.steps.append(metadata)
        self.heads.append(fitted_estimator)
        if metadata["step"] == self.fail:
            raise OSError("disk full")
        return metadata["step"] == self.stop


class WantsRows(Spy):
    def on_fit_task_end(self, estimator, context, *, X, metadata):
        raise AssertionError("called with private rows")


def head(**parameters):
    terms = {"algorithm": "noisy-gd", "n_steps": 4, "random_state": 0}
    return MixedDPLogisticRegression(**(terms | parameters))


def test_tasks_come_in_order(digits):
    spy = Spy()
    head().set_callbacks(spy).fit(*digits)
    steps = ["begin step", "end step"] * 4
    training = ["begin training", *steps, "end training"]
    assert spy.calls == ["setup", "begin fit", *training, "end fit", "teardown"]


def test_earlier_stages_are_tasks_too(digits):
    spy = Spy()
    X, y, *_ = digits
    head(algorithm="auto", n_steps=None, epsilon=20.0, classes=range(10)).set_callbacks(spy).fit(X, y)
    assert spy.calls[2:6] == ["begin geometry", "end geometry"] * 2


def test_callbacks_get_released_heads_and_public_facts_alone(digits):
    spy = Spy()
    clf = head().set_callbacks(spy).fit(*digits)
    X, y, X_pub, y_pub = digits
    # The last head of NoisyGD is what the fit returns.
    np.testing.assert_array_equal(spy.heads[-1].coef_, clf.coef_)
    assert spy.heads[0].score(X_pub, y_pub) > 0.5
    assert [step["step"] for step in spy.steps] == [1, 2, 3, 4]
    assert set(spy.steps[0]) == {
        *("step", "n_steps", "step_size", "public_weight", "noise_multiplier", "sensitivities"),
        "public_gradient_norms",
    }
    # Other private rows change nothing before the first release.
    first = Spy()
    head().set_callbacks(first).fit(X[::-1] * 2, y[::-1], X_pub, y_pub)
    assert first.steps[0] == spy.steps[0]


@pytest.mark.parametrize("geometry", [True, False])
def test_callbacks_reach_no_private_row(geometry):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), np.arange(200) % 3
    needles, found, searched = Needles(X[::20], len(X)), [], []

    class Scanner(Spy):
        def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
            if context.task_name not in searched:  # once for each kind
                searched.append(context.task_name)
                own = {name: value for name, value in vars(estimator).items() if "callback" not in name}
                coef = getattr(fitted_estimator, "coef_", None)
                found.extend(needles.in_object([own, metadata, coef]))

    terms = {"epsilon": 9.0, "n_steps": None, "random_state": None, "classes": range(3)}
    terms["rows"] = RowMapping(geometry=geometry)
    head(**terms).set_callbacks(Scanner()).fit(X, y)
    # Class counts come before the training, as what a geometry needs does.
    assert searched == ["geometry", "step", "training", "fit"] and found == []


def test_callbacks_do_not_change_the_fit(digits):
    watched = head().set_callbacks(Spy(), StepHistory()).fit(*digits)
    np.testing.assert_array_equal(watched.coef_, head().fit(*digits).coef_)


def test_targets_of_regressions_come_in_their_units(digits):
    spy = Spy()
    X, y, X_pub, y_pub = digits
    model = MixedDPRidge("noisy-gd", n_steps=3, epsilon=100.0).set_callbacks(spy)
    model.fit(X, 1000.0 + y, X_pub, 1000.0 + y_pub)
    assert 950 < spy.heads[-1].predict(X_pub).mean() < 1050


@pytest.mark.parametrize("make", [lambda: callbacks.ScoringMonitor(scoring="accuracy"), WantsRows])
def test_a_callback_that_would_score_private_rows_raises(make, digits):
    callback = make()
    with pytest.raises(ValueError, match="asks for X"):
        head().set_callbacks(callback)
    clf = head()
    clf._skl_callbacks = [callback]  # as a search hands them on
    with pytest.raises(ValueError, match="private rows"):
        clf.fit(*digits)
    assert not hasattr(clf, "coef_")


def test_a_callback_can_stop_training_but_saves_no_budget(digits):
    clf = head().set_callbacks(Spy(stop=2)).fit(*digits)
    whole = head().fit(*digits)
    assert clf.n_iter_ == 2 and whole.n_iter_ == 4
    assert clf.privacy_.epsilon == whole.privacy_.epsilon
    assert not np.array_equal(clf.coef_, whole.coef_)


def test_callbacks_are_torn_down_if_a_fit_fails(digits):
    spy = Spy(fail=2)
    clf = head().set_callbacks(spy)
    with pytest.raises(OSError, match="disk full"):
        clf.fit(*digits)
    assert spy.calls[-1] == "teardown" and not hasattr(clf, "coef_")
    assert not hasattr(clf, "_callback_fit_ctx")


def test_heads_that_are_fitted_together_have_callbacks_of_their_own(digits):
    X, y, X_pub, y_pub = digits
    spies = [Spy(), Spy(stop=1)]
    heads = [head(n_steps=n).set_callbacks(spy) for n, spy in zip((3, 5), spies, strict=True)]
    first, second = fit_many([*heads, head()], X, y, X_pub=X_pub, y_pub=y_pub)[:2]
    assert (first.n_iter_, second.n_iter_) == (3, 1)
    assert [len(spy.steps) for spy in spies] == [3, 1]
    assert all(spy.calls[0] == "setup" and spy.calls[-1] == "teardown" for spy in spies)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_clones_and_searches_of_scikit_learn_keep_callbacks(digits):
    X, y, X_pub, y_pub = digits
    history = StepHistory()
    clf = head(n_steps=2).set_callbacks(history)
    assert clone(clf)._skl_callbacks == [history]
    GridSearchCV(clf, {"epsilon": [1.0]}, cv=2).fit(X, y, **public_params(X_pub, y_pub))
    assert len(history.steps) == 2


@pytest.mark.parametrize("kind", [ZerothOrderDPModuleClassifier, FirstOrderDPModuleClassifier])
def test_modules_have_steps_without_heads(digits, kind):
    torch = pytest.importorskip("torch")
    spy = Spy()
    X, y, X_pub, y_pub = (np.asarray(part, np.float32 if part.ndim == 2 else None) for part in digits)
    module = torch.nn.Linear(64, 10)
    kind(module, n_steps=2).set_callbacks(spy).fit(X, y, X_pub, y_pub)
    assert [step["step"] for step in spy.steps] == [1, 2] and spy.heads == [None, None]


def test_a_random_search_calls_nothing_that_would_count_its_trials(digits):
    X, y, X_pub, y_pub = digits
    spy = Spy()
    clf = MixedDPLogisticRegression("noisy-gd").set_callbacks(spy)
    options = {"epsilon": 3.0, "delta": 1e-3, "strategy": "random", "random_state": 0}
    search = PrivateSearchCV(clf, {"learning_rate": [1.0, 2.0]}, **options)
    search.fit(X, y, **public_params(X_pub, y_pub))
    assert spy.calls == []


def shown(estimator, digits, monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    estimator.fit(*digits)
    return stream.getvalue()


def test_bars_appear_on_terminals_after_a_while_or_if_asked(digits, monkeypatch):
    assert process._PATIENCE == 2.0
    monkeypatch.setattr(dotted_path("process._PATIENCE"), math.inf)  # however slow the machine is
    assert shown(head(), digits, monkeypatch, Terminal()) == ""
    monkeypatch.setattr(dotted_path("process._PATIENCE"), 1e-9)
    # tqdm waits for a tenth of a second in any case.
    bar = shown(head(n_steps=2000), digits, monkeypatch, Terminal())
    assert "MixedDPLogisticRegression" in bar and "/2000" in bar and "<" in bar  # the estimate
    assert shown(head(n_steps=300), digits, monkeypatch, io.StringIO()) == ""
    assert "4/4" in shown(head(verbose=1), digits, monkeypatch, io.StringIO())


def test_no_bar_appears_by_itself_where_it_would_count_secret_fits(digits, monkeypatch):
    monkeypatch.setattr(dotted_path("process._PATIENCE"), 1e-9)
    with no_bars():
        assert shown(head(n_steps=300), digits, monkeypatch, Terminal()) == ""


@pytest.mark.slow
def test_before_scikit_learn_1_9_there_are_bars_alone():
    code = """
import sys
import sklearn.linear_model, sklearn.model_selection, sklearn.pipeline, sklearn.compose
from sklearn.datasets import load_digits
sys.modules["sklearn.callback"] = None  # scikit-learn 1.9 has loaded its own by now
from skmixdp import MixedDPLogisticRegression
X, y = load_digits(return_X_y=True)
clf = MixedDPLogisticRegression("noisy-gd", n_steps=2).fit(X[60:], y[60:], X_pub=X[:60], y_pub=y[:60])
try:
    clf.set_callbacks(object())
except NotImplementedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("callbacks need scikit-learn 1.9")
