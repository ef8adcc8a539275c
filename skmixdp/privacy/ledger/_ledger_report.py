"""Immutable charges and reports of a ledger."""

import csv
import getpass
import io
import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Literal, Self

from ..._utils.documents import Document, Section, as_html, as_page
from ..report import attack_section, attack_words, first_line, relation_words
from ._account import Account
from ._records import event_to_json

_HEADER = ("data set", "spent", "budget", "left", "delta", "charges", "neighbours", "composed by")

_OF_CHARGES = ("charge", "data set", "time (UTC)", "what", "spent so far")
#: Number of charges in a notebook.
_LAST = 5

#: Columns of the exported charges.
_COLUMNS = (
    *("id", "dataset", "time", "user", "purpose", "description", "event", "outcome", "private"),
    *("spent", "budget", "delta"),
)

#: Fields of an account in reports.
_REPORTED = (
    *("dataset", "epsilon", "delta", "spent", "remaining", "n_charges", "private"),
    *("neighboring", "composition", "order"),
    *("others_epsilon", "others_delta", "others_spent_epsilon", "others_spent_delta"),
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
        Whether the noise is secret and no leak is known. If not, the description says why.
    spent : float
        Epsilon spent on the data set, including this charge, as :attr:`LedgerDataset.spent`.
    budget, delta : float
        Budget of the data set: epsilon and delta.
    user : str
        Login name of whoever made the charge; empty if it is unknown.
    purpose : str
        What the charge is for, as :meth:`LedgerDataset.for_purpose` says; empty if nothing was said.
    outcome : str
        "finished"; "failed: " and the type of the error; or "open" if nothing was recorded. A charge is open
        while its fit is running, if the process died, and if it was made by hand. It counts in full, since
        noise may have been seen. "reserved" is a charge of a pipeline for a step that did not begin. It
        counts in full too, until the step replaces it by its own, or the pipeline ends: it is then "taken
        back, since nothing was released", and counts no more.
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
    user: str = ""
    purpose: str = ""
    outcome: str = "open"

    def as_reported(self) -> dict[str, Any]:
        """The fields of a privacy report that describe the charge."""
        return {
            "dataset": self.dataset,
            "dataset_epsilon": self.budget,
            "dataset_delta": self.delta,
            "dataset_spent": self.spent,
            "dataset_purpose": self.purpose,
        }

    @property
    def what(self) -> str:
        """The charged release and its purpose, as text."""
        return f"{self.description}, for {self.purpose!r}" if self.purpose else self.description

    def _in_words(self) -> str:
        """The charge as sentences."""
        user = f" by {self.user}" if self.user else ""
        ended = f"It {self.outcome}." if self.outcome.startswith("failed") else f"It is {self.outcome}."
        return (
            f"{self.time:%Y-%m-%d %H:%M} UTC{user}: {self.what}. "
            f"{ended if self.private else f'{ended} NO GUARANTEE.'} "
            f"Epsilon {self.spent:.3g} of {self.budget:g} was spent then."
        )


def current_user() -> str:
    """The login name of the user of this process, or an empty text."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # for example in containers without a list of users
        return ""


@dataclass(frozen=True)
class LedgerReport(Document):
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

    @property
    def no_guarantee(self) -> str:
        """The first line of the report if a charge has no guarantee, with the reason; otherwise empty."""
        return first_line(
            f"{charge.description} (charged to {charge.dataset!r})"
            for charge in self.charges
            if not charge.private
        )

    def to_dict(self) -> dict[str, Any]:
        """Data sets and charges, as values that JSON supports."""
        datasets = [{name: getattr(account, name) for name in _REPORTED} for account in self.accounts]
        charges = [dict(zip(_COLUMNS, _values(charge), strict=True)) for charge in self.charges]
        for charge in charges:
            charge["event"] = json.loads(charge["event"])
        return {"no_guarantee": self.no_guarantee, "datasets": datasets, "charges": charges}

    def to_json(self, indent: int | None = 2) -> str:
        """The report as a JSON object."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_csv(self) -> str:
        """All charges as CSV text: who charged what and when, and the epsilon spent after each charge.

        Columns are ``id``, ``dataset``, ``time`` (UTC), ``user``, ``purpose``, ``description``, ``event``
        (JSON), ``outcome``, ``private``, ``spent``, ``budget`` and ``delta``. ``spent`` is the epsilon after
        composition with all earlier charges to the data set, as :attr:`Charge.spent`. A text that a
        spreadsheet would take for a formula gets an apostrophe in front.
        """
        return "".join(map(_csv_line, [_COLUMNS, *map(_values, self.charges)]))

    def to_html(self) -> str:
        """A page in plain words on the budgets and all charges, as one file without scripts or links.

        It says for each data set how often an attacker guesses right at most, whatever is still charged.
        """
        parts = chain.from_iterable(map(self._part, self.accounts))
        return as_page("Privacy ledger", self.no_guarantee, parts)

    @property
    def failed(self) -> tuple[Charge, ...]:
        """Charges whose fit failed. They count in full, since noise may have been seen."""
        return tuple(charge for charge in self.charges if charge.outcome.startswith("failed"))

    def _sections(self) -> list[Section]:
        rows = [
            (
                account.dataset,
                f"{account.spent:.4g}" if account.private else "NO GUARANTEE",
                f"{account.epsilon:.4g}",
                f"{account.remaining:.4g}",
                f"{account.delta:.3g}",
                account.n_charges,
                account.neighboring or "by the first charge",
                _words(account),
            )
            for account in self.accounts
        ]
        failures = [
            f"charge {charge.id} to {charge.dataset!r} ({charge.what}) {charge.outcome}; it counts in full"
            for charge in self.failed
        ]
        bars = [
            (f"{each.dataset}: {each.spent:.4g} of {each.epsilon:.4g}", each.spent, each.epsilon)
            for each in self.accounts
        ]
        return [Section("Privacy ledger", rows, _HEADER, notes=failures, bars=bars)]

    def _part(self, account: Account) -> list[Section]:
        """The part of the page on one data set."""
        budget = f"(epsilon {account.epsilon:g}, delta {account.delta:g})-differential privacy of all charges"
        rows = {
            "budget": f"{'' if account.private else 'NO GUARANTEE; without the leaks: '}{budget} together",
            "protected": "by the first charge",
            "spent": f"epsilon {account.spent:.3g} (charges: {account.n_charges})",
            "left": "nothing",
        }
        if account.others_epsilon:
            rows["for other tools"] = _of_others(account)
        if account.remaining > 0:
            fits = account.fits_left(1.0, account.delta)
            rows["left"] = f"one full-batch fit with epsilon of about {account.remaining:.3g}"
            rows["left"] += f", or {fits} with epsilon 1" if fits else ""
        attack = Section()
        if account.neighboring is not None:
            rows["protected"] = relation_words(account.neighboring, account.unit)
            words = attack_words(account.attack_success, account.neighboring, account.unit)
            when = "whatever is still charged to this budget,"
            attack = attack_section(account.attack_success, words if account.private else "", when)
        charges = [charge for charge in self.charges if charge.dataset == account.dataset]
        title = "Charges" if len(charges) == account.n_charges else "Charges that failed or have no guarantee"
        return [
            attack._replace(title=account.dataset, rows=[*rows.items()]),
            Section(title, bullets=[charge._in_words() for charge in charges] or ["None."], level=3),
        ]

    def _repr_html_(self) -> str:
        charges = [
            (charge.id, charge.dataset, f"{charge.time:%Y-%m-%d %H:%M}", charge.what, f"{charge.spent:.4g}")
            for charge in self.charges[-_LAST:]
        ]
        last = [Section("Last charges", charges, _OF_CHARGES)] if charges else []
        return as_html(self.no_guarantee, [*self._sections(), *last])


class Shared:
    """Base of ledgers and data sets: shown by their report; copies and clones are the object itself."""

    def __sklearn_clone__(self) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @abstractmethod
    def report(self, charges: Literal["all", "failed"] = "all") -> LedgerReport:
        """The report of the ledger, or of one data set."""

    @property
    def no_guarantee(self) -> str:
        """The first line of the text, which names known leaks of charges; empty without leaks."""
        return self.report().no_guarantee

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def _values(charge: Charge) -> list[Any]:
    """The entries of a charge in the order of the columns."""
    special = {"time": charge.time.isoformat(), "event": event_to_json(charge.event)}
    return [special.get(name, vars(charge)[name]) for name in _COLUMNS]


def _csv_line(values: Sequence[Any]) -> str:
    """One line of CSV, which ends with a line feed.

    The writer ends lines with both characters, so that it quotes texts that contain either of them.
    """
    text = io.StringIO()
    safe = [_no_formula(value) if isinstance(value, str) else value for value in values]
    csv.writer(text, lineterminator="\r\n").writerow(safe)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _no_formula(text: str) -> str:
    """A text that spreadsheets do not compute, even if it starts like a formula."""
    starts = text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(("=", "+", "-", "@"))
    return f"'{text}" if starts else text


def _words(account: Account) -> str:
    """How charges are composed, and what is reserved for other tools."""
    words = {"gaussian": "Gaussian DP", "renyi": "Renyi divergences", None: "by the first charge"}
    composed = words[account.composition]
    if account.order is not None:
        composed += f" of order {account.order:g}"
    return f"{composed}; others {_of_others(account)}" if account.others_epsilon else composed


def _of_others(account: Account) -> str:
    """What is spent of the part of the budget for other tools."""
    spent, reserved = account.others_spent_epsilon, account.others_epsilon
    return (
        f"epsilon {spent:.3g} of {reserved:.3g}, delta {account.others_spent_delta:.3g} of "
        f"{account.others_delta:.3g}"
    )
