"""Charges of the later steps of a pipeline, computed before its first step."""

import warnings
from typing import Any

from ..exceptions import BudgetExceededError
from ..privacy import GaussianEvent, LedgerDataset, noise_multiplier_for, steps_for
from ..privacy.accounting.budgets import Budget
from .plan import sampling_of
from .transaction import Transaction


def charging_steps(pipe: Any) -> list[Any]:
    """The parts of a pipeline that charge a ledger, without repeats, in order."""
    parts = {id(part): part for part in pipe.get_params().values() if _charges(part)}
    return list(parts.values())


def _charges(part: object) -> bool:
    return isinstance(getattr(part, "ledger", None), LedgerDataset)


def future_transaction(release: Any, n_rows: int | None) -> Transaction:
    """The charge that a step will make, as far as it is known before its fit."""
    parameters = release.get_params(deep=False)
    n_steps, multiplier, batch_size = map(parameters.get, ("n_steps", "noise_multiplier", "batch_size"))
    terms: dict[str, Any] = {"neighboring": release.neighboring, "noise": release.noise}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit repeats the warning
        budget = Budget(release.epsilon, release.delta, n_steps, multiplier, **terms)
    event = budget.whole
    if batch_size is not None and n_rows is not None and (n_steps or multiplier):
        rate = sampling_of(batch_size, n_rows).rate(n_rows)
        if n_steps is None:
            facts: dict[str, Any] = {"noise_multiplier": multiplier, "sampling_rate": rate}
            n_steps = steps_for(release.epsilon, release.delta, **facts, **terms)
        if release.epsilon is not None:  # the number of steps is whole: what is left lowers the noise
            facts = {"n_steps": n_steps, "sampling_rate": rate}
            multiplier = noise_multiplier_for(release.epsilon, release.delta, **facts, **terms)
        event = GaussianEvent(multiplier, n_steps, rate, release.noise)
    ledger = release.ledger
    return Transaction(budget, type(release).__name__, ledger, event=event, unit=ledger.account.unit)


def refuse_without_room(step: Any, pipe: Any, n_rows: int | None) -> None:
    """Refuse a step of a plain pipeline if a ledger has no room for it and for the later steps together.

    Nothing is charged. Nothing is reserved either, so another process may charge in between. A part of a
    container is taken to come before all steps of other classes.
    """
    steps = [part for _, part in pipe.steps if part is step or _charges_once(part)]
    place = next((number for number, part in enumerate(steps) if part is step), None)
    others = [part for part in steps if type(part) is not type(step)]
    later = others if place is None else steps[place + 1 :]
    charges = [future_transaction(part, n_rows) for part in (step, *later)]
    accounts: dict[str, Any] = {}
    for number, each in enumerate(charges):
        name, relation = repr(each.ledger), each.budget.neighboring
        account = accounts.get(name, each.ledger.account)
        try:
            accounts[name] = account.after(each.event, relation, unit=each.unit)
        except BudgetExceededError as error:
            if number == 0:
                raise
            raise BudgetExceededError(
                f"the pipeline charges {len(charges)} steps, and only the first {number} fit: {error}"
            ) from None


def _charges_once(part: Any) -> bool:
    """Whether a step of a pipeline makes a single charge that its parameters determine."""
    names = part.get_params(deep=False) if _charges(part) else ()
    return "epsilon" in names and "neighboring" in names and "noise" in names and "estimator" not in names
