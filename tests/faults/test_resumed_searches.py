"""A search that is resumed releases nothing twice, and one that released something is not resumed."""

import shutil
import sqlite3
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import BudgetExceededError
from skmixdp.model_selection import PrivateSearchCV, public_params
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.conftest import make_problem
from tests.private_names import Progress, private_search, transaction

DELTA = 1e-3
GRID = {"n_steps": [2, 3]}
HEAD = MixedDPLogisticRegression("adamix", delta=DELTA, classes=[0, 1, 2, 3])


@pytest.fixture(scope="module")
def rows():
    problem = make_problem(n_rows=60)
    return problem.X[:, :-1], problem.y, problem.X[:24, :-1], problem.y[:24]


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=30.0, delta=DELTA)


@pytest.fixture
def search(rows, ledger, tmp_path):
    def run(head=HEAD, grid=GRID, **options):
        defaults = {"epsilon": 2.0, "delta": DELTA, "strategy": "grid", "ledger": ledger}
        made = PrivateSearchCV(head, grid, **(defaults | {"memory": tmp_path / "memory"} | options))
        X, y, X_pub, y_pub = rows
        return made.fit(X, y, **public_params(X_pub, y_pub))

    return run


class Interrupted:
    """Interrupts the second trial of the first search; keeps the tokens of the searches."""

    def __init__(self, monkeypatch, error=KeyboardInterrupt):
        self.tokens, self.error, self.original = [], error, private_search.run_trial
        monkeypatch.setattr(private_search, "run_trial", self.trial)

    def trial(self, token, number, estimator, rows):
        self.tokens.append(token)
        if len(self.tokens) == 2:
            raise self.error
        return self.original(token, number, estimator, rows)


class FailsWhen:
    """A metric that sees a trial and may refuse it. It has no state, so each search is the same."""

    seen = ()
    refuses = True

    def __call__(self, estimator, X, y):
        head = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        FailsWhen.seen = (*FailsWhen.seen, head.coef_.copy())
        if FailsWhen.refuses:
            raise RuntimeError("not good enough")
        return 1.0


@pytest.fixture
def metric(monkeypatch):
    monkeypatch.setattr(FailsWhen, "seen", ())
    monkeypatch.setattr(FailsWhen, "refuses", True)
    return FailsWhen()


def test_a_result_that_a_metric_refuses_is_not_drawn_again_for_free(search, ledger, metric):
    for number in (1, 2):
        with pytest.raises(RuntimeError, match="not good enough"):
            search(scoring=metric)
        assert len(ledger.charges()) == number
    first, second = FailsWhen.seen
    assert not np.allclose(first, second)
    FailsWhen.refuses = False
    search(scoring=metric)
    assert [charge.outcome for charge in ledger.charges()] == ["failed: RuntimeError"] * 2 + ["finished"]


def test_an_interruption_and_a_worker_that_died_keep_the_search(search, ledger, monkeypatch):
    for error, seen in ((KeyboardInterrupt, KeyboardInterrupt), (BrokenExecutor("it died"), RuntimeError)):
        with monkeypatch.context() as patched:
            tokens = Interrupted(patched, error).tokens
            with pytest.raises(seen):
                search()
            search()
        assert len(set(tokens)) == 1
    assert len(ledger.charges()) == 2


def test_callbacks_would_see_an_interrupted_trial_twice_and_are_refused(search, ledger, tmp_path):
    pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    from skmixdp.inspection import StepHistory

    watched = clone(HEAD)
    watched.set_callbacks(StepHistory())
    piped = Pipeline([("head", watched)], transform_input=["X_pub"])
    grid = {f"head__{name}": values for name, values in GRID.items()}
    candidates = Pipeline([("head", HEAD)], transform_input=["X_pub"]), {"head": [watched]}
    for head, own in ((watched, GRID), (piped, grid), candidates):
        with (
            sklearn.config_context(enable_metadata_routing=True),
            pytest.raises(
                ValueError, match=r"^memory=.* would see both runs for one charge; pass memory=None"
            ),
        ):
            search(head, own)
    assert ledger.charges() == []
    search(watched, memory=None)
    # A random search calls no callbacks, so it may have some.
    search(watched, strategy="random", n_trials=2, ledger=None)


@pytest.mark.parametrize("strategy", ["grid", "random"])
@pytest.mark.parametrize("when", ["before the charge", "after the charge"])
def test_a_search_that_is_stopped_at_its_charge_is_charged_once(search, ledger, monkeypatch, when, strategy):
    charge, stopped_at = transaction.charge_together, []

    def stopped(requests, *arguments):
        if requests[0][0] is not ledger:  # an allowance of a trial
            return charge(requests, *arguments)
        stopped_at.append(requests[0][1]["key"])
        if when == "after the charge":
            charge(requests, *arguments)
        raise KeyboardInterrupt

    options = {"strategy": strategy}
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "charge_together", stopped)
        with pytest.raises(KeyboardInterrupt):
            search(**options)
    assert len(ledger.charges()) == (when == "after the charge")
    tokens, run = [], private_search.run_trial

    def trial(token, number, estimator, rows):
        tokens.append(token)
        return run(token, number, estimator, rows)

    monkeypatch.setattr(private_search, "run_trial", trial)
    search(**options)
    assert [charge.outcome for charge in ledger.charges()] == ["finished"]
    # What was drawn before the charge runs with it, and is otherwise drawn again.
    assert {token == stopped_at[0] for token in tokens} == {when == "after the charge"}


@pytest.mark.parametrize("lost", ["copy", "other"])
def test_a_search_whose_charge_the_ledger_lost_is_charged_again(search, ledger, monkeypatch, tmp_path, lost):
    path, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    tokens = Interrupted(monkeypatch).tokens
    with pytest.raises(KeyboardInterrupt):
        search()
    assert len(ledger.charges()) == 1
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(copy, path)
    if lost == "other":  # the number of the charge is taken by another one
        ledger.charge(GaussianEvent(50.0, 1), neighboring="add_or_remove_one")
    search()
    assert len(set(tokens)) == 2
    searches = [charge for charge in ledger.charges() if "Search" in charge.description]
    assert len(searches) == 1 and searches[0].outcome == "finished"


def test_no_name_of_a_file_follows_from_the_rows(search, monkeypatch, tmp_path):
    """Others may list names, and could compare them with those of rows that they try out."""
    names = []
    for number in range(2):
        with monkeypatch.context() as patched:
            Interrupted(patched)
            with pytest.raises(KeyboardInterrupt):
                search(memory=tmp_path / str(number))
            names.append({path.name[:9] for path in (tmp_path / str(number) / "private_search").iterdir()})
    assert names[0].isdisjoint(names[1])


@pytest.mark.parametrize("how", ["finished", "refused", "failed", "over budget"])
def test_a_search_that_is_over_leaves_no_file(search, metric, ledger, tmp_path, how):
    kinds = {
        "refused": ({"grid": {"n_steps": [2, 0]}}, ValueError),
        "failed": ({"scoring": metric}, RuntimeError),
        "over budget": ({"epsilon": 31.0}, BudgetExceededError),
    }
    options, error = kinds.get(how, ({}, None))
    with nullcontext() if error is None else pytest.raises(error):
        search(**options)
    assert len(ledger.charges()) == (how in ("finished", "failed"))
    assert list((tmp_path / "memory").rglob("*")) == [tmp_path / "memory" / "private_search"]


def test_a_search_without_memory_keeps_nothing():
    with pytest.raises(ZeroDivisionError), Progress(None).ended_by_errors():
        raise ZeroDivisionError
    Progress(None).finish()
    assert Progress(None).load() is None
