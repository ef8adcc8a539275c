"""Ctrl-C after a charge says what was spent and where it is recorded; a search says why it has no bar."""

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.privacy import PrivacyLedger
from tests.private_names import GaussianMechanism, main, transaction

X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.arange(60) % 2


@pytest.fixture
def interrupted(monkeypatch):
    def admit(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(GaussianMechanism, "admit", admit)


def head(**options):
    return MixedDPLogisticRegression(epsilon=2.0, delta=1e-3, classes=[0, 1], **options)


@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_fit_says_what_was_spent(interrupted, with_ledger):
    ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=5.0, delta=1e-3) if with_ledger else None
    with pytest.raises(KeyboardInterrupt) as caught:
        head(ledger=ledger).fit(X, Y)
    where = f"charge 1 to {ledger!r} says so" if with_ledger else "no ledger records it"
    assert caught.value.__notes__ == [
        f"Epsilon 2 at delta 0.001 is spent on MixedDPLogisticRegression; {where}."
    ]


def test_an_interrupt_before_the_charge_says_nothing(monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    ledger = PrivacyLedger(":memory:").add_dataset("people", epsilon=5.0, delta=1e-3)
    monkeypatch.setattr(transaction, "charge_together", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        head(ledger=ledger).fit(X, Y)
    assert not hasattr(caught.value, "__notes__") and ledger.spent == 0


def test_an_evaluation_says_so_too(interrupted):
    class Model(MixedDPLogisticRegression):
        pass

    model = Model(classes=[0, 1])
    model.classes_, model.n_features_in_ = np.array([0, 1]), 3
    model.predict_proba = lambda rows: np.full((len(rows), 2), 0.5)
    with pytest.raises(KeyboardInterrupt) as caught:
        private_evaluation(model, X, Y, epsilon=1.0, delta=1e-3)
    assert "Epsilon 1 at delta 0.001 is spent on private_evaluation" in caught.value.__notes__[0]


def test_notes_of_others_do_not_leave_a_fit(monkeypatch):
    def admit(self, *arguments):
        error = KeyboardInterrupt()
        error.add_note("row 7 is odd")
        raise error

    monkeypatch.setattr(GaussianMechanism, "admit", admit)
    with pytest.raises(KeyboardInterrupt) as caught:
        head().fit(X, Y)
    assert len(caught.value.__notes__) == 1 and "row 7" not in caught.value.__notes__[0]


def test_the_command_line_says_so(interrupted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", X=X, y=Y)
    args = ["fit", "--private", "rows.npz", "--classes", "0,1", "--delta", "1e-3", "--out", "m", "--quiet"]
    assert main(args) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("skmixdp fit: interrupted. Epsilon 1 at delta 0.001 is spent on ")
    assert said.endswith("; no ledger records it.")


def test_a_search_says_once_why_it_has_no_bar(capsys):
    options = {"epsilon": 4.0, "delta": 1e-3, "strategy": "random", "n_trials": 9, "verbose": 1}
    search = PrivateSearchCV(head(), {"l2": [0.1, 0.5]}, **options)
    search.fit(X, Y)
    assert capsys.readouterr().err.count("no bar, since the number of its trials stays secret") == 1
