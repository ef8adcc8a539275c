"""Transactions: the only code that draws a source of noise, charges, runs what was charged, and reports it.

A fit, a noisy sum or a search has one :class:`Transaction`, which its procedure yields first, after every
refusal. :func:`transact` opens the rows, charges all transactions together, runs the procedures, and records
how they ended.
"""

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

from .._rows.source import LostRowsError, PrivateRows
from .._utils.process import add_note, one_thread, warn, worker_session
from .._utils.validation import check
from ..exceptions import BudgetExceededError
from ..privacy import (
    Charge,
    GaussianEvent,
    LedgerDataset,
    NoiseSource,
    PrivacyReport,
    SearchReport,
    epsilon_of_event,
    noise_multiplier_for,
    recorded_outcome,
    steps_for,
)
from ..privacy.accounting.budgets import Budget, warn_of_epsilon
from ..privacy.accounting.events import Neighboring, Noise, accountant_name
from ..privacy.ledger._charging import charge_together, take_back
from ..privacy.ledger._ledger import LEDGER
from ..privacy.ledger._sql import RESERVED
from ..privacy.noise import DiscreteNoise, check_noise, noise_caveats, seed_of, warn_of_seed
from ..privacy.report import counted
from .loop import (
    NoisyQuery,
    OpenRows,
    Plan,
    Procedure,
    QueryRequest,
    RowsKey,
    Sources,
    bind_rows,
    drive,
    sampling_of,
)
from .release import Released

_Result = TypeVar("_Result")

#: Multiplications in a pass from which several threads save time.
_MUCH_WORK = 70_000_000

#: Releases of this context whose charge is reserved, and that have not begun yet.
_RESERVED: ContextVar[list["Transaction"] | None] = ContextVar("reserved", default=None)

_AMPLIFICATION_WARNING = "the amplification rests on numerical tests of its argument, not on a proof"


@dataclass(eq=False, repr=False)
class Transaction:
    """The privacy budget of one fit, sum or search: its noise, its charge and its report.

    ``name`` says what was fitted or called. Without ``random_state``, the noise is secret; ``seeded`` noise
    is from another source. ``leaks`` were read from private rows without a budget. ``charge`` is set once it
    is made, and before for an interrupted fit, which finds it by its ``key``.

    ``event`` is what is charged, once it is known, for ``n_units`` rows or persons. ``rows`` are opened
    before the charge. ``work`` is the number of multiplications in a pass that threads may share. ``public``
    are public facts that determine, with released numbers, what the fit asks; None if nothing does.
    """

    budget: Budget
    name: str
    ledger: Any = None
    random_state: Any = None
    leaks: tuple[str, ...] = ()
    seeded: bool = False
    charge: Charge | None = None
    key: str | None = None
    event: Any = None
    n_units: int | None = None
    unit: str = "row"
    rows: RowsKey | None = None
    work: int | None = None
    public: tuple[Any, ...] | None = None

    @classmethod
    def of_release(
        cls,
        name: str,
        *,
        epsilon: float | None,
        delta: float,
        neighboring: Neighboring,
        noise: Noise,
        random_state: object,
        ledger: object,
        noise_multiplier: float | None = None,
    ) -> "Transaction":
        """The transaction of a release without a fit; its parameters are checked, and a seed is warned of."""
        if epsilon is None and noise_multiplier is None:
            raise ValueError("epsilon=None does not determine the noise; pass a positive number.")
        n_steps = None if noise_multiplier is None else 1
        budget = Budget(epsilon, delta, n_steps, noise_multiplier, neighboring, noise)
        if epsilon is None:
            warn_of_epsilon(epsilon_of_event(budget.whole, delta, neighboring))
        check_noise(noise, random_state)
        check("ledger", ledger, None, LEDGER)
        warn_of_seed(random_state)
        return cls(budget, name, ledger, random_state)

    @cached_property
    def noise(self) -> NoiseSource:
        """The source of the noise and of other random numbers."""
        return DiscreteNoise() if self.budget.noise == "discrete" else NoiseSource(seed_of(self.random_state))

    @property
    def is_private(self) -> bool:
        """Whether no seed determines the noise."""
        return self.noise.kind != "seeded" and not self.seeded

    def report(
        self,
        treated_as_public: tuple[str, ...],
        *,
        n_public: int = 0,
        plan: Plan | None = None,
        computed_on: str = "cpu",
        shares: tuple[tuple[str, float], ...] = (),
    ) -> PrivacyReport:
        """The report of the releases: by the ``plan`` of a fit, or of one release of the event."""
        neighboring, delta = self.budget.neighboring, self.budget.delta
        event, n_units = self.event, self.n_units
        assert n_units is not None
        epsilon, unamplified = epsilon_of_event(event, delta, neighboring), None
        caveats = noise_caveats(self.noise, epsilon, delta, n_units)
        if event.unamplified is not event:
            unamplified = epsilon_of_event(event.unamplified, delta, neighboring)
            caveats = (*caveats, _AMPLIFICATION_WARNING)
        return PrivacyReport(
            epsilon=epsilon,
            delta=float(delta),
            mu=event.mu(neighboring),
            noise_multiplier=event.noise_multiplier if plan is None else plan.noise_multiplier,
            n_steps=event.n_steps if plan is None else plan.n_steps,
            sampling_rate=event.sampling_rate,
            neighboring=neighboring,
            accountant=accountant_name(event),
            n_private=n_units,
            n_public=n_public,
            treated_as_public=treated_as_public,
            noise=self.noise.kind,
            warnings=caveats,
            leaks=self.leaks,
            epsilon_unamplified=unamplified,
            computed_on=computed_on,
            shares=shares,
            unit=self.unit,
            **({} if self.charge is None else self.charge.as_reported()),
        )

    def search_report(self, **facts: Any) -> SearchReport:
        """The report of a search: ``facts`` of the search, and the fields that the transaction knows."""
        return SearchReport(
            delta=float(self.budget.delta),
            neighboring=self.budget.neighboring,
            **facts,
            **({} if self.charge is None else self.charge.as_reported()),
        )


#: The procedure of a fit or a release: it yields its transaction, whose answer is the charge, then queries.
ChargedProcedure = Generator[Transaction | QueryRequest, Any, _Result]


class Checkpoint(Protocol):
    """Storage for the released numbers of one fit, so that it can be resumed."""

    def resumed(self, procedures: Sequence[ChargedProcedure[_Result]]) -> Sequence[ChargedProcedure[_Result]]:
        """The procedures of fits, one of which continues from its released numbers."""


def transact(
    procedures: Sequence[ChargedProcedure[_Result]], checkpoint: Checkpoint | None = None
) -> list[_Result]:
    """Check all procedures and open their rows, then charge all of them, then run them; return their results.

    *Guarantee*: nothing is charged before everything that can be refused was, and nothing is released before
    everything is charged. Of one ledger, all charges are made or none.
    """
    if checkpoint is not None:
        procedures = checkpoint.resumed(procedures)
    opened: list[Any] = [next(procedure) for procedure in procedures]
    terms = dict.fromkeys((each.budget.delta, each.n_units, each.unit) for each in opened)
    for delta, n_units, unit in terms:
        if delta >= 1 / n_units:
            whose = "a row" if unit == "row" else f"all rows of a {unit}"
            warn(
                f"delta={delta:g} is not below 1/n = {1 / n_units:g}, so the guarantee allows {whose} to be "
                "published outright with that probability; use a smaller delta."
            )
    sources = Sources()
    try:
        with ExitStack() as context:
            if all(each.work is not None and each.work >= _MUCH_WORK for each in opened):
                context.enter_context(worker_session())
            elif all(each.work is not None and each.work < _MUCH_WORK for each in opened):
                context.enter_context(one_thread())
            for each in opened:
                sources.of(each.rows, [opening.rows for opening in opened])
            context.enter_context(charged(opened))
            charges = [each.charge for each in opened]
            return drive(cast("list[Procedure[_Result]]", procedures), sources, charges)
    except LostRowsError as error:
        raise LostRowsError(f"{error} {_how_to_go_on(opened, checkpoint)}") from None


def _how_to_go_on(transactions: Sequence[Transaction], checkpoint: Checkpoint | None) -> str:
    """What a fit whose rows are lost has charged, and how to repeat it."""
    charges = [f"{getattr(each.charge, 'id', '')} to {each.ledger!r}" for each in transactions if each.charge]
    if not charges:
        return "No ledger was charged; fit again."
    remedy = "run the block of resumable() again, which goes on without a second charge."
    if checkpoint is None:
        remedy = "another fit is another charge, unless it runs within resumable() from its start."
    return f"Charge {' and charge '.join(charges)} stays; {remedy}"


def released(
    transaction: Transaction, source: PrivateRows, unit: str, query: Generator[NoisyQuery, Released, _Result]
) -> _Result:
    """Charge the whole budget, and return the result of a generator that queries the rows of a source."""
    transaction.event, transaction.n_units, transaction.unit = transaction.budget.whole, source.n_rows, unit
    transaction.rows = rows = OpenRows(source)

    def procedure() -> ChargedProcedure[_Result]:
        yield transaction
        return (yield from bind_rows(rows, query))

    return transact([procedure()])[0]


@contextmanager
def charged(transactions: Sequence[Transaction]) -> Iterator[None]:
    """Context manager that charges several transactions, and records how they end.

    Those of one ledger are charged together, or none, with a BudgetExceededError; no charge is repeated.
    """
    with ExitStack() as outcomes:
        for group in _grouped_by_ledger(transactions):
            new = [each for each in group if each.charge is None]
            requests = [(each.ledger, _charge_arguments(each) | _reserved_for(each)) for each in new]
            for each, charge in zip(new, charge_together(requests), strict=True):
                each.charge = charge
            for each in group:
                outcomes.enter_context(recorded_outcome(each.ledger, each.charge))
        try:
            yield
        except KeyboardInterrupt as error:
            add_note(error, " ".join(map(_spent_by, transactions)))
            raise


def _spent_by(transaction: Transaction) -> str:
    """What an interrupted release has spent, and where that is recorded."""
    budget, charge = transaction.budget, transaction.charge
    epsilon = epsilon_of_event(transaction.event, budget.delta, budget.neighboring)
    where = (
        "no ledger records it" if charge is None else f"charge {charge.id} to {transaction.ledger!r} says so"
    )
    return f"Epsilon {epsilon:.4g} at delta {budget.delta:g} is spent on {transaction.name}; {where}."


@contextmanager
def reserved(transactions: Sequence[Transaction]) -> Iterator[None]:
    """Context manager that charges the releases of several fits before the first of them.

    Those of one ledger are made together or not at all. A fit within the context replaces its charge by its
    own; at the end, charges that no fit replaced are taken back.
    """
    charged: list[tuple[Any, Charge]] = []
    reservations: list[Transaction] = []
    token = _RESERVED.set(reservations)
    try:
        for group in _grouped_by_ledger(transactions):
            requests = [(each.ledger, _charge_arguments(each)) for each in group]
            for each, charge in zip(group, charge_together(requests, RESERVED), strict=True):
                each.charge = charge
                charged.append((each.ledger, charge))
                reservations.append(each)
        yield
    finally:
        _RESERVED.reset(token)
        for dataset, charge in charged:
            take_back(dataset, charge)


def _reserved_for(mine: Transaction) -> dict[str, Any]:
    """The charge that was reserved for a release, as a keyword argument; empty if there is none."""
    reservations = _RESERVED.get() or []
    for number, theirs in enumerate(reservations):
        if theirs.name == mine.name and same_dataset(theirs.ledger, mine.ledger):
            return {"reserved": reservations.pop(number).charge}
    return {}


def same_dataset(entry: object, second: object) -> bool:
    """Whether two objects are the same data set of a ledger, which may be open twice."""
    return repr(entry) == repr(second) and _ledger_of(entry) == _ledger_of(second)


def _ledger_of(dataset: object) -> Any:
    """A key that is the same for all data sets of one ledger."""
    ledger = getattr(dataset, "ledger", dataset)
    return getattr(ledger, "path", None) or id(ledger)


def _grouped_by_ledger(transactions: Sequence[Transaction]) -> list[list[Transaction]]:
    """The transactions that charge a ledger, grouped by ledger."""
    ledgers: dict[Any, list[Transaction]] = {}
    for each in transactions:
        if each.ledger is not None:
            ledgers.setdefault(_ledger_of(each.ledger), []).append(each)
    return list(ledgers.values())


def _charge_arguments(transaction: Transaction) -> dict[str, Any]:
    """The arguments of a charge."""
    name, n_units, unit = transaction.name, transaction.n_units, transaction.unit
    return {
        "event": transaction.event,
        "neighboring": transaction.budget.neighboring,
        "description": name if n_units is None else f"{name}, {counted(n_units, unit)}",
        "private": transaction.is_private,
        "leaks": transaction.leaks,
        "unit": unit,
        **({} if transaction.key is None else {"key": transaction.key}),
    }


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

    Nothing is charged or reserved. A part of a container is taken to come before all steps of other classes.
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
