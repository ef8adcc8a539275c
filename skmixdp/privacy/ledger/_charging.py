"""Charges that are made together, and the record of how their releases end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from sqlite3 import Connection
from typing import Any

from ..accounting.budgets import mu_of_budget
from ..accounting.events import GaussianEvent
from ._account import Account, BudgetExceededError
from ._ledger import LedgerDataset
from ._report import Charge


def charge_together(requests: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Charge]:
    """Charge several events to data sets of one ledger, all of them or none.

    Parameters
    ----------
    requests : sequence of pairs
        Data sets, and the arguments of :meth:`LedgerDataset.charge`. Other objects with this method are
        charged one after the other.

    Raises
    ------
    BudgetExceededError
        If the budgets do not allow all of these charges. None is made then.
    """
    datasets = [dataset for dataset, _ in requests]
    if len(requests) < 2 or not all(isinstance(dataset, LedgerDataset) for dataset in datasets):
        return [dataset.charge(**arguments) for dataset, arguments in requests]
    prepared = [dataset._charging(**arguments) for dataset, arguments in requests]

    def work(connection: Connection) -> list[Charge]:
        made: list[Charge] = []
        for one in prepared:
            try:
                made.append(one(connection))
            except BudgetExceededError as error:
                raise BudgetExceededError(
                    f"{len(prepared)} charges are made together or not at all, and only the first "
                    f"{len(made)} fit: {error}"
                ) from None
        return made

    charges: list[Charge] = datasets[0].ledger._store.transact(work, write=True)
    return charges


def refuse_beyond_budget(releases: Sequence[Any]) -> None:
    """Refuse releases that the budgets of their ledgers do not allow one after another; nothing is charged.

    ``releases`` are estimators with the parameters ``epsilon``, ``delta`` and ``ledger``. Those that sample
    batches are left out, since only their fit tells the charge. Each is charged in its fit all the same,
    since another process may charge the ledger in between.
    """
    accounts: dict[LedgerDataset, Account] = {}
    for number, release in enumerate(releases):
        dataset = release.ledger
        if not isinstance(dataset, LedgerDataset) or getattr(release, "batch_size", None) is not None:
            continue
        terms = {"neighboring": release.neighboring, "noise": release.noise}
        if release.epsilon is None:
            event = GaussianEvent(release.noise_multiplier, release.n_steps, noise=release.noise)
        else:
            mu = mu_of_budget(release.epsilon, release.delta, **terms)
            event = GaussianEvent(1 / mu, 1, noise=release.noise)
        before = accounts.get(dataset, dataset.account)
        try:
            accounts[dataset] = before.after(event, release.neighboring, unit=before.unit)
        except BudgetExceededError as error:
            if not number:
                raise
            raise BudgetExceededError(
                f"the steps before leave too little for {type(release).__name__}, so none is fitted: {error}"
            ) from None


@contextmanager
def recorded_outcome(ledger: Any, charge: Charge | None) -> Iterator[None]:
    """Context manager that records in a ledger whether the releases of a charge finish or fail.

    Of an error, only the type is recorded, since its message may quote rows. The fit goes on if the outcome
    cannot be recorded, for example because the file was removed.

    Parameters
    ----------
    ledger : data set of a ledger, or None
        What was charged.
    charge : Charge or None
        The charge; None records nothing.
    """
    record = getattr(ledger, "record_outcome", None)
    outcome = "finished"
    try:
        yield
    except BaseException as error:
        outcome = f"failed: {type(error).__name__}"
        raise
    finally:
        if charge is not None and callable(record):
            with suppress(OSError, ValueError):
                record(charge, outcome)
