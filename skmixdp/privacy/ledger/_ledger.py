"""The public classes of privacy ledgers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, Self

from ..._utils.process import warn
from ..._utils.validation import Kind, check, shown
from ..accounting.budgets import warn_of_epsilon
from ..accounting.composition import Composition
from ..accounting.events import NEIGHBORING, Neighboring
from ._account import NAME, PURPOSE, TEXT, Account
from ._ledger_report import Charge, LedgerReport, Shared, current_user
from ._records import event_from_json, event_to_json
from ._sql import (
    OPEN,
    add_charge,
    change_charge,
    check_sums,
    read_account,
    read_accounts,
    read_charge,
    read_charges,
    read_steps,
    remove_reserved,
    write_account,
)
from ._store import FileStore, MemoryStore, Result, Work

_MEMORY = ":memory:"

#: Largest delta without a warning. A larger one would allow the publication of one row in a thousand.
_LARGE_DELTA = 1e-3

#: Allowed values of the parameter ``ledger``: also the allowances that a search gives to its fits.
LEDGER = Kind(
    "a data set of a ledger, such as PrivacyLedger('ledger.sqlite')['patients']",
    lambda value: not isinstance(value, type) and callable(getattr(value, "charge", None)),
)
_FAILED = Kind(
    "a text that starts with 'failed: '",
    lambda value: isinstance(value, str) and value.startswith("failed: "),
)


class PrivacyLedger(Shared):
    """A persistent record of the privacy budgets of named data sets and of all charges to them.

    :meth:`add_dataset` fixes the budget of a data set. After that, ``ledger["name"]`` is the data set, and
    estimators accept it as ``ledger=``.

    Parameters
    ----------
    path : str or path
        An SQLite file on a local disk, created if missing. ":memory:" keeps it in the memory of one
        process.

    Attributes
    ----------
    path : Path or None
        Absolute path of the file; None in memory.

    Raises
    ------
    ValueError
        If the file is not a ledger.
    OSError
        If the file cannot be opened.

    See Also
    --------
    LedgerDataset : One data set of a ledger, which can be charged.

    Notes
    -----
    *Guarantee*: all charged releases of a data set together are (epsilon, delta)-differentially private in
    its rows. This holds even if each charge was chosen after seeing the results of earlier ones. A privacy
    filter decides whether a charge still fits (see :mod:`skmixdp.privacy.accounting.composition`). If the
    first charge is a full batch with continuous Gaussian noise, the filter sums ``mu**2``. Otherwise it sums
    Renyi divergences of one order.

    The ledger counts only what is charged to it. Rows that are charged under two names have two budgets,
    which add up. A release that is not charged is not counted. The file holds no data. Anyone who can write
    to it can forge it.

    ``copy.deepcopy`` and ``sklearn.base.clone`` keep the same ledger. Pickles contain the file's path, and
    unpickling does not create a file.

    Examples
    --------
    >>> from skmixdp.privacy import GaussianEvent, PrivacyLedger
    >>> ledger = PrivacyLedger(":memory:")
    >>> patients = ledger.add_dataset("patients", epsilon=3.0, delta=1e-5)
    >>> charge = patients.charge(GaussianEvent(20, 100), neighboring="add_or_remove_one")
    >>> round(patients.spent, 3), round(ledger["patients"].remaining, 3)
    (1.993, 2.068)
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._store: FileStore | MemoryStore
        if fspath(path) == _MEMORY:
            self.path = None
            self._store = MemoryStore()
        else:
            self.path = Path(path).absolute()
            self._store = FileStore(self.path, create=True)

    def add_dataset(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        neighboring: Neighboring | None = None,
        composition: Composition | None = None,
        unit: str = "row",
        others: tuple[float, float] | None = None,
    ) -> "LedgerDataset":
        """Add a data set and fix its budget; repeating the same call changes nothing.

        Parameters
        ----------
        name : str
            Name of the data set.
        epsilon, delta : float
            Budget of the data set.
        neighboring : {"add_or_remove_one", "zero_out", "replace_one"} or None, default=None
            Which data sets count as neighbours. If None, the first charge decides.
        composition : {"gaussian", "renyi"} or None, default=None
            How charges are composed. "gaussian" is exact for full batches, but counts sampled batches as full
            batches. "renyi" accepts all mechanisms. If None, the first charge decides.
        unit : str, default="row"
            What the budget protects: "row", or the name of the column of persons, each with all its rows.
            A charge in another unit is refused.
        others : (epsilon, delta) or None, default=None
            The part of the budget for releases of other tools, which are charged as
            :class:`~skmixdp.privacy.OtherRelease`. Their epsilons and deltas add up. All other charges have
            the rest of the budget. None reserves nothing.

        Returns
        -------
        LedgerDataset
            The data set, as ``ledger[name]``.

        Raises
        ------
        ValueError
            If a parameter is outside its range, or the data set has another budget.
        """
        check("name", name, NAME)
        new = Account(name, epsilon, delta, neighboring, composition, unit=unit)  # checks the others
        own_epsilon, own_delta = _reserved(others, epsilon, delta)
        new = replace(new, epsilon=float(epsilon), delta=float(delta))
        new = replace(new, others_epsilon=own_epsilon, others_delta=own_delta)
        warn_of_epsilon(epsilon)
        if delta > _LARGE_DELTA:
            warn(
                f"delta={delta:g} allows to publish a row outright with that probability; choose it well "
                "below 1/n, such as 1e-5."
            )

        def work(connection: Connection) -> Account:
            old = read_account(connection, name)
            if old is None:
                write_account(connection, new)
            return old or new

        old = self._store.transact(work, write=True)
        fixed = ("epsilon", "delta", "neighboring", "composition", "unit", "others_epsilon", "others_delta")
        for parameter in fixed:
            value = vars(new)[parameter]
            if value is not None and value != vars(old)[parameter]:
                raise ValueError(
                    f"{parameter}={value!r} is not that of dataset={name!r}, which is in the ledger "
                    f"with {vars(old)[parameter]!r}; a budget never changes, so pass the same value or "
                    "another name."
                )
        return LedgerDataset(self, name)

    def __getitem__(self, name: str) -> "LedgerDataset":
        """One data set of the ledger.

        Raises
        ------
        KeyError, ValueError
            If the data set was not added. The error has both types, and lists the data sets of the ledger.
        """
        self._read(partial(self._account, name=name))
        return LedgerDataset(self, name)

    def __iter__(self) -> Iterator[str]:
        """Names of the data sets, in the order in which they were added."""
        return iter([account.dataset for account in self._read(read_accounts)])

    def report(self, charges: Literal["all", "failed"] = "all") -> LedgerReport:
        """A report of all budgets and charges, which prints as a table and converts to HTML and JSON.

        Parameters
        ----------
        charges : {"all", "failed"}, default="all"
            Which charges it lists. "failed" lists those that failed or have no guarantee: in milliseconds,
            even if there are 100,000 charges. It prints the same. The budgets always count all charges.

        Raises
        ------
        ValueError
            If ``charges`` has another value.
        """
        return self._report(charges, None)

    def _report(self, charges: str, name: str | None) -> LedgerReport:
        """The report of all data sets, or of one."""
        check("charges", charges, "all", "failed")

        def work(connection: Connection) -> LedgerReport:
            accounts = read_accounts(connection) if name is None else (self._account(connection, name),)
            listed = read_charges(connection, name, failed=charges == "failed")
            if charges == "all":
                check_sums(accounts, listed)
            return LedgerReport(accounts, listed)

        return self._read(work)

    def _read(self, work: Work[Result]) -> Result:
        """The result of a read-only transaction."""
        return self._store.transact(work, write=False)

    def _account(self, connection: Connection, name: Any) -> Account:
        account = read_account(connection, name) if TEXT.admits(name) else None
        if account is None:
            names = ", ".join(repr(account.dataset) for account in read_accounts(connection))
            raise _UnknownDatasetError(
                f"dataset={name!r} is not in {self!r}, which has {names or 'no data set yet'}; use one that "
                f"it has, or add it with add_dataset({name!r}, epsilon=..., delta=...)."
            )
        return account

    def __repr__(self) -> str:
        return f"PrivacyLedger({_MEMORY if self.path is None else str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise TypeError(
                "a ledger in memory cannot be pickled, since no other process could charge it; give "
                "PrivacyLedger a file."
            )
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._store = FileStore(state["path"], create=False)


@dataclass(frozen=True, repr=False)
class LedgerDataset(Shared):
    """One data set of a ledger, for the parameter ``ledger`` of estimators.

    :meth:`PrivacyLedger.add_dataset` and ``ledger[name]`` return it. Each fit is charged after its input is
    checked and before its first release, from any process or thread. A fit that the budget does not cover
    raises :class:`~skmixdp.exceptions.BudgetExceededError` and releases nothing.

    Attributes
    ----------
    ledger : PrivacyLedger
        The ledger that contains the data set.
    name : str
        Name of the data set.
    purpose : str
        What its charges are for, as :meth:`for_purpose` sets it; empty if nothing was said.

    Notes
    -----
    *Guarantee*: as for :class:`PrivacyLedger`. Copies, clones and pickles refer to the same data set.
    """

    ledger: PrivacyLedger
    name: str
    purpose: str = ""

    def for_purpose(self, purpose: str) -> Self:
        """The same data set and budget, with a purpose that is recorded with each charge.

        Parameters
        ----------
        purpose : str
            What the charges are for, in one line of at most 120 characters. Reports of the ledger show it.

        Returns
        -------
        LedgerDataset
            The data set, as estimators accept it for ``ledger``.

        Raises
        ------
        ValueError
            If ``purpose`` is not such a text.

        Examples
        --------
        >>> from skmixdp.privacy import PrivacyLedger
        >>> patients = PrivacyLedger(":memory:").add_dataset("patients", epsilon=3.0, delta=1e-5)
        >>> patients.for_purpose("churn model, Q3")
        PrivacyLedger(':memory:')['patients'].for_purpose('churn model, Q3')
        """
        check("purpose", purpose, PURPOSE)
        return replace(self, purpose=purpose)

    def charge(
        self,
        event: object,
        *,
        neighboring: Neighboring,
        description: str = "",
        private: bool = True,
        leaks: tuple[str, ...] = (),
        unit: str = "row",
    ) -> Charge:
        """Charge an event before it happens, or refuse it.

        Parameters
        ----------
        event : event
            The planned release, such as :class:`~skmixdp.privacy.GaussianEvent`.
        neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
            Which data sets count as neighbours; one relation per data set. The first two count as the same
            relation.
        description : str, default=""
            A text for the report.
        private : bool, default=True
            Pass False if the noise comes from a seed. The event is charged all the same. From then on, the
            ledger says NO GUARANTEE for the data set.
        leaks : tuple of str, default=()
            What is known to have been read from private rows without a budget. The description lists it, and
            the ledger says NO GUARANTEE for the data set from then on.
        unit : str, default="row"
            What the event protects, which must be the unit of the data set.

        Returns
        -------
        Charge
            The recorded charge.

        Raises
        ------
        BudgetExceededError
            If the event exceeds the budget. Nothing is charged.
        KeyError
            If the ledger's file was replaced by one without this data set.
        ValueError, TypeError
            For another relation or unit, or an event that no accountant knows.
        """
        work = self._charging(event, neighboring, description, private, leaks, unit)
        return self.ledger._store.transact(work, write=True)

    def _charging(
        self,
        event: object,
        neighboring: Neighboring,
        description: str = "",
        private: bool = True,
        leaks: tuple[str, ...] = (),
        unit: str = "row",
        outcome: str = OPEN,
        reserved: Charge | None = None,
        key: str = "",
    ) -> Work[Charge]:
        """A function that charges an event within a transaction of the ledger; arguments are checked before.

        The charge takes the place of a ``reserved`` one. An interrupted process finds it by its ``key``.
        """
        check("neighboring", neighboring, *NEIGHBORING)
        check("description", description, TEXT)
        leaks = leaks if private else (*leaks, "the noise comes from a seed")
        holds, described = not leaks, "; ".join(filter(None, (description, *leaks)))
        # The event is charged as it will be stored. This refuses events that cannot be read back, and events
        # that were changed to invalid numbers after they were made.
        stored = event_from_json(event_to_json(event))
        # Slow accounting is done before the lock is taken, and cached.
        if reserved is None:
            self.account.after(stored, neighboring, unit=unit)

        def work(connection: Connection) -> Charge:
            if key and read_charge(connection, "key", key) is not None:
                raise RuntimeError(f"another process is at the fit or search whose charge is in {self!r}.")
            before = self.ledger._account(connection, self.name)
            if reserved is not None and remove_reserved(connection, reserved):
                before = replace(before.without(reserved.event), n_charges=before.n_charges - 1)
            account = before.after(stored, neighboring, holds, unit)
            write_account(connection, account)
            return add_charge(
                connection,
                account,
                stored,
                time=datetime.now(UTC).isoformat(),
                description=described,
                private=holds,
                user=current_user(),
                purpose=self.purpose,
                outcome=outcome,
                key=key,
            )

        return work

    def _record_outcome(self, charge: Charge, outcome: str) -> None:
        """Record how a charged fit or search ended; the charge itself does not change."""
        check("outcome", outcome, "finished", OPEN, _FAILED)
        work = partial(change_charge, charge=charge, column="outcome", value=outcome)
        if not self.ledger._store.transact(work, write=True):
            raise ValueError(
                f"charge {charge.id} to {charge.dataset!r} is not in {self.ledger!r}; pass a charge of this "
                "ledger."
            )

    def _record_step(self, charge: Charge, step: int) -> None:
        """Record that a step, from 1 on, is about to be released; a repeated one is a RuntimeError."""
        work = partial(change_charge, charge=charge, column="steps", value=step, before=step - 1)
        if not self.ledger._store.transact(work, write=True):
            raise RuntimeError(
                f"step {step} of charge {charge.id} to {charge.dataset!r} is not the next one in "
                f"{self.ledger!r}: another process goes on with this fit, or the ledger's file was replaced."
            )

    def _last_step(self, charge: Charge) -> int:
        """Number of the last recorded step of a charge; 0 without one."""
        return self.ledger._read(partial(read_steps, charge=charge))

    def _charge_of(self, key: str) -> Charge | None:
        """The charge that a fit or a search made with a key of its own; None if the ledger has it not."""
        return self.ledger._read(partial(read_charge, column="key", value=key))

    @property
    def account(self) -> Account:
        """The present budget and sums of the data set."""
        return self.ledger._read(partial(self.ledger._account, name=self.name))

    @property
    def spent(self) -> float:
        """Smallest epsilon, at the data set's delta, of a budget that would have admitted its charges.

        This is the cost of the charges if they were fixed in advance. If each charge was chosen after seeing
        the results of earlier ones, the guarantee is the whole budget.
        """
        return self.account.spent

    @property
    def remaining(self) -> float:
        """Epsilon, at the data set's delta, of the largest full-batch fit that the budget still covers."""
        return self.account.remaining

    def fits_left(
        self, epsilon: float | None = None, *, delta: float | None = None, event: object = None
    ) -> int:
        """How many more fits the budget covers, by the sum that decides whether a charge is refused.

        Parameters
        ----------
        epsilon : float or None, default=None
            Epsilon of each fit, at full batch with continuous noise.
        delta : float or None, default=None
            Delta of each fit. None is the delta of the data set.
        event : event or None, default=None
            What each fit charges, in place of ``epsilon`` and ``delta``. Pass the ``event`` of an earlier
            charge for fits like it: with sampled batches, discrete noise or ``ModelMix``.

        Returns
        -------
        int
            So many such fits are admitted one after another, if nothing else is charged. One more is refused.

        Raises
        ------
        ValueError, TypeError
            If not exactly one of ``epsilon`` and ``event`` is given, or for a number outside its range or an
            event that no accountant knows.

        Notes
        -----
        *Guarantee*: nothing is charged. The relation is that of the data set, or "add_or_remove_one" if its
        first charge is to decide.

        Examples
        --------
        >>> from skmixdp.privacy import PrivacyLedger
        >>> patients = PrivacyLedger(":memory:").add_dataset("patients", epsilon=3.0, delta=1e-5)
        >>> patients.fits_left(epsilon=1), patients.fits_left(epsilon=0.5)
        (7, 25)
        """
        account = self.account
        if (epsilon is None) == (event is None) or (event is not None and delta is not None):
            raise ValueError(
                f"epsilon={shown(epsilon)}, delta={shown(delta)} and event={shown(event)} do not describe "
                "one kind of fit; pass epsilon and perhaps delta, or event alone."
            )
        if epsilon is not None:
            return account.fits_left(epsilon, account.delta if delta is None else delta)
        return account.repetitions(event_from_json(event_to_json(event)))

    def charges(self) -> list[Charge]:
        """All charges to the data set, in their order."""
        return list(self.report().charges)

    def report(self, charges: Literal["all", "failed"] = "all") -> LedgerReport:
        """The report of this data set alone, as :meth:`PrivacyLedger.report`."""
        return self.ledger._report(charges, self.name)

    def __repr__(self) -> str:
        purpose = f".for_purpose({self.purpose!r})" if self.purpose else ""
        return f"{self.ledger!r}[{self.name!r}]{purpose}"


def _reserved(others: Any, epsilon: float, delta: float) -> tuple[float, float]:
    """The part of a budget for releases of other tools."""
    if others is None:
        return 0.0, 0.0
    try:
        own_epsilon, own_delta = (float(each) for each in others)
    except (TypeError, ValueError):
        own_epsilon = own_delta = -1.0
    if not (0 < own_epsilon < epsilon and 0 <= own_delta < delta):
        raise ValueError(
            f"others={shown(others)} must be (epsilon, delta) of a part of the budget, with epsilon below "
            f"{epsilon:g} and delta below {delta:g}; pass None to reserve nothing."
        )
    return own_epsilon, own_delta


class _UnknownDatasetError(ValueError, KeyError):
    """A KeyError whose message is shown without quotes."""

    def __str__(self) -> str:
        return str(self.args[0])
