"""Accounts and charges as rows of a ledger's tables."""

import json
from collections.abc import Callable
from dataclasses import astuple, fields
from datetime import datetime
from functools import cache
from sqlite3 import Connection, Row
from typing import Any

from ..._utils.validation import one_line, shown
from ._account import Account
from ._records import event_from_json, event_to_json
from ._report import Charge

TABLES = """
CREATE TABLE accounts (
    dataset TEXT PRIMARY KEY,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    neighboring TEXT,
    composition TEXT,
    "order" REAL,
    total REAL NOT NULL,
    divergences TEXT NOT NULL,
    spent REAL NOT NULL,
    n_charges INTEGER NOT NULL,
    private INTEGER NOT NULL,
    unit TEXT NOT NULL,
    others_epsilon REAL NOT NULL,
    others_delta REAL NOT NULL,
    others_spent_epsilon REAL NOT NULL,
    others_spent_delta REAL NOT NULL
);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL REFERENCES accounts (dataset),
    time TEXT NOT NULL,
    event TEXT NOT NULL,
    description TEXT NOT NULL,
    private INTEGER NOT NULL,
    spent REAL NOT NULL,
    user TEXT NOT NULL,
    purpose TEXT NOT NULL,
    outcome TEXT NOT NULL,
    steps INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX charges_of_dataset ON charges (dataset, id);
CREATE INDEX charges_by_outcome ON charges (outcome);
CREATE INDEX charges_without_guarantee ON charges (private) WHERE private = 0;
"""

_CHARGES = """
SELECT
    id, dataset, time, event, description, private, charges.spent, epsilon AS budget, delta, user, purpose,
    outcome
FROM charges JOIN (SELECT dataset, epsilon, delta FROM accounts) USING (dataset)
"""

#: The outcome of a charge without a recorded end.
OPEN = "open"

#: Outcome of a charge that was made before its release, until it is used.
RESERVED = "reserved"
#: Outcome of such a charge after it was taken back.
UNUSED = "taken back, since nothing was released"


def read_account(connection: Connection, dataset: str) -> Account | None:
    """The account of a data set; None if there is none."""
    row = connection.execute("SELECT * FROM accounts WHERE dataset = ?", (dataset,)).fetchone()
    return None if row is None else _account_of(row)


def read_accounts(connection: Connection) -> tuple[Account, ...]:
    """All accounts in the order in which they were made."""
    return tuple(map(_account_of, connection.execute("SELECT * FROM accounts ORDER BY rowid")))


def write_account(connection: Connection, account: Account) -> None:
    """Add an account, or replace the earlier one."""
    columns = [f'"{field.name}"' for field in fields(account)]
    values = [json.dumps(value) if isinstance(value, tuple) else value for value in astuple(account)]
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    connection.execute(
        f"INSERT INTO accounts ({', '.join(columns)}) VALUES ({', '.join('?' * len(values))}) "
        f"ON CONFLICT (dataset) DO UPDATE SET {changes}",
        values,
    )


def read_charges(
    connection: Connection, dataset: str | None = None, *, failed: bool = False
) -> tuple[Charge, ...]:
    """Charges in the order in which they were made, of one data set or of all.

    If ``failed``, only those that failed or have no guarantee.
    """
    query = f"{_CHARGES} WHERE dataset = coalesce(?, dataset)"
    if failed:  # a range, so that an index is used: texts that begin with "failed"
        query += " AND id IN (SELECT id FROM charges WHERE private = 0"
        query += " UNION SELECT id FROM charges WHERE outcome >= 'failed' AND outcome < 'failee')"
    # Most charges share a few events. The cache ends with the call, so that later charges share no objects.
    parse = cache(event_from_json)
    return tuple(_charge_of(row, parse) for row in connection.execute(f"{query} ORDER BY id", (dataset,)))


def read_charge(connection: Connection, number: int | None) -> Charge | None:
    """The charge of this number; None if there is none."""
    row = connection.execute(f"{_CHARGES} WHERE id = ?", (number,)).fetchone()
    return None if row is None else _charge_of(row, event_from_json)


def add_charge(connection: Connection, account: Account, event: object, **facts: object) -> Charge:
    """Record a charge and return it; ``account`` is the account after the charge.

    ``facts`` are the columns "time", "description", "private", "user" and "purpose".
    """
    values = {"dataset": account.dataset, "spent": account.spent, "event": event_to_json(event)}
    values |= {"outcome": OPEN, **facts}
    number = connection.execute(
        f"INSERT INTO charges ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
        tuple(values.values()),
    ).lastrowid
    charge = read_charge(connection, number)
    if charge is None:
        raise ValueError("a charge was lost as it was written; restore the ledger's file from a copy.")
    return charge


def write_outcome(connection: Connection, charge: Charge, outcome: str, before: str | None = None) -> bool:
    """Record how a charge ended. False for an unknown charge, or one of another outcome than ``before``."""
    changed = connection.execute(
        "UPDATE charges SET outcome = ? WHERE id = ? AND dataset = ? AND outcome = coalesce(?, outcome)",
        (outcome, charge.id, charge.dataset, before),
    )
    return changed.rowcount == 1


def remove_reserved(connection: Connection, charge: Charge) -> bool:
    """Remove a charge that was made before its release. False unless it is still reserved."""
    removed = connection.execute(
        "DELETE FROM charges WHERE id = ? AND dataset = ? AND outcome = ?",
        (charge.id, charge.dataset, RESERVED),
    )
    return removed.rowcount == 1


def write_step(connection: Connection, charge: Charge, step: int) -> bool:
    """Record that a step of a charged fit begins. False unless it follows the last recorded step."""
    changed = connection.execute(
        "UPDATE charges SET steps = ? WHERE id = ? AND dataset = ? AND steps = ?",
        (step, charge.id, charge.dataset, step - 1),
    )
    return changed.rowcount == 1


def read_steps(connection: Connection, charge: Charge) -> int:
    """Number of the last step of a charged fit that was recorded."""
    row = connection.execute("SELECT steps FROM charges WHERE id = ?", (charge.id,)).fetchone()
    return 0 if row is None else int(row[0])


#: Errors of a row of a table with entries of wrong types or without some columns.
_DAMAGE = (KeyError, IndexError, TypeError, ValueError, RecursionError)


def _account_of(row: Row) -> Account:
    """The account in a row of the table. Refuses a damaged row, whose sums would decide later charges."""
    values = dict(row)
    try:
        values["private"] = _flag(row, "private")
        values["divergences"] = tuple(json.loads(values["divergences"]))
        account = Account(**values)
        account.check_agreement()
    except _DAMAGE as error:
        raise ValueError(
            f"the ledger's account of dataset={shown(dict(row).get('dataset'))} is damaged "
            f"({one_line(str(error))}); restore the file from a copy."
        ) from error
    return account


#: Types of a charge's entries, as SQLite returns them.
_ENTRIES: dict[str, type] = {
    **dict.fromkeys(("dataset", "time", "event", "description", "user", "purpose", "outcome"), str),
    **dict.fromkeys(("spent", "budget", "delta"), float),
}


def _charge_of(row: Row, parse: Callable[[str], Any]) -> Charge:
    values = dict(row)
    try:
        for name, kind in _ENTRIES.items():
            if not isinstance(values[name], kind):
                raise TypeError(f"{name}={shown(values[name])} is not of type {kind.__name__}")
        values["time"] = datetime.fromisoformat(values["time"])
        values["event"] = parse(values["event"])
        values["private"] = _flag(row, "private")
    except _DAMAGE as error:
        raise ValueError(
            f"charge {values.get('id')} of the ledger cannot be read: {one_line(str(error))}"
        ) from error
    return Charge(**values)


def _flag(row: Row, name: str) -> bool:
    if row[name] not in (0, 1):
        raise ValueError(f"{name}={shown(row[name])} must be 0 or 1")
    return bool(row[name])
