"""The life of an estimator as a state machine: fits, refusals, clones, pickles, files and new parameters."""

import copy
import math
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import PrivacyLedger

from .harness import BAD_INPUT, PromiseError, Tally, check_message

HEADS = (MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPClassifier)

#: Changes of parameters: names, values, and whether a fit may accept them.
CHANGES: tuple[tuple[str, Any, bool], ...] = (
    ("epsilon", 2.0, True),
    ("epsilon", -1.0, False),
    ("epsilon", math.nan, False),
    ("delta", 1e-4, True),
    ("delta", 1.0, False),
    ("dtype", "float64", True),
    ("dtype", "float16", False),
    ("row_norm", "clip", True),
    ("center", False, True),
    ("center", 1, False),
    ("random_state", 3, True),
    ("init", "zeros", True),
    ("init", "random", False),
    ("n_steps", 2, True),
    ("n_steps", 0, False),
)


def life_cycle_machine(tally: Tally) -> type:
    """Each fit is whole or has not happened; a copy shares nothing but the ledger."""

    class LifeCycle(RuleBasedStateMachine):
        @initialize(
            which=st.integers(0, 2), n_classes=st.sampled_from([2, 3]), budget=st.sampled_from([1e3, 4.0])
        )
        def begin(self, which: int, n_classes: int, budget: float) -> None:
            self.folder = tempfile.TemporaryDirectory(prefix="fuzz-")
            rng = np.random.default_rng(n_classes)
            self.X, self.X_pub = rng.normal(size=(14, 3)), rng.normal(size=(7, 3))
            self.y, self.y_pub = np.arange(14) % n_classes, np.arange(7) % n_classes
            self.ledger = PrivacyLedger(Path(self.folder.name) / "l.sqlite")
            self.data = self.ledger.add_dataset("d", epsilon=budget, delta=1e-3)
            self.model = HEADS[which](random_state=0, n_steps=2, ledger=self.data)
            self.valid = {}
            self.n_fits = 0
            self.state: dict[str, Any] | None = None

        def teardown(self) -> None:
            tally.cases += 1
            if hasattr(self, "folder"):
                self.data = self.ledger = self.model = None
                self.folder.cleanup()

        def remember(self) -> None:
            """The fitted state, for comparison."""
            names = ("coef_", "intercept_", "classes_", "n_features_in_", "privacy_")
            fitted = {
                name: copy.deepcopy(getattr(self.model, name)) for name in names if hasattr(self.model, name)
            }
            self.state = fitted or None

        @rule(
            kind=st.sampled_from(["rows", "rows", "nan", "short", "wide", "text", "labels", "alone", "fewer"])
        )
        def fit(self, kind: str) -> None:
            X, y, public = self.X, self.y, {"X_pub": self.X_pub, "y_pub": self.y_pub}
            good = all(self.valid.values())
            if kind == "nan":
                X = np.where(np.arange(14)[:, None] == 3, np.nan, X)
            elif kind == "short":
                y = y[:-1]
            elif kind == "wide":
                X = X[:, :2]
            elif kind == "text":
                X = X.astype(str)
            elif kind == "labels":
                public = {"X_pub": self.X_pub}
            elif kind == "alone":
                public = {}
            elif kind == "fewer":  # a second fit to some of the rows
                X, y = X[:9], y[:9]
            accepted = good and kind in ("rows", "alone", "fewer")
            # Without public rows, an algorithm may lack what it needs, and a step size its scale.
            certain = kind != "alone"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.model.fit(X, y, **public)
            except BudgetExceededError:
                tally.ended["BudgetExceededError"] += 1
                if not accepted:
                    raise PromiseError("bad input is charged before it is refused") from None
                self.unchanged()
                return
            except BAD_INPUT as error:
                tally.ended[type(error).__name__] += 1
                check_message(str(error))
                if accepted and certain:
                    raise PromiseError(f"a good fit is refused: {error}") from error
                self.unchanged()
                return
            tally.ended["done"] += 1
            if not accepted:
                raise PromiseError(f"the fit to {kind} is accepted with {self.valid}")
            self.n_fits += 1
            self.remember()

        def unchanged(self) -> None:
            """A refused fit leaves the estimator and the ledger as they were."""
            before, self_state = self.state, None
            self.remember()
            self_state = self.state
            if (before is None) != (self_state is None):
                raise PromiseError("a refused fit changed whether the estimator is fitted")
            for name, value in (before or {}).items():
                if not np.array_equal(
                    np.asarray(value, dtype=object), np.asarray(self_state[name], dtype=object)
                ):
                    raise PromiseError(f"a refused fit changed {name}")
            self.state = before

        @rule(change=st.sampled_from(CHANGES))
        def set_params(self, change: tuple[str, Any, bool]) -> None:
            name, value, valid = change
            self.model.set_params(**{name: value})
            self.valid[name] = valid

        @rule(name=st.sampled_from(["nothing", "algorithm__clip", "coef_"]))
        def set_unknown(self, name: str) -> None:
            try:
                self.model.set_params(**{name: 1})
            except ValueError:
                return
            raise PromiseError(f"the parameter {name} is accepted")

        @rule(deep=st.booleans())
        def copied(self, deep: bool) -> None:
            other = copy.deepcopy(self.model) if deep else clone(self.model)
            if other.ledger is not self.model.ledger:
                raise PromiseError("a copy has a ledger of its own")
            if deep:
                self.model = other
            elif any(name.endswith("_") for name in vars(other)):
                raise PromiseError("a clone is fitted")

        @rule()
        def pickled(self) -> None:
            self.model = pickle.loads(pickle.dumps(self.model))
            self.data = self.model.ledger

        @precondition(lambda self: self.state is not None and all(self.valid.values()))
        @rule()
        def saved(self) -> None:
            path = Path(self.folder.name) / "m.safetensors"
            self.model.save(path)
            again = skmixdp.load(path)
            if not np.array_equal(again.predict(self.X), self.model.predict(self.X)):
                raise PromiseError("a saved model predicts otherwise")
            if repr(again.ledger) != repr(self.model.ledger):
                raise PromiseError("a saved model has another ledger")
            self.model = again

        @precondition(lambda self: self.state is None)
        @rule()
        def not_fitted(self) -> None:
            for action in (lambda: self.model.predict(self.X), lambda: self.model.save("never.safetensors")):
                try:
                    action()
                except ValueError as error:
                    if type(error).__name__ != "NotFittedError":
                        raise
                    continue
                raise PromiseError("an estimator that is not fitted acts")

        @invariant()
        def agrees(self) -> None:
            if not hasattr(self, "ledger") or self.ledger is None:
                return
            charges = self.ledger["d"].charges()
            if [charge.outcome for charge in charges] != ["finished"] * self.n_fits:
                raise PromiseError(f"{self.n_fits} fits are charged as {charges}")
            if self.state is not None:
                predicted = self.model.predict(self.X)
                if predicted.dtype.kind == "f" and not np.isfinite(predicted).all():
                    raise PromiseError("predictions are not finite")
                if not np.array_equal(self.model.coef_, self.state["coef_"]):
                    raise PromiseError("coefficients changed without a fit")

    return LifeCycle
