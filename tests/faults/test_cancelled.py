"""What is cancelled, at whatever point, leaves no lock and nothing in between."""

import copy
import sqlite3
import sys

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.estimators._fit import adopt
from skmixdp.features._cache import RowCache
from skmixdp.privacy import GaussianEvent, PrivacyLedger

# An interruption within a generator that is being thrown away is said and goes no further.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

EVENT, RELATION = GaussianEvent(1e4, 1), "add_or_remove_one"


def cancelled(work, at):
    """Run some work and cancel it where a function begins or a call returns. The error; None if it ended."""
    points = 0

    def profile(frame, event, argument):
        nonlocal points
        points += event in ("call", "c_return")
        if points == at:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        work()
    except KeyboardInterrupt as error:
        return error  # with its traceback and all frames, as in an interactive session
    finally:
        sys.setprofile(None)
    return None


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["charge", "outcome", "add", "report"])
def test_a_cancelled_transaction_holds_no_lock(tmp_path, what, step):
    path = tmp_path / "ledger.sqlite"
    people = PrivacyLedger(path).add_dataset("people", epsilon=3.0, delta=1e-5)
    first = people.charge(EVENT, neighboring=RELATION)
    work = {
        "charge": lambda: people.charge(EVENT, neighboring=RELATION),
        "outcome": lambda: people.record_outcome(first, "finished"),
        "add": lambda: people.ledger.add_dataset("others", epsilon=1.0, delta=1e-5),
        "report": people.report,
    }[what]
    other = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    held, at = [], 1
    while (error := cancelled(work, at)) is not None:
        held.append(error)
        other.execute("BEGIN IMMEDIATE")  # at once
        other.execute("ROLLBACK")
        at += step
    other.close()
    assert len(held) > 5
    people.charge(EVENT, neighboring=RELATION)
    assert people.account.n_charges == len(people.charges())
    assert people.account.total == pytest.approx(len(people.charges()) * 1e-8)


def test_a_ledger_in_memory_can_be_charged_after_a_cancelled_charge():
    people = PrivacyLedger(":memory:").add_dataset("people", epsilon=3.0, delta=1e-5)
    at = 1
    while cancelled(lambda: people.charge(EVENT, neighboring=RELATION), at) is not None:
        at += 13
    assert people.account.n_charges == len(people.charges()) >= 1


def test_a_cancelled_adoption_leaves_the_estimator_as_it_was_or_fitted():
    former = MixedDPLogisticRegression(epsilon=0.5)
    former.coef_ = np.zeros((1, 2))
    fitted = copy.copy(former).set_params(epsilon=2.0)
    fitted.coef_ = np.ones((1, 2))
    at, ends = 1, []
    while True:
        estimator = copy.copy(former)
        error = cancelled(lambda estimator=estimator: adopt(estimator, fitted), at)
        ends.append((estimator.epsilon, estimator.coef_[0, 0]))
        if error is None:
            break
        at += 1
    assert set(ends) == {(0.5, 0.0), (2.0, 1.0)} and len(ends) > 2


def test_a_cancelled_extraction_stores_no_key_without_its_row(tmp_path):
    keys = [bytes([i]) * 16 for i in range(12)]
    rows = np.arange(24, dtype=np.float32).reshape(12, 2)
    at, n_shards = 1, 0
    while True:
        folder = tmp_path / str(at)
        store = RowCache(folder, {"weights": "w"}, "float32")
        error = cancelled(lambda store=store: store.add(keys, rows), at)
        store.flush()  # as an extraction does after an interruption
        for path in folder.rglob("*.npz"):
            with np.load(path, allow_pickle=False) as shard:
                assert len(shard["keys"]) == len(shard["rows"]) > 0
                np.testing.assert_array_equal(shard["rows"], rows[shard["keys"][:, 0]])
            n_shards += 1
        if error is None:
            break
        at += 1
    assert n_shards > 5
