"""A lasting record of what was spent on which private rows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from ..accounting.calibrate import check_terms
from ..accounting.checks import check_positive
from ..accounting.composition import COMPOSITION, Composition
from ..accounting.events import NEIGHBORING, Neighboring
from ._account import Account
from ._records import event_from_json, event_to_json
from ._report import Charge, LedgerReport
from ._sql import add_charge, read_account, read_accounts, read_charges, write_account
from ._store import FileStore, MemoryStore

_MEMORY = ":memory:"


class PrivacyLedger:
    """Budgets of named private data sets, and every charge that was made to them.

    Estimators take it as ``ledger=``, with ``dataset=``; each fit is charged after its input is
    validated and before its first release, from whatever process or thread it runs in. A fit that
    does not fit raises :class:`~skmixdp.exceptions.BudgetExceededError` and releases nothing.

    Parameters
    ----------
    path : str or path
        An SQLite file, made if missing, on a local disk; or ":memory:", for the threads of one process.
    epsilon, delta : float or None, default=None
        Budget of data sets that are charged before anybody added them; None for both refuses these.

    Attributes
    ----------
    path : Path or None
        Absolute path of the file; None in memory.

    Raises
    ------
    ValueError
        For a budget outside its range, or a file that is not a ledger.
    OSError
        If the file cannot be opened.

    Notes
    -----
    *Guarantee*: everything that was charged to a data set, however each charge was chosen after
    seeing the results of earlier ones, is (epsilon, delta)-differentially private in its rows. A
    privacy filter decides (see :mod:`skmixdp.privacy.accounting.composition`): a sum of ``mu**2`` where
    the first charge is a full batch with continuous Gaussian noise, otherwise a sum of Renyi divergences of one
    order. The ledger counts what it is told: rows that are charged under two names have two
    budgets, which add up, and what is charged to nobody is not counted. The file holds no data;
    whoever can write to it can forge it.

    ``copy.deepcopy`` and ``sklearn.base.clone`` keep the same ledger. Pickles carry the file's path,
    and unpickling does not make a file.

    Examples
    --------
    >>> from skmixdp.privacy import GaussianEvent, PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:", epsilon=3.0, delta=1e-5)
    >>> charge = ledger.charge("patients", GaussianEvent(20, 100), neighboring="add_or_remove_one")
    >>> round(ledger.spent("patients"), 3), round(ledger.remaining("patients"), 3)
    (1.993, 2.068)
    """

    def __init__(
        self, path: str | PathLike[str], *, epsilon: float | None = None, delta: float | None = None
    ) -> None:
        if (epsilon is None) != (delta is None):
            raise ValueError(f"epsilon={epsilon!r} and delta={delta!r} make no budget; give both or neither.")
        if epsilon is not None and delta is not None:
            _check_budget(epsilon, delta)
        self.epsilon, self.delta = epsilon, delta
        self._store: FileStore | MemoryStore
        if fspath(path) == _MEMORY:
            self.path = None
            self._store = MemoryStore()
        else:
            self.path = Path(path).absolute()
            self._store = FileStore(self.path, create=True)

    # -- data sets -------------------------------------------------------------------------

    def add_dataset(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        neighboring: Neighboring | None = None,
        composition: Composition | None = None,
    ) -> None:
        """Give a data set its budget, once and for all; saying the same again changes nothing.

        Parameters
        ----------
        name : str
            Name of the data set.
        epsilon, delta : float
            Its budget.
        neighboring : {"add_or_remove_one", "replace_one"} or None, default=None
            Which data sets count as neighbours; None leaves it to the first charge.
        composition : {"gaussian", "renyi"} or None, default=None
            What is summed. "gaussian" is exact for full batches and counts sampled batches in full;
            "renyi" is for mixtures. None leaves it to the first charge.

        Raises
        ------
        ValueError
            If a parameter is outside its range, or the data set has another budget.
        """
        _check_name(name)
        _check_budget(epsilon, delta)
        _check_choice("neighboring", neighboring, NEIGHBORING)
        _check_choice("composition", composition, COMPOSITION)
        new = Account(name, float(epsilon), float(delta), neighboring=neighboring, composition=composition)
        with self._store.transaction(write=True) as connection:
            old = read_account(connection, name)
            if old is None:
                write_account(connection, new)
                return
        asked = {"epsilon": epsilon, "delta": delta, "neighboring": neighboring, "composition": composition}
        for parameter, value in asked.items():
            if value is not None and value != getattr(old, parameter):
                raise ValueError(
                    f"{parameter}={value!r} is not that of dataset={name!r}, which is in the ledger "
                    f"with {getattr(old, parameter)!r}; a budget is never changed, so use the same or "
                    "another name."
                )

    # -- charging --------------------------------------------------------------------------

    def charge(
        self,
        dataset: str,
        event: object,
        *,
        neighboring: Neighboring,
        description: str = "",
        private: bool = True,
    ) -> Charge:
        """Pay for an event before it happens, or refuse.

        Parameters
        ----------
        dataset : str
            Name of the data set whose rows it uses.
        event : event
            What is going to be released, such as :class:`~skmixdp.privacy.GaussianEvent`.
        neighboring : {"add_or_remove_one", "replace_one"}
            Which data sets count as neighbours; one relation per data set.
        description : str, default=""
            Words for the report.
        private : bool, default=True
            False if a seed makes the noise again. It is charged all the same, and from then on the
            ledger says that nothing is guaranteed for the data set.

        Returns
        -------
        Charge
            What was recorded.

        Raises
        ------
        BudgetExceededError
            If it does not fit; nothing is charged.
        ValueError, TypeError
            For an unknown data set, another relation, or an event that nobody can account for.
        """
        _check_name(dataset)
        check_terms(0.5, 1.0, neighboring)
        if not isinstance(description, str):
            raise TypeError(f"description={description!r} must be a string.")
        # What is kept is charged: an event that cannot be read back, or whose numbers were changed after it
        # was made so that they make no sense, is refused here.
        event = event_from_json(event_to_json(event))
        # What takes time is computed once without holding the lock, and kept for when it is held.
        with self._store.transaction(write=False) as connection:
            account = self._account_to_charge(connection, dataset)
        account.after(event, neighboring)
        with self._store.transaction(write=True) as connection:
            account = self._account_to_charge(connection, dataset).after(event, neighboring, private)
            write_account(connection, account)
            return add_charge(connection, account, event, datetime.now(UTC), description, private)

    def _account_to_charge(self, connection: Connection, dataset: str) -> Account:
        """The account of a data set; a new one with the default budget, if there is one."""
        account = read_account(connection, dataset)
        if account is None:
            if self.epsilon is None or self.delta is None:
                raise ValueError(
                    _unknown(connection, dataset, f"add_dataset({dataset!r}, epsilon=..., delta=...)")
                )
            return Account(dataset, float(self.epsilon), float(self.delta), by_default=True)
        default = (self.epsilon, self.delta)
        if account.by_default and self.epsilon is not None and default != (account.epsilon, account.delta):
            raise ValueError(
                f"dataset={dataset!r} has the budget epsilon={account.epsilon:g}, delta={account.delta:g} "
                f"and this ledger was opened with epsilon={self.epsilon:g}, delta={self.delta:g}; a budget "
                "is never changed, so open it with the same, or with none."
            )
        return account

    # -- reading ---------------------------------------------------------------------------

    def account(self, dataset: str) -> Account:
        """Budget and sums of a data set.

        Raises
        ------
        ValueError
            If it is not in the ledger.
        """
        with self._store.transaction(write=False) as connection:
            account = read_account(connection, dataset)
            if account is None:
                raise ValueError(_unknown(connection, dataset, "one of these"))
        return account

    def spent(self, dataset: str) -> float:
        """Smallest epsilon, at the data set's delta, of a budget that would have admitted its charges.

        It is what the charges cost if they were fixed in advance. Where each was chosen after seeing
        the results of earlier ones, the guarantee is the budget as a whole.
        """
        return self.account(dataset).spent

    def remaining(self, dataset: str) -> float:
        """Epsilon, at the data set's delta, of the largest full-batch fit that is still paid for."""
        return self.account(dataset).remaining

    def charges(self, dataset: str | None = None) -> list[Charge]:
        """All charges in the order in which they were made, of one data set or of all."""
        if dataset is not None:
            self.account(dataset)
        with self._store.transaction(write=False) as connection:
            return list(read_charges(connection, dataset))

    def report(self) -> LedgerReport:
        """Everything in the ledger; it prints as a table, and has HTML and JSON forms."""
        with self._store.transaction(write=False) as connection:
            return LedgerReport(read_accounts(connection), read_charges(connection))

    # -- copies ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        budget = "" if self.epsilon is None else f", epsilon={self.epsilon!r}, delta={self.delta!r}"
        return f"PrivacyLedger({_MEMORY if self.path is None else str(self.path)!r}{budget})"

    def __sklearn_clone__(self) -> "PrivacyLedger":
        return self

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: Any) -> "PrivacyLedger":
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise TypeError(
                "a ledger in memory cannot be pickled, and no other process could charge it; give "
                "PrivacyLedger a file."
            )
        return {"path": self.path, "epsilon": self.epsilon, "delta": self.delta}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._store = FileStore(state["path"], create=False)


def _unknown(connection: Connection, dataset: Any, fix: str) -> str:
    names = [account.dataset for account in read_accounts(connection)]
    return f"dataset={dataset!r} is not in the ledger, which has {names}; use {fix}."


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError(f"dataset={name!r} must be the name of a data set, a string that is not empty.")


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(choices)}, or None.")


def _check_budget(epsilon: float, delta: float) -> None:
    check_positive("epsilon", epsilon)
    check_terms(delta, 1.0, NEIGHBORING[0])
