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
from skmixdp.privacy.accounting.selection import TrialLaw
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
    def run(head=HEAD, grid=GRID, moved=0.0, **options):
        defaults = {"epsilon": 2.0, "delta": DELTA, "strategy": "grid", "ledger": ledger}
        made = PrivateSearchCV(head, grid, **(defaults | {"memory": tmp_path / "memory"} | options))
        X, y, X_pub, y_pub = rows
        return made.fit(X + moved, y, **public_params(X_pub, y_pub))

    return run


def interrupted(monkeypatch, error=KeyboardInterrupt, at=2):
    """Interrupts a trial of the first search; returns the tokens and numbers of all trials to come."""
    original, trials = private_search.run_trial, []

    def trial(token, number, estimator, rows):
        trials.append((token, number))
        if len(trials) == at:
            raise error
        return original(token, number, estimator, rows)

    monkeypatch.setattr(private_search, "run_trial", trial)
    return trials


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
            trials = interrupted(patched, error)
            with pytest.raises(seen):
                search()
            search()
        assert len(dict(trials)) == 1
    assert len(ledger.charges()) == 2


@pytest.mark.parametrize("strategy", ["grid", "random"])
def test_finished_trials_are_not_drawn_again(search, ledger, monkeypatch, strategy):
    monkeypatch.setattr(TrialLaw, "number", lambda law, u: 25)
    options = {"strategy": strategy, "n_trials": 25, "grid": {"n_steps": [2, 3, 4, 5]}}
    trials = interrupted(monkeypatch, at=3)
    with pytest.raises(KeyboardInterrupt):
        search(**options)
    fitted = search(**options)
    # The token is the search's own; the interrupted trial runs again, the finished ones do not.
    numbers = [number for _, number in trials]
    assert len(dict(trials)) == 1 and numbers[3] == 2 and len(set(numbers)) == len(numbers) - 1
    assert len(ledger.charges()) == 1 and fitted.privacy_.dataset == "people"
    if strategy == "grid":
        assert numbers[3:] == [2, 3] and len(fitted.cv_results_["params"]) == 4


def test_other_rows_are_another_search(search, monkeypatch):
    trials = interrupted(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        search()
    search(moved=1.0)
    assert len(dict(trials)) == 2


def test_only_one_process_is_at_a_search(search, monkeypatch):
    original = private_search.run_trial

    def again(token, number, estimator, rows):
        with pytest.raises(RuntimeError, match="another process is at it"):
            search()
        return original(token, number, estimator, rows)

    monkeypatch.setattr(private_search, "run_trial", again)
    search()


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
    trials = interrupted(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        search()
    assert len(ledger.charges()) == 1
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(copy, path)
    if lost == "other":  # the number of the charge is taken by another one
        ledger.charge(GaussianEvent(50.0, 1), neighboring="add_or_remove_one")
    search()
    assert len(dict(trials)) == 2
    searches = [charge for charge in ledger.charges() if "Search" in charge.description]
    assert len(searches) == 1 and searches[0].outcome == "finished"


def test_no_name_of_a_file_follows_from_the_rows(search, monkeypatch, tmp_path):
    """Others may list names, and could compare them with those of rows that they try out."""
    names = []
    for number in range(2):
        with monkeypatch.context() as patched:
            interrupted(patched)
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
