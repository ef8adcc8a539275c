"""Budgets, charges, refusals and files of the ledger, in one process."""

import copy
import csv
import io
import json
import math
import pickle
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from xml.etree import ElementTree

import numpy as np
import pytest
from markupsafe import escape
from sklearn.base import clone

from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import (
    GaussianEvent,
    PrivacyLedger,
    epsilon_of,
    epsilon_of_event,
    rdp_of_event,
    recorded_outcome,
    register_event,
)
from skmixdp.privacy.accounting.gaussian import ORDERS, epsilon_of_rdp
from tests.private_names import Account, dotted_path
from tests.private_names import _account as account
from tests.private_names import _records as records
from tests.private_names import _store as store

ADD, REPLACE = "add_or_remove_one", "replace_one"
FULL, SAMPLED = GaussianEvent(30.0, 5), GaussianEvent(3.0, 5, 0.05)
DISCRETE, MIXED = GaussianEvent(40.0, 5, noise="discrete"), ModelMixEvent(30.0, 5, width=90.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture(params=["file", "memory"])
def ledger(request, path):
    return PrivacyLedger(path if request.param == "file" else ":memory:")


def charge(ledger, event=FULL, dataset="a", neighboring=ADD, **options):
    """Charge a data set, which is added where it is not there yet."""
    if dataset not in ledger:
        ledger.add_dataset(dataset, epsilon=3.0, delta=1e-5)
    return ledger[dataset].charge(event, neighboring=neighboring, **options)


# -- charging ------------------------------------------------------------------------------


def test_a_charge_is_recorded_with_what_is_spent(ledger):
    before = datetime.now(UTC)
    first = charge(ledger, description="words", neighboring=REPLACE)
    second = charge(ledger, GaussianEvent(40.0, 3), neighboring=REPLACE)
    assert before <= first.time <= second.time < before + timedelta(minutes=1)
    assert list(ledger.report().charges) == ledger["a"].charges() == [first, second]
    assert (first.id, first.dataset, first.event, first.description) == (1, "a", FULL, "words")
    assert (first.budget, first.delta, first.private) == (3.0, 1e-5, True)
    assert first.spent == pytest.approx(epsilon_of(30.0, 5, delta=1e-5, neighboring=REPLACE))
    mu = 2 * math.sqrt(5 / 30**2 + 3 / 40**2)
    assert ledger["a"].spent == second.spent == pytest.approx(epsilon_of(1 / mu, 1, delta=1e-5))


def test_what_remains_is_the_largest_full_batch_that_fits(ledger):
    ledger.add_dataset("new", epsilon=1.5, delta=1e-6)
    assert (ledger["new"].spent, ledger["new"].remaining) == (0, 1.5)
    for dataset, event in (("g", FULL), ("r", DISCRETE)):
        charge(ledger, event, dataset)
        low, high = 1e-3, 1e3
        while high - low > 1e-9 * low:  # the least noise multiplier that still fits
            middle = math.sqrt(low * high)
            try:
                ledger[dataset].account.after(GaussianEvent(middle, 1), ADD)
                high = middle
            except BudgetExceededError:
                low = middle
        assert ledger[dataset].remaining == pytest.approx(epsilon_of(high, 1, delta=1e-5), rel=1e-6)


@pytest.mark.untraced
def test_over_budget_is_refused_and_nothing_is_recorded(ledger):
    while True:
        before = ledger.report()
        try:
            charge(ledger)
        except BudgetExceededError as error:
            message = str(error)
            break
    assert ledger.report() == before
    assert epsilon_of(30.0, 5 * len(before.charges), delta=1e-5) <= 3.0
    assert epsilon_of(30.0, 5 * (len(before.charges) + 1), delta=1e-5) > 3.0
    left, alone = f"{ledger['a'].remaining:.4g}", f"{epsilon_of(30.0, 5, delta=1e-5):.4g}"
    assert message == (
        f"dataset='a' has {left} left of epsilon=3 at delta=1e-05, and this charge alone costs {alone}; "
        "use a smaller epsilon, or private rows of other people."
    )
    charge(ledger, dataset="b")  # other data sets are not concerned


@pytest.mark.parametrize("event", [DISCRETE, MIXED, GaussianEvent(1.0, 10, 0.02)])
def test_a_sum_of_gaussian_dp_says_what_fits_it_badly(ledger, event):
    ledger.add_dataset("b", epsilon=0.1, delta=1e-5, composition="gaussian")
    charge(ledger, GaussianEvent(200.0, 1), "b")
    with pytest.raises(BudgetExceededError, match="composition='renyi' before their first charge"):
        charge(ledger, event, "b")


@pytest.mark.parametrize("events", [[FULL, FULL, SAMPLED], [DISCRETE, FULL, SAMPLED, MIXED, DISCRETE]])
@pytest.mark.parametrize("neighboring", [ADD, REPLACE])
@pytest.mark.untraced
def test_running_sums_are_those_of_the_charges(ledger, events, neighboring):
    ledger.add_dataset("a", epsilon=20.0, delta=1e-6)
    for event in events:
        charge(ledger, event, neighboring=neighboring, private=event is not FULL)
    fresh = Account("a", 20.0, 1e-6)
    again = reduce(lambda a, c: a.after(c.event, neighboring, c.private), ledger["a"].charges(), fresh)
    assert again == ledger["a"].account
    assert again.spent == ledger.report().charges[-1].spent and not again.private


def test_no_budget_lasts_for_ever(ledger):
    """Every charge counts for the next one, also before anybody reads them."""
    data = ledger.add_dataset("b", epsilon=1.0, delta=1e-5)

    def spend():
        for _ in range(50):
            data.charge(FULL, neighboring=ADD)

    with pytest.raises(BudgetExceededError):
        spend()


def test_a_single_charge_costs_what_its_own_accountant_says(ledger):
    found = charge(ledger, SAMPLED)
    own = epsilon_of(3.0, 5, delta=1e-5, sampling_rate=0.05)
    assert found.spent == own
    assert charge(ledger, SAMPLED).spent > epsilon_of(3.0, 10, delta=1e-5, sampling_rate=0.05)


def test_what_no_sum_can_hold_may_be_charged_once(ledger):
    ledger.add_dataset("a", epsilon=3.0, delta=1e-5, composition="gaussian")
    assert charge(ledger, DISCRETE).spent < 3
    assert (ledger["a"].account.total, ledger["a"].remaining) == (math.inf, 0)
    with pytest.raises(BudgetExceededError, match="has 0 left"):
        charge(ledger, GaussianEvent(1e6, 1))


def test_seeded_noise_is_charged_and_voids_the_guarantee(ledger):
    charge(ledger, private=False)
    charge(ledger)
    assert [c.private for c in ledger.report().charges] == [False, True]
    assert not ledger["a"].account.private
    first = "NO GUARANTEE: the noise comes from a seed (charged to 'a')"
    report = ledger.report()
    assert str(report).splitlines()[0] == report.to_dict()["no_guarantee"] == first
    assert ledger.no_guarantee == ledger["a"].no_guarantee == first
    assert report._repr_html_().startswith(f"<p><b>{escape(first)}")
    assert f"{escape(first)}" in report.to_html()
    assert ledger.report().to_dict()["datasets"][0]["private"] is False


# -- data sets -----------------------------------------------------------------------------


def test_adding_the_same_data_set_again_changes_nothing(ledger):
    for _ in range(2):
        ledger.add_dataset("b", epsilon=1, delta=1e-6, neighboring=REPLACE, composition="renyi")
        charge(ledger, DISCRETE, "b", REPLACE)
    assert ledger["b"].account.n_charges == 2
    ledger.add_dataset("b", epsilon=1.0, delta=1e-6)
    for other in ({"epsilon": 2}, {"delta": 1e-7}, {"neighboring": ADD}, {"composition": "gaussian"}):
        with pytest.raises(ValueError, match=f"^{next(iter(other))}=.*a budget never changes"):
            ledger.add_dataset("b", **({"epsilon": 1, "delta": 1e-6} | other))


@pytest.mark.parametrize("added", [True, False])
def test_one_relation_per_data_set(ledger, added):
    if added:
        ledger.add_dataset("a", epsilon=1.0, delta=1e-5, neighboring=ADD)
    else:
        charge(ledger)
    with pytest.raises(ValueError, match=r"'replace_one' is not the relation of .*'a', whose .*'add_or"):
        charge(ledger, neighboring=REPLACE)


def test_zeroing_out_and_adding_or_removing_are_one_relation(ledger):
    ledger.add_dataset("a", epsilon=3.0, delta=1e-5, neighboring="zero_out")
    for neighboring in (ADD, "zero_out"):
        charge(ledger, neighboring=neighboring)
        ledger.add_dataset("a", epsilon=3.0, delta=1e-5, neighboring=neighboring)
    assert ledger["a"].account.neighboring == ADD
    with pytest.raises(ValueError, match="'replace_one' is not the relation"):
        charge(ledger, neighboring=REPLACE)


def test_a_name_that_was_not_added_is_an_error_and_opens_no_budget(ledger):
    with pytest.raises(KeyError, match=r"is not in PrivacyLedger\(.*\), which has no data set yet; use one"):
        ledger["patients"]
    ledger.add_dataset("patients", epsilon=1, delta=1e-5)
    ledger.add_dataset("visits", epsilon=1, delta=1e-5)
    for name in ("pateints", "", None, 3):
        with pytest.raises(
            ValueError, match=r"^dataset=.* not in .*, which has 'patients', 'visits'; .*add_dataset\("
        ):
            ledger[name]
    assert list(ledger) == ["patients", "visits"]


def test_a_data_set_can_vanish_with_its_file(path):
    data_set = PrivacyLedger(path).add_dataset("a", epsilon=1, delta=1e-5)
    for file in path.parent.iterdir():
        file.unlink()
    PrivacyLedger(path)
    for ask in (lambda: data_set.charge(FULL, neighboring=ADD), lambda: data_set.spent):
        with pytest.raises(KeyError, match="dataset='a' is not in PrivacyLedger"):
            ask()


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"epsilon": 0}, "epsilon=0 must be a positive"),
        ({"epsilon": "1"}, "epsilon='1' must be a positive"),
        ({"delta": 1.0}, "delta=1.0 must be a number strictly"),
        ({"name": ""}, "name='' must be a string"),
        ({"name": 3}, "name=3 must be a string"),
        ({"neighboring": "both"}, "neighboring='both' must be 'add_or_remove_one', .* or None"),
        ({"composition": "pld"}, "composition='pld' must be 'gaussian', 'renyi' or None"),
    ],
)
def test_bad_data_sets_are_refused(ledger, bad, match):
    with pytest.raises(ValueError, match=match):
        ledger.add_dataset(**({"name": "a", "epsilon": 1.0, "delta": 1e-5} | bad))
    assert ledger.report().accounts == ()


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        ({"neighboring": "both"}, ValueError, "neighboring='both' must be one of 'add_or_remove_one'"),
        ({"neighboring": "both", "event": MIXED}, ValueError, "neighboring='both'"),
        ({"event": "fit"}, TypeError, "no ledger can keep the event 'fit'"),
        ({"description": 3}, ValueError, "description=3 must be a string"),
    ],
)
def test_bad_charges_are_refused(ledger, bad, error, match):
    with pytest.raises(error, match=match):
        charge(ledger, **bad)
    assert ledger.report().charges == ()


# -- reports -------------------------------------------------------------------------------


def test_report(ledger):
    ledger.add_dataset("<b>", epsilon=1.0, delta=1e-6, composition="renyi")
    ledger.add_dataset("c", epsilon=1.0, delta=1e-6)
    charge(ledger)
    charge(ledger, SAMPLED, "s")
    report = ledger.report()
    lines = str(report).splitlines()
    assert (
        lines[0] == "Privacy ledger"
        and len(lines) == 6
        and lines[1].split()[:4] == ["data", "set", "spent", "budget"]
    )
    assert [line.split()[0] for line in lines[2:]] == ["<b>", "c", "a", "s"]
    assert lines[2].endswith("Renyi divergences") and lines[3].endswith("by the first charge")
    assert lines[4].endswith("Gaussian DP") and "Renyi divergences of order" in lines[5]
    assert "<td style='text-align:left'>&lt;b&gt;</td>" in report._repr_html_()
    data = json.loads(report.to_json())
    assert data == report.to_dict()
    assert data["datasets"][2]["spent"] == ledger["a"].spent == data["charges"][0]["spent"]
    assert data["charges"][1]["event"]["values"]["sampling_rate"] == 0.05
    assert datetime.fromisoformat(data["charges"][0]["time"]) == report.charges[0].time


# -- copies and files ----------------------------------------------------------------------


def test_copies_and_clones_are_the_ledger_itself(ledger):
    assert copy.copy(ledger) is copy.deepcopy(ledger) is clone(ledger, safe=False) is ledger
    assert copy.deepcopy({"ledger": [ledger]})["ledger"][0] is ledger
    data_set = ledger.add_dataset("a", epsilon=1, delta=1e-3)
    assert copy.copy(data_set) is copy.deepcopy(data_set) is clone(data_set, safe=False) is data_set
    assert data_set == ledger["a"] != ledger.add_dataset("b", epsilon=1, delta=1e-3)


def test_repr_says_where_it_is(path):
    assert repr(PrivacyLedger(path)) == f"PrivacyLedger({str(path)!r})"
    assert repr(PrivacyLedger(":memory:")) == "PrivacyLedger(':memory:')"
    data_set = PrivacyLedger(path).add_dataset("a", epsilon=1, delta=1e-3)
    assert repr(data_set) == f"PrivacyLedger({str(path)!r})['a']"


def test_pickles_carry_the_absolute_path(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    ledger = PrivacyLedger(path.name)
    pickled = pickle.dumps(ledger)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    charge(pickle.loads(pickled))
    charge(ledger)
    assert pickle.loads(pickle.dumps(ledger["a"])).charges() == ledger["a"].charges()
    assert ledger.path == path and len(ledger["a"].charges()) == 2


def test_unpickling_makes_no_file_and_a_vanished_one_is_said(path):
    ledger = PrivacyLedger(path)
    pickled = pickle.dumps(ledger)
    charge(ledger)
    for file in path.parent.iterdir():
        file.unlink()
    again = pickle.loads(pickled)
    for gone in (again, ledger):
        with pytest.raises(FileNotFoundError, match=r"ledger\.sqlite does not exist; restore the file"):
            charge(gone)
    assert list(path.parent.iterdir()) == []


def test_a_file_in_the_place_of_another_is_charged_and_not_the_other(path):
    ledger = PrivacyLedger(path)
    charge(ledger)
    charge(ledger)
    path.rename(path.with_name("old.sqlite"))
    for name in ("-wal", "-shm"):
        path.with_name(path.name + name).rename(path.with_name("old.sqlite" + name))
    PrivacyLedger(path)
    charge(ledger)
    assert len(ledger.report().charges) == 1
    assert len(PrivacyLedger(path.with_name("old.sqlite")).report().charges) == 2


def test_a_ledger_in_memory_stays_in_its_process(monkeypatch):
    ledger = PrivacyLedger(":memory:")
    with pytest.raises(TypeError, match=r"in memory cannot be pickled.*give PrivacyLedger a file"):
        pickle.dumps(ledger)
    monkeypatch.setattr(store.os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="from another process; give PrivacyLedger a file"):
        charge(ledger)


def test_a_connection_is_neither_used_nor_closed_after_a_fork(path, monkeypatch):
    ledger = PrivacyLedger(path)
    charge(ledger)
    parents = ledger._store._local.opened.connection
    with monkeypatch.context() as child:
        child.setattr(store.os, "getpid", lambda: -1)
        charge(ledger)
        assert ledger._store._local.opened.connection is not parents
        assert store._inherited[-1] is parents
        parents.execute("SELECT 1")  # still open
    charge(ledger)
    assert len(ledger.report().charges) == 3


@pytest.mark.untraced
def test_threads_share_a_ledger(ledger):
    def work():
        for _ in range(20):
            charge(ledger, GaussianEvent(300.0, 1))

    with ThreadPoolExecutor(8) as pool:
        assert [each.result() for each in [pool.submit(work) for _ in range(8)]] == [None] * 8
    assert [c.id for c in ledger.report().charges] == list(range(1, 161))
    assert ledger["a"].spent == pytest.approx(epsilon_of(300.0, 160, delta=1e-5))


def test_an_error_within_a_transaction_leaves_nothing_behind(ledger, monkeypatch):
    charge(ledger)
    before = ledger.report()
    for where in ("write_account", "add_charge"):
        with monkeypatch.context() as broken:
            broken.setattr(dotted_path(f"ledger_module.{where}"), lambda *args, **named: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                charge(ledger)
        assert ledger.report() == before
    charge(ledger)
    assert len(ledger.report().charges) == 2


def test_what_takes_time_is_computed_before_the_lock_is_taken(path, monkeypatch):
    ledger = PrivacyLedger(path)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    computed, real = [], account.epsilon_of_event

    def slow(*args):
        other.execute("BEGIN IMMEDIATE")  # fails where a charge holds the lock
        other.execute("ROLLBACK")
        computed.append(args)
        return real(*args)

    monkeypatch.setattr(account, "epsilon_of_event", slow)
    account.single_epsilon.cache_clear()
    charge(ledger, SAMPLED)
    other.close()
    assert len(computed) == 1


def test_files_of_something_else_are_refused(path):
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(ValueError, match=r"is not a ledger, or is damaged .*file of its own"):
        PrivacyLedger(path)
    assert path.read_bytes() == b"not a database" * 100
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    with pytest.raises(ValueError, match="is a database of something else"):
        PrivacyLedger(path)


def test_a_ledger_of_another_version_is_refused(path):
    ledger = PrivacyLedger(path)
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 7")
    other.close()
    for use in (lambda: PrivacyLedger(path), lambda: charge(ledger)):
        with pytest.raises(ValueError, match="of version 7 and this skmixdp knows version 6"):
            use()


def test_a_folder_that_is_missing_is_said(path):
    with pytest.raises(OSError, match=r"cannot be used .*check that its folder exists"):
        PrivacyLedger(path / "deeper")


def test_an_empty_file_with_any_characters_in_its_path_becomes_a_ledger(tmp_path):
    path = tmp_path / "a b?c#d%20é.sqlite"
    path.touch()
    charge(PrivacyLedger(str(path)))
    assert len(PrivacyLedger(path).report().charges) == 1 and path.stat().st_size > 0


# -- other kinds of events -----------------------------------------------------------------


@pytest.fixture
def pure(monkeypatch):
    """A kind of event that is epsilon-DP, from another module."""
    monkeypatch.setattr(records, "_KINDS", dict(records._KINDS))

    @register_event("pure")
    @dataclass(frozen=True)
    class Pure:
        epsilon: float

    @rdp_of_event.register
    def _(event: Pure, orders, neighboring):
        return np.minimum(event.epsilon, orders * event.epsilon**2 / 2)

    @epsilon_of_event.register
    def _(event: Pure, delta, neighboring):
        return event.epsilon

    return Pure


def test_an_event_of_another_module_composes_with_the_others(ledger, pure):
    charge(ledger, pure(0.1))
    assert ledger["a"].spent == 0.1
    charge(ledger, FULL)
    assert ledger.report().charges[0].event == pure(0.1)
    divergences = rdp_of_event(pure(0.1), ORDERS, ADD) + rdp_of_event(FULL, ORDERS, ADD)
    assert ledger["a"].spent == pytest.approx(epsilon_of_rdp(divergences, 1e-5, ORDERS))
    charge(ledger, FULL, "b")  # it has no Gaussian DP, which full batches begin with
    with pytest.raises(BudgetExceededError, match="composition='renyi' before their first charge"):
        charge(ledger, pure(0.1), "b")


def test_reading_does_not_wait_for_a_writer(path, monkeypatch):
    monkeypatch.setattr(store, "_PATIENCE", 0.05)
    ledger = PrivacyLedger(path)
    charge(ledger)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert ledger["a"].account.spent == ledger["a"].spent
        assert ledger["a"].remaining > 0 and ledger["a"].charges() == list(ledger.report().charges)
        with pytest.raises(OSError, match="cannot be used"):
            charge(ledger)
    finally:
        writer.execute("ROLLBACK")
        writer.close()


# -- outcomes and exports --------------------------------------------------------------------


def test_a_charge_names_its_user_and_is_open_at_first(ledger, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    assert (charge(ledger).user, charge(ledger).outcome) == ("ada", "open")

    def nobody():
        raise OSError("no list of users")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert charge(ledger).user == ""


def test_an_outcome_is_recorded_and_replaced(ledger):
    first, second = charge(ledger), charge(ledger)
    spent = ledger["a"].spent
    ledger["a"]._record_outcome(first, "failed: ValueError")
    ledger["a"]._record_outcome(second, "failed: ValueError")
    ledger["a"]._record_outcome(second, "finished")
    assert [entry.outcome for entry in ledger["a"].charges()] == ["failed: ValueError", "finished"]
    assert ledger["a"].spent == spent


@pytest.mark.parametrize("outcome", ["", "lost", "failed", None, 1])
def test_bad_outcomes_are_refused(ledger, outcome):
    made = charge(ledger)
    with pytest.raises(ValueError, match="outcome="):
        ledger["a"]._record_outcome(made, outcome)


def test_an_outcome_of_no_charge_is_refused(ledger):
    made = charge(ledger)
    charge(ledger, dataset="b")
    with pytest.raises(ValueError, match=r"charge 7 to 'a' is not in"):
        ledger["a"]._record_outcome(replace(made, id=7), "finished")
    with pytest.raises(ValueError, match=r"charge 1 to 'b' is not in"):
        ledger["b"]._record_outcome(replace(made, dataset="b"), "finished")


def test_the_block_of_a_charge_decides_its_outcome(ledger):
    first, second, third = charge(ledger), charge(ledger), charge(ledger)
    with recorded_outcome(ledger["a"], first):
        pass
    for made, error in ((second, ZeroDivisionError), (third, KeyboardInterrupt)):
        with pytest.raises(error), recorded_outcome(ledger["a"], made):
            raise error("a message with private rows")
    outcomes = [entry.outcome for entry in ledger["a"].charges()]
    assert outcomes == ["finished", "failed: ValueError", "failed: KeyboardInterrupt"]


def test_an_outcome_that_cannot_be_recorded_stops_nothing(path):
    ledger = PrivacyLedger(path)
    made = charge(ledger)
    patients = ledger["a"]
    with recorded_outcome(patients, made):
        path.unlink()
    with recorded_outcome(None, None), recorded_outcome(object(), made):
        pass


def test_failures_are_in_the_report(ledger):
    made = charge(ledger, description="a <b>fit</b>")
    assert ledger.report().failed == ()
    assert "failed" not in str(ledger.report()) + ledger.report()._repr_html_()
    ledger["a"]._record_outcome(made, "failed: ValueError")
    report = ledger.report()
    assert report.failed == report.charges
    assert "charge 1 to 'a' (a <b>fit</b>) failed: ValueError; it counts in full" in str(report)
    assert "(a &lt;b&gt;fit&lt;/b&gt;) failed: ValueError" in report._repr_html_()
    assert report.to_dict()["charges"][0]["outcome"] == "failed: ValueError"


_NASTY = [
    *('<script>alert("x")</script>', "=HYPERLINK(1)", "+1", "-1", "@sum", "\t=1"),
    *('a "quoted", name\nof two lines', "'; DROP TABLE charges; --", "naïve 数据"),
]


@pytest.mark.parametrize("name", _NASTY)
def test_exports_escape_names(ledger, name, monkeypatch):
    monkeypatch.setenv("LOGNAME", name)
    made = charge(ledger, dataset=name, description=name)
    report = ledger.report()
    (row,) = csv.DictReader(io.StringIO(report.to_csv()))
    for column in ("dataset", "user", "description"):
        assert row[column].removeprefix("'") == name.removeprefix("'")
        assert row[column][0] not in "=+-@\t"
    assert float(row["spent"]) == made.spent
    assert json.loads(row["event"])["kind"] == "gaussian"
    page = report.to_html()
    assert page.count(str(escape(name))) >= 3
    assert "<script" not in page
    ElementTree.fromstring(page.split("\n", 1)[1])  # well formed


def test_the_csv_has_who_when_what_and_what_is_spent(ledger):
    charge(ledger, description="first")
    made = charge(ledger, DISCRETE, dataset="b", private=False, description="second")
    ledger["b"]._record_outcome(made, "finished")
    rows = list(csv.DictReader(io.StringIO(ledger.report().to_csv())))
    assert [row["description"] for row in rows] == ["first", "second; the noise comes from a seed"]
    assert [row["outcome"] for row in rows] == ["open", "finished"]
    assert [row["private"] for row in rows] == ["True", "False"]
    assert datetime.fromisoformat(rows[1]["time"]) == made.time
    assert [float(row["budget"]) for row in rows] == [3.0, 3.0]
    assert len(ledger["b"].report().to_csv().splitlines()) == 2


def test_a_ledger_records_steps_in_their_order_and_once(tmp_path):
    people = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("people", epsilon=3.0, delta=1e-5)
    first, second = (people.charge(GaussianEvent(20, 5), neighboring="zero_out") for _ in range(2))
    assert people._last_step(first) == 0
    for step, allowed in ((2, False), (1, True), (1, False), (0, False), (3, False), (2, True)):
        if allowed:
            people._record_step(first, step)
        else:
            with pytest.raises(
                RuntimeError, match=f"step {step} of charge 1 to 'people' is not the next one"
            ):
                people._record_step(first, step)
    assert (people._last_step(first), people._last_step(second)) == (2, 0)
    other = PrivacyLedger(":memory:").add_dataset("people", epsilon=3.0, delta=1e-5)
    assert other._last_step(first) == 0
    with pytest.raises(RuntimeError, match="another process goes on with this fit"):
        other._record_step(first, 1)
