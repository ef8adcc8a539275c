"""Charges and reports of a ledger, frozen when they are made."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ._account import Account
from ._records import event_to_json

_HEADER = ("data set", "spent", "budget", "left", "delta", "charges", "neighbours", "composed by")
_LEFT = "'text-align:left'"

#: What is reported of an account.
_REPORTED = (
    *("dataset", "epsilon", "delta", "spent", "remaining", "n_charges", "private"),
    *("neighboring", "composition", "order"),
)


@dataclass(frozen=True)
class Charge:
    """One charge to a data set of a ledger.

    Attributes
    ----------
    id : int
        Number of the charge in the ledger.
    dataset : str
        Name of the data set.
    time : datetime
        Time of the charge, in UTC.
    event : event
        The event that was charged.
    description : str
        Text passed with the charge.
    private : bool
        Whether the noise is secret; False if it comes from a seed.
    spent : float
        Epsilon spent on the data set, including this charge, as :attr:`LedgerDataset.spent`.
    budget, delta : float
        Budget of the data set: epsilon and delta.
    """

    id: int
    dataset: str
    time: datetime
    event: Any
    description: str
    private: bool
    spent: float
    budget: float
    delta: float


@dataclass(frozen=True)
class LedgerReport:
    """All budgets and charges of a ledger, or those of one data set.

    Attributes
    ----------
    accounts : tuple of Account
        Budget and sums of each data set, in the order in which they were added.
    charges : tuple of Charge
        All charges in the order in which they were made.
    """

    accounts: tuple[Account, ...]
    charges: tuple[Charge, ...]

    def to_dict(self) -> dict[str, Any]:
        """Data sets and charges, as values that JSON supports."""
        datasets = [{name: getattr(account, name) for name in _REPORTED} for account in self.accounts]
        charges = [
            {
                "id": charge.id,
                "dataset": charge.dataset,
                "time": charge.time.isoformat(),
                "event": json.loads(event_to_json(charge.event)),
                "description": charge.description,
                "private": charge.private,
                "spent": charge.spent,
            }
            for charge in self.charges
        ]
        return {"datasets": datasets, "charges": charges}

    def to_json(self, indent: int | None = 2) -> str:
        """The report as a JSON object."""
        return json.dumps(self.to_dict(), indent=indent)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                account.dataset,
                f"{account.spent:.4g}" if account.private else "NOT PRIVATE (seeded)",
                f"{account.epsilon:.4g}",
                f"{account.remaining:.4g}",
                f"{account.delta:.3g}",
                str(account.n_charges),
                account.neighboring or "by the first charge",
                _words(account),
            )
            for account in self.accounts
        ]

    def __str__(self) -> str:
        return "\n".join(["Privacy ledger", *_table([_HEADER, *self._rows()])])

    def _repr_html_(self) -> str:
        head = "".join(f"<th style={_LEFT}>{name}</th>" for name in _HEADER)
        body = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in self._rows()
        )
        return f"<table><caption>Privacy ledger</caption><tr>{head}</tr>{body}</table>"


def _words(account: Account) -> str:
    if account.order is not None:
        return f"Renyi divergences of order {account.order:g}"
    return {"gaussian": "Gaussian DP", "renyi": "Renyi divergences", None: "by the first charge"}[
        account.composition
    ]


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
