"""Accounts and charges as rows of a ledger's tables."""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from sqlite3 import Connection, Row
from typing import Any

from ..._utils.validation import one_line, shown
from ._account import Account
from ._ledger_report import Charge
from ._records import UnknownKindError, event_from_json, event_to_json

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
    others_spent_delta REAL NOT NULL,
    seal INTEGER NOT NULL DEFAULT 0
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
    steps INTEGER NOT NULL DEFAULT 0,
    "key" TEXT NOT NULL,
    seal INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX charges_of_dataset ON charges (dataset, id);
CREATE INDEX charges_by_outcome ON charges (outcome);
CREATE INDEX charges_without_guarantee ON charges (private) WHERE private = 0;
CREATE UNIQUE INDEX charges_by_key ON charges ("key") WHERE "key" <> '';
"""

_CHARGES = """
SELECT charges.*, epsilon AS budget, delta
FROM charges LEFT JOIN (SELECT dataset, epsilon, delta FROM accounts) USING (dataset)
"""

#: The outcome of a charge without a recorded end.
OPEN = "open"

#: Outcome of a charge that was made before its release, until it is used.
RESERVED = "reserved"
#: Outcome of such a charge after it was taken back.
UNUSED = "taken back, since nothing was released"


class UnreadableError(ValueError):
    """The tables cannot be read; the message goes on after the name of the ledger, which the store adds."""

    @classmethod
    def of_damage(cls, what: str) -> "UnreadableError":
        """The error for a damaged ledger; ``what`` says in a clause what is damaged."""
        return cls(f"is damaged ({one_line(what)}); restore the file from a copy.")


def read_account(connection: Connection, dataset: str) -> Account | None:
    """The account of a data set; None if there is none."""
    row = connection.execute("SELECT * FROM accounts WHERE dataset = ?", (dataset,)).fetchone()
    return None if row is None else _account_of(connection, row)


def read_accounts(connection: Connection) -> tuple[Account, ...]:
    """All accounts in the order in which they were made."""
    rows = connection.execute("SELECT * FROM accounts ORDER BY rowid").fetchall()
    return tuple(_account_of(connection, row) for row in rows)


def write_account(connection: Connection, account: Account) -> None:
    """Add an account, or replace the earlier one."""
    columns = [f'"{field.name}"' for field in fields(account)]
    stated = (vars(account)[field.name] for field in fields(account))
    values = [json.dumps(value) if isinstance(value, tuple) else value for value in stated]
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    connection.execute(
        f"INSERT INTO accounts ({', '.join(columns)}) VALUES ({', '.join('?' * len(values))}) "
        f"ON CONFLICT (dataset) DO UPDATE SET {changes}",
        values,
    )
    _seal(connection, "accounts", "dataset", account.dataset)


def read_charges(
    connection: Connection, dataset: str | None = None, *, failed: bool = False
) -> tuple[Charge, ...]:
    """Charges of one data set or of all, in their order; ``failed`` or without a guarantee, or all."""
    query = f"{_CHARGES} WHERE dataset = coalesce(?, dataset)"
    if failed:  # a range, so that an index is used: texts that begin with "failed"
        query += " AND id IN (SELECT id FROM charges WHERE private = 0"
        query += " UNION SELECT id FROM charges WHERE outcome >= 'failed' AND outcome < 'failee')"
    # Most charges share a few events. The cache ends with the call, so that later charges share no objects.
    parse = cache(event_from_json)
    rows = connection.execute(f"{query} ORDER BY id", (dataset,))
    return tuple(_charge_of(row, parse) for row in rows)


def read_charge(connection: Connection, column: str, value: object) -> Charge | None:
    """The charge with a value in a column of unique values, such as "id"; None if there is none."""
    row = connection.execute(f'{_CHARGES} WHERE "{column}" = ?', (value,)).fetchone()
    return None if row is None else _charge_of(row, event_from_json)


def add_charge(connection: Connection, account: Account, event: object, **facts: object) -> Charge:
    """Record a charge and return it: the account after it, and ``facts`` for the other columns."""
    values = {"dataset": account.dataset, "spent": account.spent, "event": event_to_json(event)}
    values |= {"outcome": OPEN, "key": "", **facts}
    columns = ", ".join(f'"{name}"' for name in values)
    number = connection.execute(
        f"INSERT INTO charges ({columns}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
    ).lastrowid
    _seal(connection, "charges", "id", number)
    charge = read_charge(connection, "id", number)
    assert charge is not None
    return charge


def remove_reserved(connection: Connection, charge: Charge) -> bool:
    """Remove a charge that was made before its release. False unless it is still reserved."""
    removed = connection.execute(
        "DELETE FROM charges WHERE id = ? AND dataset = ? AND outcome = ?",
        (charge.id, charge.dataset, RESERVED),
    )
    return removed.rowcount == 1


def read_steps(connection: Connection, charge: Charge) -> int:
    """Number of the last step of a charged fit that was recorded."""
    row = connection.execute("SELECT steps FROM charges WHERE id = ?", (charge.id,)).fetchone()
    return 0 if row is None else int(row[0])


def check_sums(accounts: Sequence[Account], charges: Sequence[Charge]) -> None:
    """Refuse accounts whose count or sum is not that of their charges, which are all of them."""
    counts = Counter(charge.dataset for charge in charges)
    events: dict[str, Counter[Any]] = defaultdict(Counter)
    for charge in [charge for charge in charges if charge.outcome != UNUSED]:
        events[charge.dataset][charge.event] += 1
    for account in accounts:
        name = account.dataset
        if account.n_charges != counts[name] or not account.agrees_with(events[name]):
            raise UnreadableError.of_damage(
                f"its count or sum for dataset={shown(name)} is not that of the charges"
            )


def change_charge(
    connection: Connection, charge: Charge, column: str, value: object, before: object = None
) -> bool:
    """Change a column of a charge. False for an unknown charge, or one with another value than ``before``."""
    read_charge(connection, "id", charge.id)  # a damaged one gets no new seal
    changed = connection.execute(
        f"UPDATE charges SET {column} = ? WHERE id = ? AND dataset = ? AND {column} = coalesce(?, {column})",
        (value, charge.id, charge.dataset, before),
    )
    if changed.rowcount == 1:
        _seal(connection, "charges", "id", charge.id)
    return changed.rowcount == 1


# -- damage --------------------------------------------------------------------------------

#: Errors of a row of a table with entries of wrong types or without some columns.
_DAMAGE = (KeyError, IndexError, TypeError, ValueError, RecursionError)


def _seal(connection: Connection, table: str, column: str, value: object) -> None:
    """Write the seal of a row that was changed."""
    row = connection.execute(f'SELECT * FROM {table} WHERE "{column}" = ?', (value,)).fetchone()
    if row is None:
        raise UnreadableError.of_damage("a row was lost as it was written")
    connection.execute(f'UPDATE {table} SET seal = ? WHERE "{column}" = ?', (_seal_of(row), value))


def _seal_of(row: Row) -> int:
    """A checksum of the columns before the seal, which finds damage; it does not keep anyone from forging."""
    return zlib.crc32(json.dumps(tuple(row)[: row.keys().index("seal")]).encode())


def _check_seal(row: Row) -> None:
    if row["seal"] != _seal_of(row):
        raise ValueError("its checksum does not match")


def _account_of(connection: Connection, row: Row) -> Account:
    """The account in a row of the table. Refuses a damaged row, whose sums would decide later charges."""
    values = dict(row)
    try:
        _check_seal(row)
        del values["seal"]
        values["private"] = bool(row["private"])
        values["divergences"] = tuple(json.loads(values["divergences"]))
        account = Account(**values)
        last = connection.execute(
            "SELECT spent, EXISTS (SELECT 1 FROM charges WHERE dataset = ?1 AND outcome = ?2) FROM charges "
            "WHERE dataset = ?1 ORDER BY id DESC LIMIT 1",
            (account.dataset, UNUSED),
        ).fetchone()
        spent, is_reduced = (account.spent, False) if last is None else last  # by charges taken back
        is_known = account.spent == spent or (is_reduced and account.spent < spent)
        if not is_known or (last is None and account.n_charges > 0):
            raise ValueError("what it spent is not what its last charge says")
    except _DAMAGE as error:
        raise UnreadableError.of_damage(
            f"the account of dataset={shown(dict(row).get('dataset'))}: {error}"
        ) from error
    return account


def _charge_of(row: Row, parse: Callable[[str], Any]) -> Charge:
    try:
        _check_seal(row)
        values = {field.name: row[field.name] for field in fields(Charge)}
        for name in ("budget", "delta"):
            if not isinstance(values[name], float):
                raise ValueError(f"its data set has no {name}")
        values["time"] = datetime.fromisoformat(values["time"])
        values["event"] = parse(values["event"])
        values["private"] = bool(values["private"])
    except UnknownKindError as error:
        raise UnreadableError(f"holds charge {values['id']}, which cannot be read: {error}") from error
    except _DAMAGE as error:
        raise UnreadableError.of_damage(f"charge {dict(row).get('id')}: {error}") from error
    return Charge(**values)
