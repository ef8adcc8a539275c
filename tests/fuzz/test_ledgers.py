"""A ledger as a state machine next to a simple model of it."""

import math
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.optimize import brentq
from scipy.stats import norm

from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyLedger

from .limits import cases, check_message
from .values import NAMES

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RELATIONS = ("add_or_remove_one", "zero_out", "replace_one")


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Epsilon of Gaussian DP by its textbook formula (Balle and Wang 2018), as an oracle."""
    if mu == 0:
        return 0.0

    def excess(epsilon: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, 400.0, xtol=1e-13))


class Ledger(RuleBasedStateMachine):
    """Charges, refusals, outcomes, copies and reopened files, compared with sums of squares."""

    @initialize(in_file=st.booleans())
    def begin(self, in_file):
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-") if in_file else None
        self.ledger = PrivacyLedger(Path(self.folder.name) / "l.sqlite" if self.folder else ":memory:")
        self.model: dict[str, dict[str, Any]] = {}
        self.made: list[Any] = []

    def teardown(self):
        if getattr(self, "folder", None) is not None:
            self.ledger = None
            self.folder.cleanup()

    @rule(
        name=st.sampled_from([*NAMES[:40], "a"]),
        epsilon=st.sampled_from([1.0, 3.0, 0.1, 10.0, math.nan, 0.0]),
        delta=st.sampled_from([1e-5, 1e-3, 1.0]),
    )
    def add(self, name, epsilon, delta):
        known = self.model.get(name)
        same = known is None or (known["epsilon"], known["delta"]) == (epsilon, delta)
        taken = name != "" and epsilon > 0 and 0 < delta < 1 and same
        try:
            self.ledger.add_dataset(name, epsilon=epsilon, delta=delta, composition="gaussian")
        except ValueError as error:
            check_message(str(error), ("name", "epsilon", "delta"))
            if taken:
                raise AssertionError(f"a data set is refused: {error}") from error
            return
        assert taken, "a data set with another budget is taken"
        self.model.setdefault(name, {"epsilon": epsilon, "delta": delta, "squares": [], "relation": None})

    @precondition(lambda self: self.model)
    @rule(
        which=st.integers(0, 50),
        noise=st.sampled_from([20.0, 5.0, 100.0, 2.0, 1.0, 1e6, 1e-3]),
        n_steps=st.integers(1, 30),
        relation=st.sampled_from(RELATIONS),
        private=st.booleans(),
    )
    def charge(self, which, noise, n_steps, relation, private):
        name = [*self.model][which % len(self.model)]
        known, data = self.model[name], self.ledger[name]
        plain = "add_or_remove_one" if relation == "zero_out" else relation
        square = n_steps * ((2.0 if relation == "replace_one" else 1.0) / noise) ** 2
        mu = math.sqrt(math.fsum([*known["squares"], square]))
        spent = epsilon_of_mu(mu, known["delta"]) if mu < 10 else math.inf
        fits, close = spent <= known["epsilon"], abs(spent - known["epsilon"]) < 1e-6
        related, before = known["relation"] in (None, plain), data.account
        options = {"neighboring": relation, "description": "=1+1\n<b>", "private": private}
        try:
            charge = data.charge(GaussianEvent(noise, n_steps), **options)
        except (BudgetExceededError, ValueError) as error:
            beyond = isinstance(error, BudgetExceededError)
            check_message(str(error), ("dataset",) if beyond else ())
            if (fits and not close) if beyond else related:
                raise AssertionError(f"a charge that fits is refused: {error}") from error
            assert self.ledger[name].account == before, "a refused charge is counted"
            return
        assert (fits or close) and related, "a charge beyond the budget, or of another relation, is taken"
        known["squares"].append(square)
        known["relation"] = plain
        self.made.append((name, charge))

    @precondition(lambda self: self.made)
    @rule(
        which=st.integers(0, 50),
        outcome=st.sampled_from(["finished", "open", "failed: ValueError", "", "lost"]),
    )
    def outcome(self, which, outcome):
        name, charge = self.made[which % len(self.made)]
        try:
            self.ledger[name]._record_outcome(charge, outcome)
        except ValueError:
            if outcome in ("finished", "open") or outcome.startswith("failed: "):
                raise
            return
        recorded = {kept.id: kept.outcome for kept in self.ledger[name].charges()}
        assert recorded[charge.id] == outcome, "an outcome is not recorded"

    @rule(name=st.sampled_from(NAMES))
    def unknown(self, name):
        if name not in self.model:
            with pytest.raises((KeyError, ValueError)):
                self.ledger[name]

    @precondition(lambda self: self.folder is not None)
    @rule(by_pickle=st.booleans())
    def reopen(self, by_pickle):
        if by_pickle:
            self.ledger = pickle.loads(pickle.dumps(self.ledger))
        else:
            self.ledger = PrivacyLedger(self.ledger.path)

    @invariant()
    def agrees(self):
        if getattr(self, "ledger", None) is None:
            return
        assert [*self.ledger] == [*self.model]
        for name, known in self.model.items():
            spent = self.ledger[name].spent
            exact = epsilon_of_mu(math.sqrt(math.fsum(known["squares"])), known["delta"])
            most = min(exact * (1 + 1e-6) + 1e-9, known["epsilon"])
            assert exact * (1 - 1e-6) - 1e-9 <= spent <= most, f"{spent} is spent, and {exact} by the formula"
            assert len(self.ledger[name].charges()) == len(known["squares"]), "charges are lost"


TestLedger = Ledger.TestCase
TestLedger.settings = settings(
    max_examples=cases(3), stateful_step_count=12, suppress_health_check=HealthCheck
)
