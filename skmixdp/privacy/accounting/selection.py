"""The privacy cost of a search: many trials on the same private rows, of which one is kept.

A trial is a fit. If it is scored on private rows, a noisy count of correctly classified rows is part of it.
All noise is Gaussian at full batch, so a trial is ``mu``-Gaussian-DP. There are two strategies:

- *A fixed number of trials* with plain composition: ``m`` trials are ``sqrt(m) mu``-Gaussian-DP, exactly.
  Every head and every score is charged. Choosing the best by these scores, or by scores on public rows, is
  post-processing.
- *A random number of trials*, geometrically distributed, each with a newly drawn candidate, of which only the
  best is released (Papernot and Steinke 2022, "Hyperparameter Tuning with Renyi Differential Privacy"). The
  others, their scores and their number stay secret. The cost grows with the logarithm of the mean number
  instead of its square root, but starts higher.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from ..._utils.validation import COUNT, POSITIVE, Number, check, number
from .budgets import epsilon_of_event, mu_of_budget
from .composition import rdp_of_event
from .events import MULTIPLIER, NOISE, GaussianEvent, Neighboring, Noise, check_terms, shift_of
from .gaussian import FloatArray, epsilon_of_rdp

#: Range of the mean number of trials. Beyond it, drawing that many would take too long.
_MEAN = Number("a number from 1 to 1e6", low=1, high=1e6, closed="both")

#: Margin of the probability of a single trial, by which accounting charges more.
_MARGIN = 1e-9

#: Relative precision of the budget of a fit, which is rounded down.
_PRECISION = 1e-7

#: A search is refused if each fit would get less than this fraction of the whole budget.
_LEAST = 2.0**-20

#: Orders at which the bound is computed and then minimised, dense enough that the loss is negligible.
_ORDERS = np.concatenate([1 + np.geomspace(0.01, 1, 30), np.geomspace(2.05, 1e5, 160)])


@dataclass(frozen=True)
class TrialLaw:
    """The geometric distribution of a random number of trials, by its mean from 1 to 1e6."""

    mean: float

    def __post_init__(self) -> None:
        check("mean", self.mean, _MEAN)
        vars(self).update(mean=float(self.mean))

    def number(self, u: float) -> int:
        """The quantile function: number of trials for a uniform number ``u`` in [0, 1)."""
        return 1 if self.mean == 1 else 1 + math.floor(math.log1p(-u) / math.log1p(-1 / self.mean))


@dataclass(frozen=True)
class SelectionEvent:
    """The best of a random number of trials, each made of Gaussian releases at full batch.

    Only the best trial is released. The other trials and their number stay secret.

    Parameters
    ----------
    noise_multiplier : float
        Noise multiplier of one Gaussian release that is equivalent to all releases of a trial:
        ``1 / sqrt(sum_t 1 / sigma_t**2)``.
    mean : float
        Expected number of trials, from 1 to 1e6. The number is geometrically distributed.
    noise : {"float", "discrete"}, default="float"
        As in :class:`GaussianEvent`.

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    noise_multiplier: float
    mean: float
    noise: Noise = "float"

    def __post_init__(self) -> None:
        check("noise_multiplier", self.noise_multiplier, MULTIPLIER)
        check("noise", self.noise, *NOISE)
        vars(self).update(noise_multiplier=float(self.noise_multiplier), mean=TrialLaw(self.mean).mean)


@epsilon_of_event.register
def _(event: SelectionEvent, delta: float, neighboring: Neighboring) -> float:
    return epsilon_of_rdp(_divergences(event, _ORDERS, neighboring), delta, _ORDERS)


@rdp_of_event.register
def _(event: SelectionEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    every = np.union1d(_ORDERS, orders)
    return _divergences(event, every, neighboring)[np.searchsorted(every, orders)]


def _divergences(event: SelectionEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    """Upper bounds (n_orders,) on the Renyi divergences of an event, for increasing orders.

    Papernot and Steinke 2022, Theorem 2, for eta = 1. dp-accounting takes up to a second for the same.
    """
    trial = 0.5 * (shift_of(neighboring) / event.noise_multiplier) ** 2 * orders
    log_gamma = math.log((1 - 2 * _MARGIN) / event.mean)
    result = trial + math.log(event.mean) / (orders - 1)
    result = result + 2 * np.min((1 - 1 / orders) * trial - log_gamma / orders)
    # A divergence is at most that of any larger order.
    return np.asarray(np.minimum.accumulate(result[::-1])[::-1])


@dataclass(frozen=True)
class SearchTerms:
    """Settings that determine the privacy loss of a search, except its budget and number of trials.

    ``score_share`` is the fraction of a trial's ``mu**2`` for the noisy count; 0 if scores cost no budget.
    """

    delta: float
    neighboring: Neighboring = "add_or_remove_one"
    noise: Noise = "float"
    score_share: float = 0.0

    def __post_init__(self) -> None:
        check_terms(self.delta, self.neighboring, self.noise)
        check("score_share", self.score_share, number(0, 1, closed="left"))

    def fit_mu(self, fit_epsilon: float) -> float:
        """Full-batch Gaussian-DP parameter of a fit with this epsilon, for one zeroed-out row."""
        return mu_of_budget(fit_epsilon, self.delta, neighboring=self.neighboring, noise=self.noise)

    def trial_multiplier(self, fit_epsilon: float) -> float:
        """Noise multiplier of one Gaussian release that is equivalent to a whole trial."""
        return math.sqrt(1 - self.score_share) / self.fit_mu(fit_epsilon)

    def score_multiplier(self, fit_epsilon: float) -> float | None:
        """Noise multiplier of counts for fits with this epsilon; None if scores cost no budget."""
        if self.score_share == 0:
            return None
        return self.trial_multiplier(fit_epsilon) / math.sqrt(self.score_share)

    def event(self, trials: int | TrialLaw, fit_epsilon: float) -> GaussianEvent | SelectionEvent:
        """The event of a search: fits of this epsilon, and a number or a distribution of ``trials``."""
        trial = self.trial_multiplier(fit_epsilon)
        if isinstance(trials, TrialLaw):
            return SelectionEvent(trial, trials.mean, self.noise)
        check("n_trials", trials, COUNT)
        return GaussianEvent(1 / math.sqrt(trials / trial**2), 1, noise=self.noise)

    @lru_cache  # noqa: B019 (terms are few and small)
    def epsilon(self, trials: int | TrialLaw, fit_epsilon: float) -> float:
        """Epsilon of the whole search; parameters are those of :meth:`event`."""
        return epsilon_of_event(self.event(trials, fit_epsilon), self.delta, self.neighboring)

    @lru_cache  # noqa: B019 (terms are few and small)
    def fit_epsilon(self, trials: int | TrialLaw, epsilon: float) -> float:
        """Largest epsilon of one fit with which the whole search costs at most ``epsilon``."""
        check("epsilon", epsilon, POSITIVE)
        low, high = epsilon / 2, epsilon
        while self.epsilon(trials, low) > epsilon:
            low, high = low / 2, low
            if low < _LEAST * epsilon:
                raise ValueError(
                    f"the budget epsilon={epsilon:g}, delta={self.delta:g} leaves nothing for one of the "
                    "fits of this search; use fewer trials or a larger epsilon."
                )
        if self.epsilon(trials, high) <= epsilon:
            return high

        def excess(log_epsilon: float) -> float:
            """The cost of the search above its budget, as a fraction of the budget."""
            return self.epsilon(trials, math.exp(log_epsilon)) / epsilon - 1

        result = math.exp(brentq(excess, math.log(low), math.log(high), xtol=_PRECISION / 4))
        while self.epsilon(trials, result) > epsilon:
            result *= 1 - _PRECISION / 2
        return result
