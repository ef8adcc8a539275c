"""Events and accounts with numbers that make no sense: refused when made and when read back."""

import json
import math
import re
import sqlite3
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyLedger, SelectionEvent, event_from_json, event_to_json
from tests.private_names import Account, _sql

ADD = "add_or_remove_one"

GOOD = {
    GaussianEvent: {"noise_multiplier": 30.0, "n_steps": 5, "sampling_rate": 1.0, "noise": "float"},
    ModelMixEvent: {
        "noise_multiplier": 30.0,
        "n_steps": 5,
        "sampling_rate": 1.0,
        "noise": "float",
        "width": 90.0,
        "linf_split": 4,
        "conversion": "tight",
    },
    SelectionEvent: {"noise_multiplier": 30.0, "mean": 4.0, "noise": "float"},
}

#: No number of any kind.
NOT_NUMBERS = [
    *(None, True, np.True_, "1", "", b"1", [1.0], np.ones(1)),
    *(1j, Decimal(1), float, math.nan, np.nan),
]
POSITIVE = [
    *(*NOT_NUMBERS, 0, 0.0, -0.0, -1, -1e-300, math.inf, -math.inf),
    *(np.float32(0), np.int64(-3), 10**400),
]
MULTIPLIER = [*POSITIVE, 9e-121, 1.1e120]
COUNT = [*POSITIVE, 0.5, 1.0, np.float64(2.0), 2**53 + 1]
RATE = [*POSITIVE, 1.0000001, 2]
WORD = [None, True, 3, "", "Float", "float ", "laplace", ["float"], np.array(["float"])]

BAD = {
    "noise_multiplier": MULTIPLIER,
    "n_steps": COUNT,
    "sampling_rate": RATE,
    "noise": WORD,
    "width": POSITIVE,
    "linf_split": COUNT,
    "conversion": WORD,
    "mean": [*POSITIVE, 0.999, 1.1e6],
}


EVERY_FIELD = pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, good in GOOD.items() for name in good]
)


@EVERY_FIELD
def test_a_field_outside_its_range_makes_no_event(kind, name):
    for value in BAD[name]:
        with pytest.raises(ValueError, match=rf"^{name}=.* must .*\.$") as caught:
            kind(**{**GOOD[kind], name: value})
        assert "\n" not in str(caught.value).replace(repr(value), ""), value


@EVERY_FIELD
def test_nothing_is_charged_for_an_event_that_was_tampered_with(kind, name):
    """A pickle or ``object.__setattr__`` passes by the checks; a ledger must not be fooled, nor crash."""
    ledger = PrivacyLedger(":memory:").add_dataset("a", epsilon=1e6, delta=1e-5)
    for value in BAD[name]:
        if isinstance(value, np.ndarray):
            continue  # an array of one number is kept as that number
        event = kind(**GOOD[kind])
        object.__setattr__(event, name, value)
        with pytest.raises((ValueError, TypeError)):
            ledger.charge(event, neighboring=ADD)
        assert ledger.account.n_charges == 0 and ledger.charges() == [], value


@EVERY_FIELD
def test_a_bad_field_in_a_record_is_refused(kind, name):
    record = json.loads(event_to_json(kind(**GOOD[kind])))
    for value in BAD[name]:
        if isinstance(value, (int, float, str, list, type(None))):
            text = json.dumps({**record, "values": {**record["values"], name: value}})
            with pytest.raises(ValueError, match=rf"record of an event is damaged .*{name}="):
                event_from_json(text)


@pytest.mark.parametrize("kind", GOOD)
def test_numbers_of_other_kinds_are_taken_for_what_they_are(kind):
    good = kind(**GOOD[kind])
    for of in (
        {float: np.float64, int: np.int64},
        {float: np.float32, int: np.uint8},
        {float: Fraction, int: int},
        {float: np.int16, int: np.int16},
    ):
        other = kind(**{name: of.get(type(value), str)(value) for name, value in GOOD[kind].items()})
        assert other == good and hash(other) == hash(good) and repr(other) == repr(good)
        assert event_to_json(other) == event_to_json(good)
        assert event_from_json(event_to_json(other)) == good


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(1e-120, 1),
        GaussianEvent(1e-120, 2**53),
        GaussianEvent(1e-120, 2**53, 0.5),
        GaussianEvent(1e-120, 3, noise="discrete"),
        ModelMixEvent(1e-120, 3, width=1e300),
        ModelMixEvent(1e-120, 2**53, width=1e-300, linf_split=2**53),
        SelectionEvent(1e-120, 1e6),
    ],
)
def test_next_to_no_noise_costs_more_than_any_budget(event):
    ledger = PrivacyLedger(":memory:").add_dataset("a", epsilon=1e6, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.charge(event, neighboring=ADD)
    assert ledger.charges() == []


@pytest.mark.parametrize("composition", ["gaussian", "renyi"])
def test_next_to_no_cost_is_charged_too(composition):
    ledger = PrivacyLedger(":memory:").add_dataset("a", epsilon=1.0, delta=1e-5, composition=composition)
    events = [GaussianEvent(1e120, 1), GaussianEvent(1e120, 1, 1e-300), ModelMixEvent(1e120, 1, width=1.0)]
    totals = [0.0]
    for event in events:
        ledger.charge(event, neighboring=ADD)
        totals.append(ledger.account.total)
    assert np.all(np.diff(totals) > 0)


@pytest.mark.parametrize("composition", ["gaussian", "renyi"])
def test_no_number_of_small_charges_is_lost_in_a_sum(composition):
    account = Account("a", 3.0, 1e-5, composition=composition).after(GaussianEvent(2.0, 1), ADD)
    after = account.after(GaussianEvent(1e20, 1), ADD)
    assert after.total > account.total
    assert all(more > less for more, less in zip(after.divergences, account.divergences, strict=True))


# -- damaged ledgers -----------------------------------------------------------------------


@pytest.fixture
def charged(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(path)
    for name, noise in (("a", "float"), ("r", "discrete")):
        data_set = ledger.add_dataset(name, epsilon=3.0, delta=1e-5)
        data_set.charge(GaussianEvent(30.0, 5, noise=noise), neighboring=ADD)
    return ledger


def damage(ledger, table, column, value, dataset="a", *, sealed=True):
    """Change a cell; ``sealed`` writes a checksum that matches, so that other checks are reached."""
    with sqlite3.connect(ledger.path) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE dataset = ?', (value, dataset))
        if sealed:
            _sql._seal(connection, table, "dataset", dataset)
    connection.close()


COLUMNS = [
    (table, column)
    for table, n_columns in (("accounts", 16), ("charges", 12))
    for column in re.findall(r"^    \"?(\w+)", _sql.TABLES.split(f"CREATE TABLE {table}")[1], re.MULTILINE)[
        :n_columns
    ]
]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_every_changed_cell_is_refused(charged, table, column):
    actions = (charged.report,) if column == "dataset" else (charged["a"].charges, charged.report)
    damage(charged, table, column, 5, sealed=False)
    for action in actions:
        with pytest.raises(ValueError, match=r"^the ledger .*\.sqlite is damaged \(.*; restore the file"):
            action()


@pytest.mark.parametrize("what", ["count", "sum", "spent"])
def test_sums_of_an_account_are_those_of_its_charges(charged, what):
    """As if a part of the file was that of an earlier copy."""
    before = charged["a"].account
    charged["a"].charge(GaussianEvent(90.0, 1), neighboring=ADD)
    now = charged["a"].account
    torn = {"count": {"n_charges": 1}, "sum": {"total": before.total}, "spent": {"spent": before.spent}}[what]
    for column, value in torn.items():
        damage(charged, "accounts", column, value)
    if what == "spent":  # no charge is made on old sums
        with pytest.raises(ValueError, match="what it spent is not what its last charge says"):
            charged["a"].charge(GaussianEvent(90.0, 1), neighboring=ADD)
    else:
        assert charged["a"].account == replace(now, **torn)
    with pytest.raises(ValueError, match=f"damaged .*{'spent' if what == 'spent' else 'count or sum'}"):
        charged.report()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *[("epsilon", value) for value in (0.0, -1.0, math.inf, "much")],
        *[("delta", value) for value in (0.0, 1.0, -1.0, "some")],
        *[("neighboring", value) for value in ("", "both", None, 3)],
        *[("composition", value) for value in ("", "pld", None, 3)],
        *[("order", value) for value in (0.0, -2.0, 1.05, math.inf, 2.0, "two")],
        *[("total", value) for value in (-1e-9, -math.inf, "none")],
        *[("spent", value) for value in (-1.0, "none")],
        *[("n_charges", value) for value in (-1, "one")],
        *[("divergences", value) for value in ("", "[1, 2]", "3", "{", "null", '["a"]')],
    ],
)
def test_a_damaged_account_is_refused_and_not_charged(charged, column, value):
    data_set, other = charged["a"], charged["r"]
    damage(charged, "accounts", column, value)
    for action in (
        lambda: data_set.charge(GaussianEvent(300.0, 1), neighboring=ADD),
        lambda: charged["a"],
        lambda: charged.report(),
    ):
        with pytest.raises(ValueError, match=r"is damaged \(the account of dataset='a': "):
            action()
    assert [charge.id for charge in other.charges()] == [2]


@pytest.mark.parametrize(
    "divergences", [json.dumps([-1.0] * 165), json.dumps([math.nan] * 165), json.dumps([0.1] * 164)]
)
def test_damaged_divergences_are_refused(charged, divergences):
    damage(charged, "accounts", "divergences", divergences, "r")
    with pytest.raises(ValueError, match=r"damaged \(the account of dataset='r': div"):
        charged["r"]


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("time", "yesterday", r"sqlite is damaged \(charge 1: "),
        ("event", "", "record of an event is damaged"),
        ("event", "3", "record of an event is damaged"),
        ("event", "[" * 100_000, "record of an event is damaged"),
        ("event", '{"values": {}}', "record of an event is damaged"),
        ("event", '{"kind": "gaussian"}', "record of an event is damaged"),
        ("event", '{"kind": ["gaussian"], "values": {}}', "record of an event is damaged"),
        ("event", '{"kind": "gaussian", "values": []}', "record of an event is damaged"),
        ("event", '{"kind": "gaussian", "values": {"n_steps": 3}}', "record of an event is damaged"),
        (
            "event",
            '{"kind": "gaussian", "values": {"noise_multiplier": 0, "n_steps": 3}}',
            "noise_multiplier=0",
        ),
        ("event", '{"kind": "laplace", "values": {}}', "the event kind 'laplace' is unknown here; import"),
    ],
)
def test_a_damaged_charge_is_refused(charged, column, value, match):
    damage(charged, "charges", column, value)
    for action in (charged["a"].charges, charged.report):
        with pytest.raises(ValueError, match=match):
            action()
    assert len(charged["r"].charges()) == 1


def test_an_account_as_it_is_passes():
    account = Account("a", 1.0, 1e-5).after(GaussianEvent(30.0, 5), ADD)
    assert replace(account) == account


def test_what_modelmix_adds_to_a_gaussian_event_is_named():
    with pytest.raises(TypeError):
        ModelMixEvent(30.0, 5, 1.0, "float", 4, width=90.0)
    assert ModelMixEvent(30.0, 5, width=90.0).linf_split == 1
