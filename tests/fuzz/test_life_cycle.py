"""The life of an estimator as a state machine: fits, refusals, clones, pickles, files and new parameters."""

import copy
import math
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import PrivacyLedger

from .limits import BAD_INPUT, cases, check_message

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

HEADS = (MixedDPLogisticRegression, MixedDPRidge)

#: Changes of parameters, and whether a fit may accept them.
CHANGES = [
    *((name, value, True) for name, value in [("epsilon", 2.0), ("delta", 1e-4), ("dtype", "float64")]),
    *((name, value, True) for name, value in [("rows", RowMapping(norm="clip")), ("random_state", 3)]),
    *((name, value, True) for name, value in [("init", "zeros"), ("n_steps", 2)]),
    *((name, value, False) for name, value in [("epsilon", -1.0), ("epsilon", math.nan), ("delta", 1.0)]),
    *(
        (name, value, False)
        for name, value in [("dtype", "float16"), ("rows", RowMapping(center=1)), ("init", "random")]
    ),
    ("n_steps", 0, False),
]


class LifeCycle(RuleBasedStateMachine):
    """Each fit is whole or has not happened; a copy shares nothing but the ledger."""

    @initialize(head=st.sampled_from(HEADS), k=st.sampled_from([2, 3]), budget=st.sampled_from([1e3, 4.0]))
    def begin(self, head, k, budget):
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        rng = np.random.default_rng(k)
        self.X, self.X_pub = rng.normal(size=(14, 3)), rng.normal(size=(7, 3))
        self.y, self.y_pub = np.arange(14) % k, np.arange(7) % k
        self.ledger = PrivacyLedger(Path(self.folder.name) / "l.sqlite")
        data = self.ledger.add_dataset("d", epsilon=budget, delta=1e-3)
        self.model = head(random_state=0, n_steps=2, ledger=data)
        self.valid: dict[str, bool] = {}
        self.n_fits, self.state = 0, {}

    def teardown(self):
        if hasattr(self, "folder"):
            self.ledger = self.model = None
            self.folder.cleanup()

    def fitted_state(self) -> dict[str, Any]:
        names = ("coef_", "intercept_", "classes_", "n_features_in_", "privacy_")
        return {name: copy.deepcopy(getattr(self.model, name)) for name in names if hasattr(self.model, name)}

    def unchanged(self):
        """A refused fit leaves the estimator and the ledger as they were."""
        now = self.fitted_state()
        assert now.keys() == self.state.keys(), "a refused fit changed whether the estimator is fitted"
        for name, value in self.state.items():
            before, after = (np.asarray(each, dtype=object) for each in (value, now[name]))
            assert np.array_equal(before, after), f"a refused fit changed {name}"

    @rule(kind=st.sampled_from(["rows", "rows", "nan", "short", "wide", "text", "labels", "alone", "fewer"]))
    def fit(self, kind):
        public = {"X_pub": self.X_pub, "y_pub": self.y_pub}
        X, y, public = {
            "nan": (np.where(np.arange(14)[:, None] == 3, np.nan, self.X), self.y, public),
            "short": (self.X, self.y[:-1], public),
            "wide": (self.X[:, :2], self.y, public),
            "text": (self.X.astype(str), self.y, public),
            "labels": (self.X, self.y, {"X_pub": self.X_pub}),
            "alone": (self.X, self.y, {}),
            "fewer": (self.X[:9], self.y[:9], public),  # a second fit to some of the rows
        }.get(kind, (self.X, self.y, public))
        accepted = all(self.valid.values()) and kind in ("rows", "alone", "fewer")
        try:
            with warnings.catch_warnings(action="ignore"):
                self.model.fit(X, y, **public)
        except BudgetExceededError as error:
            if not accepted:
                raise AssertionError("bad input is charged before it is refused") from error
            self.unchanged()
        except BAD_INPUT as error:
            check_message(str(error))
            # Without public rows, an algorithm may lack what it needs, and a step size its scale.
            if accepted and kind != "alone":
                raise AssertionError(f"a good fit is refused: {error}") from error
            self.unchanged()
        else:
            assert accepted, f"the fit to {kind} is accepted with {self.valid}"
            self.n_fits, self.state = self.n_fits + 1, self.fitted_state()

    @rule(change=st.sampled_from(CHANGES))
    def set_params(self, change):
        name, value, self.valid[change[0]] = change
        self.model.set_params(**{name: value})

    @rule(name=st.sampled_from(["nothing", "algorithm__clip", "coef_"]))
    def set_unknown(self, name):
        with pytest.raises(ValueError, match=name):
            self.model.set_params(**{name: 1})

    @rule(deep=st.booleans())
    def copied(self, deep):
        other = copy.deepcopy(self.model) if deep else clone(self.model)
        assert other.ledger is self.model.ledger, "a copy has a ledger of its own"
        if deep:
            self.model = other
        assert deep or not any(name.endswith("_") for name in vars(other)), "a clone is fitted"

    @rule()
    def pickled(self):
        self.model = pickle.loads(pickle.dumps(self.model))

    @precondition(lambda self: self.state and all(self.valid.values()))
    @rule()
    def saved(self):
        path = Path(self.folder.name) / "m.safetensors"
        self.model.save(path)
        again = skmixdp.load(path)
        assert np.array_equal(again.predict(self.X), self.model.predict(self.X))
        assert repr(again.ledger) == repr(self.model.ledger), "a saved model has another ledger"
        self.model = again

    @precondition(lambda self: not self.state)
    @rule()
    def not_fitted(self):
        with pytest.raises(NotFittedError):
            self.model.predict(self.X)
        with pytest.raises(NotFittedError):
            self.model.save("never.safetensors")

    @invariant()
    def agrees(self):
        if getattr(self, "ledger", None) is None:
            return
        outcomes = [charge.outcome for charge in self.ledger["d"].charges()]
        assert outcomes == ["finished"] * self.n_fits, f"{self.n_fits} fits are charged as {outcomes}"
        if self.state:
            predicted = self.model.predict(self.X)
            assert predicted.dtype.kind != "f" or np.isfinite(predicted).all()
            assert np.array_equal(self.model.coef_, self.state["coef_"]), "coefficients changed without a fit"


TestLifeCycle = LifeCycle.TestCase
TestLifeCycle.settings = settings(
    max_examples=cases(1.5), stateful_step_count=12, suppress_health_check=HealthCheck
)
