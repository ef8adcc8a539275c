"""One noisy sum outside of any fit, with a budget of its own, for NoisyScaler."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._rows import InMemoryRows
from .._utils.validation import check
from ..components import L2Clip
from ..components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..privacy import (
    LEDGER,
    GaussianEvent,
    Neighboring,
    Noise,
    PrivacyReport,
    accountant_name,
    epsilon_of_event,
    noise_multiplier_for,
    recorded_outcome,
)
from ..privacy.noise import check_noise, noise_caveats, noise_source
from .loop import Asked, OpenRows, drive, of_rows
from .plan import Budget, as_reported, charge_event
from .release import GaussianMechanism, Released


@dataclass(frozen=True)
class SumBudget:
    """The budget of one noisy sum, checked when made; the ``ledger`` is charged before the release."""

    epsilon: float
    delta: float
    neighboring: Neighboring
    noise: Noise
    random_state: Any
    ledger: Any = None

    def __post_init__(self) -> None:
        if self.epsilon is None:
            raise ValueError("epsilon=None does not determine the noise; pass a positive number.")
        Budget(self.epsilon, self.delta, 1, None, self.neighboring, self.noise)  # checks them
        check_noise(self.noise, self.random_state)
        check("ledger", self.ledger, None, LEDGER)

    @property
    def event(self) -> GaussianEvent:
        """The event of the release, for accounting."""
        multiplier = noise_multiplier_for(
            self.epsilon, self.delta, n_steps=1, neighboring=self.neighboring, noise=self.noise
        )
        return GaussianEvent(multiplier, 1, noise=self.noise)


@np.errstate(all="ignore")
def noisy_sum(
    contributions: FloatArray,
    bound: float,
    budget: SumBudget,
    treated_as_public: tuple[str, ...],
    description: str,
    leaks: tuple[str, ...] = (),
) -> tuple[FloatArray, PrivacyReport]:
    """The noisy sum (m,) of ``contributions`` (n_samples, m) of PRIVATE rows, and its report.

    An absent row contributes zeros. Contributions longer than ``bound``, which is known without looking at
    the rows, are scaled down to it. ``treated_as_public`` and ``leaks`` are for the report and the ledger,
    where ``description`` names the caller. The report's noise multiplier is in units of the bound, up to
    rounding. If the ledger does not admit the release, nothing is charged or released.

    *Guarantee*: (epsilon, delta)-differentially private in the rows, as one Gaussian release of L2
    sensitivity ``bound`` through ``_engine/release.py``. The clip enforces the bound, rounding included.
    """
    event = budget.event
    clip = L2Clip(bound)
    noise = noise_source(budget.noise, budget.random_state)
    values = np.asarray(contributions, dtype=np.float64)
    rows = InMemoryRows(values, np.zeros(len(values)), exact=noise.needs_grid)
    query = PrivateQuery(
        points=np.zeros((0, values.shape[1])),
        contribute=lambda Z, block: (clip.weights(block.norms, lambda: block.max_abs)[:, np.newaxis], None),
        releases=(ReleasedArray(clip.sensitivity(np.dtype("float64"))),),
    )
    charge = charge_event(
        budget.ledger,
        event,
        neighboring=budget.neighboring,
        description=f"{description}, {len(values)} rows",
        private=noise.kind != "seeded",
        leaks=leaks,
    )
    mechanism = GaussianMechanism(event.noise_multiplier, event.n_steps, noise)

    def asked() -> Generator[Asked, Released, FloatArray]:
        mechanism.begin_step(None)
        released = yield mechanism, query
        return released.arrays[0]

    with recorded_outcome(budget.ledger, charge):
        (total,) = drive([of_rows(OpenRows(rows), asked())])
    report = PrivacyReport(
        epsilon=epsilon_of_event(event, budget.delta, budget.neighboring),
        delta=float(budget.delta),
        mu=event.mu(budget.neighboring),
        noise_multiplier=event.noise_multiplier,
        n_steps=1,
        sampling_rate=1.0,
        neighboring=budget.neighboring,
        accountant=accountant_name(event),
        n_private=len(values),
        n_public=0,
        treated_as_public=treated_as_public,
        noise=noise.kind,
        warnings=noise_caveats(noise, budget.delta, len(values)),
        leaks=leaks,
        **as_reported(charge),
    )
    return total[0], report
