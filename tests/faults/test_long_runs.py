"""A quick version of ``python -m tests.faults.endurance``, and the short reports of long ledgers."""

import sqlite3
import warnings
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.faults import endurance
from tests.private_names import charge_together

EVENT, RELATION = GaussianEvent(1e3, 1), "add_or_remove_one"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_fits_leave_no_threads_files_or_connections(tmp_path, monkeypatch):
    monkeypatch.setattr(endurance, "MEMORY", float("inf"))  # 40 fits say nothing about memory
    with warnings.catch_warnings(action="ignore"):
        assert endurance.fits(40, tmp_path, say=lambda text: None) == []


def test_what_grows_is_found(tmp_path, monkeypatch):
    held = []

    class Growing(endurance.State):
        @classmethod
        def now(cls):
            held.append(None)
            return endurance.State(1000 * len(held), len(held), len(held), len(held))

    monkeypatch.setattr(endurance, "State", Growing)
    with warnings.catch_warnings(action="ignore"):
        found = endurance.fits(8, tmp_path, say=lambda text: None)
    assert [text.split()[0] for text in found] == ["threads", "files", "connections", "memory"]


@pytest.mark.untraced
def test_sums_of_many_charges_are_exact_up_to_rounding(tmp_path):
    people, events = endurance.charged(tmp_path / "ledger.sqlite", 3000)
    assert endurance.wrong_sums(people, events, 3000) == []

    class Off:
        account = replace(people.account, total=people.account.total * (1 - 1e-9))

    (finding,) = endurance.wrong_sums(Off, events, 3000)
    assert "the sum is off by -1.0e-09" in finding


def test_a_ledger_asks_few_pages_of_the_disk(tmp_path):
    """Questions use an index or read one row, so they take as long however many charges there are."""
    people, _ = endurance.charged(tmp_path / "ledger.sqlite", 50)
    plans = []
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        for query in (
            "SELECT * FROM accounts WHERE dataset = 'people'",
            "SELECT id FROM charges WHERE outcome >= 'failed' AND outcome < 'failee'",
            "SELECT id FROM charges WHERE private = 0",
            "UPDATE charges SET outcome = '' WHERE id = 3 AND dataset = 'people'",
        ):
            plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert plans and not any(plan.startswith("SCAN") for plan in plans), plans
    assert people.account.n_charges == 50


@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_report_of_failed_charges_prints_the_same(tmp_path, where):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite" if where == "file" else ":memory:")
    for name in ("a", "b"):
        ledger.add_dataset(name, epsilon=3.0, delta=1e-5)
    assert ledger.report(charges="failed").charges == ()  # no table of outcomes yet
    for number in range(6):
        leaks = ("the classes",) if number == 3 else ()
        charge = ledger["ab"[number % 2]].charge(EVENT, neighboring=RELATION, leaks=leaks)
        if number in (1, 4):
            ledger[charge.dataset]._record_outcome(charge, "failed: MemoryError")
        elif number < 5:
            ledger[charge.dataset]._record_outcome(charge, "finished")
    short, full = ledger.report(charges="failed"), ledger.report()
    assert [charge.id for charge in short.charges] == [2, 4, 5] and len(full.charges) == 6
    assert str(short) == str(full) and short.accounts == full.accounts
    assert short.failed == full.failed == short.charges[::2]
    assert str(short).startswith("NO GUARANTEE: the classes (charged to 'b')")
    assert [charge.id for charge in ledger["b"].report(charges="failed").charges] == [2, 4]
    assert str(ledger["b"].report(charges="failed")) == str(ledger["b"].report())


@pytest.mark.parametrize("asked", ["few", None, True])
def test_other_reports_are_refused(asked):
    ledger = PrivacyLedger(":memory:")
    people = ledger.add_dataset("people", epsilon=3.0, delta=1e-5)
    for report in (ledger.report, people.report):
        with pytest.raises(ValueError, match=f"^charges={asked!r} must be 'all' or 'failed'"):
            report(charges=asked)


def test_charges_of_one_event_share_no_object_with_later_ones(tmp_path):
    people = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=3.0, delta=1e-5)
    people.charge(EVENT, neighboring=RELATION)
    object.__setattr__(people.charges()[0].event, "noise_multiplier", 1e9)
    assert people.charge(EVENT, neighboring=RELATION).event == people.charges()[0].event == EVENT


def test_a_charge_is_found_by_its_key_and_made_once():
    people = PrivacyLedger(":memory:").add_dataset("people", epsilon=3.0, delta=1e-5)
    people.charge(EVENT, neighboring=RELATION)
    assert people._charge_of("a") is None
    request = [(people, {"event": EVENT, "neighboring": RELATION, "key": "a"})]
    (charge,) = charge_together(request)
    people._record_outcome(charge, "finished")
    assert people._charge_of("a") == replace(charge, outcome="finished")
    with pytest.raises(RuntimeError, match="another process is at the fit or search whose charge is in"):
        charge_together(request)
    assert len(people.charges()) == 2
