"""Noisy sums and histograms outside of any fit, with a budget of their own."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .._engine import GaussianMechanism, OpenRows, as_reported, charge_event, drive, of_rows
from .._rows import ArrayTable, BinCounts, InMemoryRows, Persons, PersonTable, PrivateRows, RowMap
from ..components import L2Clip
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..privacy import (
    NoiseSource,
    PrivacyReport,
    accountant_name,
    epsilon_of_event,
    recorded_outcome,
)
from ..privacy.noise import noise_caveats, noise_source
from ..privacy.sums import SumBudget
from .facts import Learner, Learning, sensitivity_of

_Result = TypeVar("_Result")


def noisy_sum(
    contributions: FloatArray,
    bound: float,
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    description: str,
    leaks: tuple[str, ...] = (),
    persons: Persons | None = None,
) -> tuple[FloatArray, PrivacyReport]:
    """The noisy sum (m,) of ``contributions`` (n_samples, m) of PRIVATE rows, and its report.

    With ``persons``, each of them contributes the mean over their rows.

    An absent row contributes zeros. Contributions longer than ``bound``, which is known without looking at
    the rows, are scaled down to it. The report's noise multiplier is in units of the bound, up to rounding.

    *Guarantee*: that of :func:`noisy_sums`, with one release of L2 sensitivity ``bound``. The clip enforces
    the bound, rounding included.
    """
    clip = L2Clip(bound)
    values = np.asarray(contributions, dtype=np.float64)
    query = PrivateQuery(
        points=np.zeros((0, values.shape[1])),
        contribute=lambda Z, block: (clip.weights(block.norms, lambda: block.max_abs)[:, np.newaxis], None),
        releases=(ReleasedArray(clip.sensitivity(np.dtype("float64"))),),
    )

    def asked(multiplier: float, noise: NoiseSource) -> Learning[FloatArray]:
        learner = Learner(len(values), None, noise, values.dtype)
        total, _ = yield from learner.ask(GaussianMechanism(multiplier, 1, noise), query)
        return np.asarray(total[0])

    def rows(exact: bool) -> PrivateRows:
        labels = np.zeros(len(values))
        if persons is None:
            return InMemoryRows(values, labels, exact=exact)
        table = PersonTable(ArrayTable(values), *persons)
        return table.private_rows(labels, RowMap(None, False, None), values.dtype, exact=exact)

    unit = "row" if persons is None else persons.unit
    return noisy_sums(rows, asked, budget, treated_as_public, description, leaks, unit)


@np.errstate(all="ignore")
def noisy_sums(
    rows: Callable[[bool], PrivateRows],
    asked: Callable[[float, NoiseSource], Learning[_Result]],
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    description: str,
    leaks: tuple[str, ...] = (),
    unit: str = "row",
) -> tuple[_Result, PrivacyReport]:
    """The result of ``asked``, which queries PRIVATE rows for noisy sums, and the report.

    ``rows(exact)`` opens the rows. ``asked(multiplier, noise)`` yields queries that are together as private
    as one Gaussian release of this multiplier. ``treated_as_public`` and ``leaks`` are for the report and the
    ledger, where ``description`` names the caller and ``unit`` what the rows count. If the ledger does not
    admit the releases, nothing is charged or released.

    *Guarantee*: (epsilon, delta)-differentially private in the rows, by releases of ``_engine/release.py``.
    """
    event = budget.event
    noise = noise_source(budget.noise, budget.random_state)
    source = rows(noise.needs_grid)
    charge = charge_event(
        budget.ledger,
        event,
        neighboring=budget.neighboring,
        name=description,
        n_units=source.n_rows,
        unit=unit,
        private=noise.kind != "seeded",
        leaks=leaks,
    )
    with recorded_outcome(budget.ledger, charge):
        (result,) = drive([of_rows(OpenRows(source), asked(event.noise_multiplier, noise))])
    report = PrivacyReport(
        epsilon=epsilon_of_event(event, budget.delta, budget.neighboring),
        delta=float(budget.delta),
        mu=event.mu(budget.neighboring),
        noise_multiplier=event.noise_multiplier,
        n_steps=1,
        sampling_rate=1.0,
        neighboring=budget.neighboring,
        accountant=accountant_name(event),
        n_private=source.n_rows,
        n_public=0,
        treated_as_public=treated_as_public,
        noise=noise.kind,
        warnings=noise_caveats(noise, budget.epsilon, budget.delta, source.n_rows),
        leaks=leaks,
        unit=unit,
        **as_reported(charge),
    )
    return result, report


def noisy_histograms(
    bins: NDArray[np.intp],
    n_bins: int,
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    persons: Persons | None,
) -> tuple[NDArray[np.float64], float, PrivacyReport]:
    """Histograms (h, n_bins) of PRIVATE rows, the standard deviation of their noise, and the report.

    ``bins`` (n_rows, h) are the cells to which a row adds 1. With ``persons``, each of them adds 1 to each
    histogram, divided among the cells as their rows are.

    *Guarantee*: one Gaussian release of the budget, of sensitivity ``sqrt(h)``.
    """
    n_histograms = bins.shape[1]
    n_rows, unit = (len(bins), "row") if persons is None else persons[1:]
    nothing = np.empty((len(bins), 0))  # cells need no features

    def rows(exact: bool) -> PrivateRows:
        if persons is None:
            return InMemoryRows(nothing, bins, exact=exact)
        return PersonTable(ArrayTable(nothing), *persons).label_rows(bins, nothing.dtype)

    def asked(multiplier: float, noise: NoiseSource) -> Learning[tuple[NDArray[np.float64], float]]:
        query = PrivateQuery(
            points=np.zeros((0, 0)),
            contribute=lambda Z, block: (None, BinCounts(block.y, n_bins)),
            releases=(ReleasedArray(sensitivity_of(n_histograms)),),
        )
        learner = Learner(n_rows, None, noise, np.dtype(np.float64))
        counts, scale = yield from learner.ask(GaussianMechanism(multiplier, 1, noise), query)
        return np.asarray(counts, dtype=np.float64).reshape(n_histograms, n_bins), scale

    released, report = noisy_sums(rows, asked, budget, treated_as_public, "private_evaluation", unit=unit)
    return *released, report
