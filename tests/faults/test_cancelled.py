"""What is cancelled, at whatever point, leaves no lock and nothing in between."""

import copy
import gc
import sqlite3
import sys

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.private_names import RowCache, replace_attributes, write_arrays, write_together

# An interruption within a generator that is being thrown away is said and goes no further.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

EVENT, RELATION = GaussianEvent(1e4, 1), "add_or_remove_one"


def cancellations(work, step=1):
    """Cancel some work at one point after another: wherever a function begins or a call returns."""
    at, points = 0, 1

    def profile(frame, event, argument):
        nonlocal points
        points += event in ("call", "c_return")
        if points == at:
            sys.setprofile(None)
            raise KeyboardInterrupt

    while points >= at:  # it struck, or it is the first time
        at, points, caught = at + step, 0, None
        sys.setprofile(profile)
        try:
            work()
        except KeyboardInterrupt as error:
            caught = error
        finally:
            sys.setprofile(None)
        yield caught


@pytest.mark.parametrize("what", ["charge", "outcome", "add", "report"])
def test_a_cancelled_transaction_holds_no_lock(tmp_path, what):
    path = tmp_path / "ledger.sqlite"
    people = PrivacyLedger(path).add_dataset("people", epsilon=3.0, delta=1e-5)
    first = people.charge(EVENT, neighboring=RELATION)
    work = {
        "charge": lambda: people.charge(EVENT, neighboring=RELATION),
        "outcome": lambda: people._record_outcome(first, "finished"),
        "add": lambda: people.ledger.add_dataset("others", epsilon=1.0, delta=1e-5),
        "report": people.report,
    }[what]
    other = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    held = []
    for error in cancellations(work, 5 if what == "charge" else 1):
        held.append(error)
        other.execute("BEGIN IMMEDIATE")  # at once
        other.execute("ROLLBACK")
    other.close()
    assert len(held) > 20
    people.charge(EVENT, neighboring=RELATION)
    assert people.account.n_charges == len(people.charges())
    assert people.account.total == pytest.approx(len(people.charges()) * 1e-8)


def test_a_ledger_in_memory_can_be_charged_after_a_cancelled_charge():
    people = PrivacyLedger(":memory:").add_dataset("people", epsilon=3.0, delta=1e-5)
    assert len(list(cancellations(lambda: people.charge(EVENT, neighboring=RELATION), 7))) > 20
    assert people.account.n_charges == len(people.charges()) >= 1


def test_a_cancelled_adoption_leaves_the_estimator_as_it_was_or_fitted():
    former = MixedDPLogisticRegression(epsilon=0.5)
    former.coef_ = np.zeros((1, 2))
    fitted = copy.copy(former).set_params(epsilon=2.0)
    fitted.coef_ = np.ones((1, 2))
    estimator, ends = former, []

    def work():
        nonlocal estimator
        estimator = copy.copy(former)
        replace_attributes(estimator, fitted, {})

    ends.extend((estimator.epsilon, estimator.coef_[0, 0]) for _ in cancellations(work))
    assert set(ends) == {(0.5, 0.0), (2.0, 1.0)} and len(ends) > 2


def test_a_cancelled_extraction_stores_each_row_once_with_its_key(tmp_path):
    keys = [bytes([i]) * 16 for i in range(12)]
    rows = np.arange(24, dtype=np.float32).reshape(12, 2)
    n_shards = 0
    stores = [RowCache(tmp_path / "0", {"weights": "w"}, "float32")]

    def work():
        stores[-1].add(keys, rows)
        stores[-1].flush()

    for number, _ in enumerate(cancellations(work, 3)):
        stores[-1].flush()  # as an extraction does after an interruption
        stored = []
        for path in (tmp_path / f"{number}").rglob("*.npz"):
            with np.load(path, allow_pickle=False) as shard:
                assert len(shard["keys"]) == len(shard["rows"]) > 0
                np.testing.assert_array_equal(shard["rows"], rows[shard["keys"][:, 0]])
                stored += shard["keys"][:, 0].tolist()
            n_shards += 1
        assert len(stored) == len(set(stored))
        stores.append(RowCache(tmp_path / f"{number + 1}", {"weights": "w"}, "float32"))
    assert n_shards > 5


def test_a_cancelled_archive_ends_with_the_interruption(tmp_path):
    def work():
        write_together({tmp_path / "r.npz": lambda file: write_arrays(file, X=np.ones(9))})

    # None of these is another error, which would come out.
    assert sum(1 for _ in cancellations(work, 3)) > 20
    gc.collect()  # archives that could not be closed complain here, and not in another test
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".tmp"} == {"r.npz"}
