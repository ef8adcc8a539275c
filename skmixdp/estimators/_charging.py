"""How an estimator pays a ledger for its fit."""

from typing import Any

from ..privacy import Charge, Event, PrivacyLedger


def check_ledger(ledger: Any, dataset: Any) -> None:
    """A ledger and the name of a data set in it, or neither."""
    if ledger is None and dataset is None:
        return
    if ledger is None:
        raise ValueError(f"dataset={dataset!r} was given without ledger; pass the ledger that it is in.")
    if dataset is None:
        raise ValueError(f"ledger={ledger!r} was given without dataset; name the data set whose rows are X.")
    # By duck typing: a search hands its fits something that stands in the place of a ledger.
    if isinstance(ledger, type) or not callable(getattr(ledger, "charge", None)):
        raise ValueError(f"ledger={ledger!r} must be None or a skmixdp.privacy.PrivacyLedger(path).")
    if not isinstance(dataset, str) or not dataset:
        raise ValueError(f"dataset={dataset!r} must be the name of a data set, a string that is not empty.")


def pay(estimator: Any, event: Event, *, n_rows: int, private: bool) -> Charge | None:
    """Charge a fit that is about to begin: after all checks and before the first release.

    Parameters
    ----------
    estimator : estimator
        Its ``ledger``, ``dataset`` and ``neighboring`` say who pays; without a ledger nobody does.
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
    ledger: PrivacyLedger = estimator.ledger
    return ledger.charge(
        estimator.dataset,
        event,
        neighboring=estimator.neighboring,
        description=f"{type(estimator).__name__}, {n_rows} rows",
        private=private,
    )


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
