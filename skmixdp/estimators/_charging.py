"""How an estimator pays a ledger for its fit."""

from typing import Any

from .._params import check
from ..privacy import LEDGER, Charge, Event


def check_ledger(ledger: Any) -> None:
    """A data set of a ledger, or None."""
    check("ledger", ledger, None, LEDGER)


def pay(estimator: Any, event: Event, *, n_rows: int, private: bool) -> Charge | None:
    """Charge a fit that is about to begin: after all checks and before the first release.

    Parameters
    ----------
    estimator : estimator
        Its ``ledger`` is charged under its ``neighboring``; without one nothing is.
    event : Event
        What the fit is going to release.
    n_rows : int
        Number of private rows, for the charge's description.
    private : bool
        Whether the noise is secret.

    Raises
    ------
    BudgetExceededError
        If it does not fit; nothing may be released then.
    """
    if estimator.ledger is None:
        return None
    charge: Charge = estimator.ledger.charge(
        event,
        neighboring=estimator.neighboring,
        description=f"{type(estimator).__name__}, {n_rows} rows",
        private=private,
    )
    return charge


def paid(charge: Charge | None) -> dict[str, Any]:
    """What a privacy report says of a charge."""
    if charge is None:
        return {}
    return {
        "dataset": charge.dataset,
        "dataset_epsilon": charge.budget,
        "dataset_delta": charge.delta,
        "dataset_spent": charge.spent,
    }
