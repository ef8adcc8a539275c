"""Charges that are made together, and records of the outcome of their releases."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import Any

from ..._utils.process import name_of, public_code
from ._account import BudgetExceededError
from ._ledger import LedgerDataset
from ._ledger_report import Charge
from ._sql import OPEN, RESERVED, UNUSED, change_charge, write_account


@public_code()
def charge_together(requests: Sequence[tuple[Any, Mapping[str, Any]]], outcome: str = OPEN) -> list[Charge]:
    """Charge several events to data sets of one ledger, all of them or none.

    ``requests`` are data sets with the arguments of :meth:`LedgerDataset._charging`. Other objects that have
    a method ``charge`` are charged one after the other.
    """
    datasets = [dataset for dataset, _ in requests]
    plain = outcome == OPEN and not any({"reserved", "key"} & arguments.keys() for _, arguments in requests)
    if (plain and len(requests) < 2) or not all(isinstance(dataset, LedgerDataset) for dataset in datasets):
        return [dataset.charge(**arguments) for dataset, arguments in requests]
    prepared = [dataset._charging(**arguments, outcome=outcome) for dataset, arguments in requests]

    def work(connection: Connection) -> list[Charge]:
        charges: list[Charge] = []
        for charging in prepared:
            try:
                charges.append(charging(connection))
            except BudgetExceededError as error:
                if len(prepared) == 1:
                    raise
                raise BudgetExceededError(
                    f"{len(prepared)} charges are made together or not at all, and only the first "
                    f"{len(charges)} fit: {error}"
                ) from None
        return charges

    charges: list[Charge] = datasets[0].ledger._store.transact(work, write=True)
    return charges


def take_back(dataset: LedgerDataset, charge: Charge) -> None:
    """Take back a charge that is still reserved. It stays if the ledger cannot be written."""

    def work(connection: Connection) -> None:
        if change_charge(connection, charge, "outcome", UNUSED, before=RESERVED):
            account = dataset.ledger._account(connection, dataset.name)
            write_account(connection, account.without(charge.event))

    with suppress(OSError, ValueError, Warning):
        dataset.ledger._store.transact(work, write=True)


@contextmanager
def recorded_outcome(ledger: object, charge: Charge | None) -> Iterator[None]:
    """Context manager that records in a ledger whether the releases of a charge finish or fail.

    Of an error, only the type is recorded, as :func:`own_errors` lets it pass: others may quote rows. The fit
    goes on if the outcome cannot be recorded, for example because the file was removed.

    Parameters
    ----------
    ledger : data set of a ledger, or None
        What was charged.
    charge : Charge or None
        The charge; None records nothing.
    """
    record = getattr(ledger, "_record_outcome", None)
    outcome = "finished"
    try:
        yield
    except BaseException as error:
        outcome = f"failed: {name_of(error)}"
        raise
    finally:
        if charge is not None and callable(record):
            # A warning of a locked ledger may be an error, by a filter.
            with suppress(OSError, ValueError, Warning):
                record(charge, outcome)
