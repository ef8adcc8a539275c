"""Damaged ledgers are refused in one sentence or harmless, and a locked one is waited for, audibly."""

import random
import sqlite3
import threading
import warnings
from contextlib import closing

import pytest

from skmixdp.privacy import GaussianEvent, OtherRelease, PrivacyLedger
from tests.private_names import _store, recorded_outcome

EVENT, RELATION = GaussianEvent(90.0, 3), "add_or_remove_one"
NAMES = ("people", "visits", "tools")


def ledger_bytes(folder):
    """A ledger whose charges differ in data set, event, outcome, user's words and end."""
    path = folder / "whole.sqlite"
    ledger = PrivacyLedger(path)
    for name in NAMES:
        others = (0.5, 1e-6) if name == "tools" else None
        data = ledger.add_dataset(name, epsilon=3.0, delta=1e-5, others=others)
        for number in range(12):
            event = GaussianEvent(90.0 + number, 3, noise="discrete" if name == "visits" else "float")
            charge = data.for_purpose(f"model {number}").charge(
                event, neighboring=RELATION, description=f"fit {number}", private=number != 5
            )
            data._record_outcome(charge, "failed: MemoryError" if number == 7 else "finished")
    ledger["tools"].charge(OtherRelease(0.1), neighboring=RELATION)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def what_it_says(path):
    """All that a ledger says of its budgets and charges; then one more charge."""
    ledger = PrivacyLedger(path)
    report = ledger.report()
    short = ledger.report(charges="failed").to_dict()
    charges = {name: ledger[name].charges() for name in ledger}
    said = [*ledger], report.to_json(), str(report), short, charges
    account = ledger["people"].account
    assert ledger["people"].charge(EVENT, neighboring=RELATION).spent > account.spent
    return said


def outcomes(contents, right, folder):
    """How many damaged contents are refused, and how many change nothing; others are errors."""
    path = folder / "ledger.sqlite"
    refused = harmless = 0
    for what, content in contents:
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            (folder / name).unlink(missing_ok=True)
        path.write_bytes(content)
        try:
            said = what_it_says(path)
        except (ValueError, OSError) as error:
            text = str(error)
            assert str(path) in text and text.count("\n") == 0, f"{what}: {text}"
            assert text.endswith(("copy.", "skmixdp that wrote it.", "of its own.", "local disk.")), text
            refused += 1
        else:
            assert said == right, f"{what} changes what the ledger says"
            harmless += 1
    return refused, harmless


def flipped(places, folder):
    """What becomes of a ledger with one flipped bit."""
    whole = ledger_bytes(folder)
    right = what_it_says(folder / "whole.sqlite")
    page = int.from_bytes(whole[16:18], "big")
    rng = random.Random(places)
    starts = [8 * start + rng.randrange(64) for start in range(0, len(whole), page)]  # headers of pages
    header = [rng.randrange(100 * 8) for _ in range(places // 8)]
    rest = places - len(starts) - len(header)
    bits = [*starts, *header, *(rng.randrange(8 * len(whole)) for _ in range(rest))]

    def contents():
        for bit in bits:
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            yield f"bit {bit}", bytes(damaged)

    return outcomes(contents(), right, folder)


@pytest.mark.parametrize("places", [200, pytest.param(800, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_what_a_ledger_says(tmp_path, places):
    refused, harmless = flipped(places, tmp_path)
    assert refused + harmless == places and refused > places / 4 and harmless > 20


def test_what_is_cut_or_torn_is_refused(tmp_path):
    """A copy that ends early, and one of which a page is that of an earlier copy."""
    whole = ledger_bytes(tmp_path)
    path = tmp_path / "whole.sqlite"
    what_it_says(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    later, right = path.read_bytes(), what_it_says(path)
    page = int.from_bytes(whole[16:18], "big")
    changed = [i for i in range(0, len(whole), page) if whole[i : i + page] != later[i : i + page]]
    torn = [(f"page {i}", later[:i] + whole[i : i + page] + later[i + page :]) for i in changed]
    cut = [(f"{n} bytes less", later[:-n]) for n in (1, page, 3 * page, len(later) - page)]
    refused, _ = outcomes([*torn, *cut], right, tmp_path)
    assert refused >= len(cut) + 3


@pytest.fixture
def locked(tmp_path):
    """A ledger that another program has locked, for reading too."""
    path = tmp_path / "ledger.sqlite"
    people = PrivacyLedger(path).add_dataset("people", epsilon=3.0, delta=1e-5)
    people.charge(EVENT, neighboring=RELATION)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield people, other


def test_a_wait_for_another_program_is_said_once(locked, monkeypatch):
    people, other = locked
    monkeypatch.setattr(_store, "_SILENCE", 0.0)
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 50:
            other.execute("ROLLBACK")

    monkeypatch.setattr(_store.time, "sleep", pause)
    with pytest.warns(UserWarning, match=r"^the ledger .*\.sqlite is locked by another program") as said:
        people.charge(EVENT, neighboring=RELATION)
    assert len(said) == 1 and len(pauses) == 50 and len(people.charges()) == 2
    # No attempt waits longer than earlier ones: whoever comes last is not preferred.
    assert min(pauses) >= 0 and max(pauses) <= _store._PAUSE and len(set(pauses)) > 40


def test_a_short_wait_is_silent(locked):
    people, other = locked
    timer = threading.Timer(0.05, lambda: other.execute("ROLLBACK"))
    timer.start()
    with warnings.catch_warnings(action="error"):
        people.charge(EVENT, neighboring=RELATION)
    timer.join()
    assert len(people.charges()) == 2


def test_a_warning_that_is_an_error_charges_nothing_and_loses_no_outcome(locked, monkeypatch):
    people, other = locked
    (charge,) = people.charges()
    monkeypatch.setattr(_store, "_SILENCE", 0.0)
    monkeypatch.setattr(_store, "_PATIENCE", 0.05)
    with warnings.catch_warnings(action="error"):
        with pytest.raises(UserWarning, match="is locked by another program"):
            people.charge(EVENT, neighboring=RELATION)
        with recorded_outcome(people, charge):
            pass
    other.execute("ROLLBACK")
    assert [charge.outcome for charge in people.charges()] == ["open"]


def test_patience_ends_in_a_sentence(locked, monkeypatch):
    people, _ = locked
    monkeypatch.setattr(_store, "_PATIENCE", 0.05)
    with pytest.raises(OSError, match=r"ledger\.sqlite cannot be used \(database is locked\)"):
        people.charge(EVENT, neighboring=RELATION)


def test_charges_whose_data_set_has_gone_are_refused(tmp_path):
    ledger_bytes(tmp_path)
    path = tmp_path / "whole.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM accounts WHERE dataset = 'visits'")
        connection.commit()
    with pytest.raises((ValueError, OSError), match=r"whole\.sqlite"):
        PrivacyLedger(path).report()
