"""Charging a ledger: after all checks and before the first release."""

from typing import Any

from .._params import check
from ..privacy import LEDGER, Charge, Event


def check_ledger(ledger: Any) -> None:
    """Refuse what is neither a data set of a ledger nor None."""
    check("ledger", ledger, None, LEDGER)


def charge_event(
    ledger: Any, event: Event, *, neighboring: str, description: str, private: bool
) -> Charge | None:
    """Charge an event that is about to happen.

    Parameters
    ----------
    ledger : data set of a ledger, or None
        None charges nothing.
    event : Event
        What is going to be released.
    neighboring : str
        Which data sets count as neighbours.
    description : str
        What the ledger says of it.
    private : bool
        Whether the noise is secret.

    Raises
    ------
    BudgetExceededError
        If the budget does not allow it; nothing may be released then.
    """
    if ledger is None:
        return None
    charge: Charge = ledger.charge(event, neighboring=neighboring, description=description, private=private)
    return charge


def as_reported(charge: Charge | None) -> dict[str, Any]:
    """What a privacy report says of a charge."""
    if charge is None:
        return {}
    return {
        "dataset": charge.dataset,
        "dataset_epsilon": charge.budget,
        "dataset_delta": charge.delta,
        "dataset_spent": charge.spent,
    }
