"""Privacy of Poisson-sampled Gaussian releases, through ``dp-accounting``.

The privacy loss distribution (PLD) is discretised pessimistically. The result is an upper bound on epsilon,
which gets tighter as the interval shrinks. Releases that are chosen adaptively use Renyi divergences
(Mironov, Talwar and Zhang 2019).
"""

import math
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.typing import NDArray
from scipy.optimize import brentq

from . import gaussian
from .events import GaussianEvent, Neighboring, relation_name

_RELATION = {
    # Zeroing out a row has the same privacy loss as adding or removing it.
    "add_or_remove_one": privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE,
    # The accountant doubles the sensitivity itself, so the multiplier is not halved here.
    "replace_one": privacy_accountant.NeighboringRelation.REPLACE_ONE,
}

#: Discretisations of the privacy loss, from coarse to fine.
_INTERVALS = (5e-3, 1e-3, 2e-4, 4e-5, 8e-6)

#: Finest interval for noise multipliers of at most 1. For larger ones, privacy losses shrink with the square
#: of the multiplier, and the interval may do the same.
_FINEST = 1e-4

#: Stop refining when the next interval lowers epsilon by less than this fraction. The error falls with the
#: square of the interval, so even finer intervals would gain a 24th of that.
_SETTLED = 1e-3

#: Far more corrections than any calibration has needed.
_MOST_SECANT_STEPS = 50

#: A calibrated multiplier may leave this fraction of epsilon unspent.
_UNSPENT = 1e-3

#: Largest correction of the logarithm of a multiplier. It prevents a wrong slope from leading to tiny
#: multipliers, for which accounting is slow.
_LONGEST_STEP = 0.3

#: For smaller noise multipliers, the range of the privacy loss is too large for a grid.
_LEAST_NOISE = 0.05

#: The search for a smaller multiplier begins here, since accounting is slow for a guess that is too small.
_ENOUGH_NOISE = 0.8

#: Larger budgets get the noise of full batches, which is little. Sampling would save next to nothing.
_LARGEST_BUDGET, _LARGEST_DELTA = 50.0, 0.5

#: Far above the rounding of the logarithm of a moment.
_ROUNDING = 1e-13


def epsilon_of(event: GaussianEvent, delta: float, neighboring: Neighboring) -> float:
    """An upper bound on the epsilon of ``event`` at ``delta``.

    The time grows with the range of the privacy loss divided by the interval. The range is large if the noise
    is small, but then the error, which falls with the square of the interval, is soon negligible. So the
    interval shrinks only until epsilon changes no more.
    """
    spent = _epsilon(event, delta, neighboring, _INTERVALS[0])
    for interval in _INTERVALS[1:]:
        if interval * max(1.0, event.noise_multiplier**2) < _FINEST:
            break
        coarser, spent = spent, min(spent, _epsilon(event, delta, neighboring, interval))
        if coarser - spent <= _SETTLED * spent:
            break
    return spent


def renyi(
    event: GaussianEvent, orders: NDArray[np.floating[Any]], neighboring: Neighboring
) -> NDArray[np.floating[Any]]:
    """Upper bounds (n_orders,) on the Renyi divergences of ``event``.

    Replacing a row means removing one and adding another. The bound combines the divergences of both changes
    by the weak triangle inequality (Mironov 2017, Corollary 4):
    ``D_a(P | R) <= (a - 1/2) / (a - 1) D_2a(P | Q) + D_(2a - 1)(Q | R)``.
    """
    if relation_name(neighboring) == "add_or_remove_one":
        return _renyi_of_zeroing(event, orders)
    out, back = np.split(_renyi_of_zeroing(event, np.append(2 * orders, 2 * orders - 1)), 2)
    return np.asarray((orders - 0.5) / (orders - 1) * out + back)


def _renyi_of_zeroing(event: GaussianEvent, orders: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    accountant.compose(dp_event.PoissonSampledDpEvent(event.sampling_rate, release), event.n_steps)
    # Rounding can make a very small divergence 0 or negative.
    rounding = _ROUNDING * event.n_steps / (orders - 1)
    return np.asarray(np.maximum(accountant.rdp, 0.0) + rounding)


@lru_cache(maxsize=1024)
def _epsilon(event: GaussianEvent, delta: float, neighboring: Neighboring, interval: float) -> float:
    """Epsilon on one discretisation: an upper bound for any interval.

    The result is cached, since it takes up to a second and the fits of a search need the same values. With
    hardly any noise, it is the epsilon of full batches: sampling never costs privacy.
    """
    full_batch = gaussian.epsilon_for(
        math.sqrt(2 * replace(event, sampling_rate=1.0).rho(neighboring)), delta
    )
    if event.noise_multiplier < _LEAST_NOISE:
        return full_batch
    accountant = pld_privacy_accountant.PLDAccountant(
        _RELATION[relation_name(neighboring)], value_discretization_interval=interval
    )
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    step = dp_event.PoissonSampledDpEvent(event.sampling_rate, release)
    accountant.compose(step, event.n_steps)
    # Of a delta below the mass that the grid cuts off, the accountant knows no finite epsilon.
    return min(float(accountant.get_epsilon(delta)), full_batch)


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float,
    neighboring: Neighboring,
    upper: float,
) -> float:
    """Noise multiplier with which sampled releases spend ``epsilon``, leaving at most a part in 1,000.

    Budgets above 50, or with a delta above 1/2, get ``upper``. For others, the root is found on a coarse
    discretisation, which is cheap, and corrected on a finer one. The result on the finest is extrapolated
    from two intervals, since the error falls with the square of the interval. Secant steps on the reported
    epsilon, aimed just below the budget, follow if needed.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_steps, sampling_rate, neighboring
        As in :class:`GaussianEvent`.
    upper : float
        A multiplier that is large enough, up to the error of the discretisation.

    Raises
    ------
    RuntimeError
        If the search does not end within its limit.
    """

    @cache
    def excess(log_sigma: float, interval: float | None) -> float:
        """Logarithm of the spent epsilon over the budget; the interval None is the reported epsilon."""
        event = GaussianEvent(math.exp(log_sigma), n_steps, sampling_rate)
        if interval is None:
            spent = epsilon_of(event, delta, neighboring)
        else:
            spent = _epsilon(event, delta, neighboring, interval)
        return math.log(max(spent, 1e-12) / epsilon)

    def secant(point: float, slope: float, interval: float | None, low: float, high: float) -> float:
        """A point at which the excess lies in [low, high]."""
        for _ in range(_MOST_SECANT_STEPS):
            value = excess(point, interval)
            if low <= value <= high:
                return point
            last, point = point, point + _bounded(((low + high) / 2 - value) / slope)
            if abs(point - last) > 0.01:  # a shorter step would measure the discretisation
                slope = (excess(point, interval) - value) / (point - last)
        raise RuntimeError(
            f"no noise multiplier was found for epsilon={epsilon:g}, delta={delta:g} at "
            f"sampling_rate={sampling_rate:g}, n_steps={n_steps}; pass a noise_multiplier instead."
        )

    if epsilon > _LARGEST_BUDGET or delta > _LARGEST_DELTA:
        return upper
    # A small budget needs a smaller interval to be resolved at all.
    coarse = min(_INTERVALS[0], epsilon / 50)
    above = math.log(upper)
    # Each evaluation takes time, so steps that lie far above the root are left out.
    start = math.log(max(_central_limit(upper, sampling_rate), _ENOUGH_NOISE))
    above -= 0.5 * max(0, math.floor((above - start) / 0.5))
    while excess(above, coarse) > 0:
        above += 0.5
    below = above - 0.5
    while excess(below, coarse) < 0:
        below, above = below - 0.5, below
    point = float(brentq(excess, below, above, args=(coarse,), xtol=2e-2))

    def slope_at(point: float, interval: float) -> float:
        return (excess(point + 0.02, interval) - excess(point, interval)) / 0.02

    rough, fine = coarse, _INTERVALS[1]
    slope = slope_at(point, rough)
    if excess(point, rough) - excess(point, fine) > 0.02:  # the coarse root is worth little
        point = secant(point, slope, fine, -0.03, 0.03)
        slope = slope_at(point, fine)
        rough, fine = fine, fine / 2
    gain = (fine**2 - _INTERVALS[2] ** 2) / (rough**2 - fine**2)
    foretold = excess(point, fine) - gain * (excess(point, rough) - excess(point, fine))
    point += _bounded(-(foretold + _UNSPENT / 2) / slope)
    return math.exp(secant(point, slope, None, -_UNSPENT, 0))


def _central_limit(upper: float, sampling_rate: float) -> float:
    """Noise multiplier of many sampled steps that cost what full batches at ``upper`` cost.

    Source: Bu, Dong, Long and Su 2020, Theorem 5 (central limit of the composed steps). It is no bound: the
    multiplier of few steps is up to twice as large.
    """
    return 1 / math.sqrt(math.log1p((sampling_rate * upper) ** -2))


def _bounded(step: float) -> float:
    return max(-_LONGEST_STEP, min(step, _LONGEST_STEP))
