"""Privacy of Poisson-sampled Gaussian releases, through ``dp-accounting``.

The privacy loss distribution (PLD) is discretised pessimistically. The result is an upper bound on epsilon,
which gets tighter as the interval shrinks. Releases that are chosen adaptively use Renyi divergences
(Mironov, Talwar and Zhang 2019). A third bound, which is good for little noise, averages the deltas of
Gaussian releases over the number of batches that hold a row.
"""

import logging
import math
from functools import lru_cache

import numpy as np
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.optimize import brentq
from scipy.stats import binom

from . import gaussian
from .events import GaussianEvent, Neighboring, relation_name
from .gaussian import ORDERS, FloatArray, epsilon_of_rdp

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

#: Refining stops when the next interval lowers epsilon by less than this fraction. The error falls with the
#: square of the interval, so that all finer intervals together would gain a 24th of it.
_SETTLED = 1e-3

#: Epsilon above which the first interval suffices: the next one changed epsilon by at most 0.02%.
_COARSE = 50.0

#: Largest sampling rate that dp-accounting supports. Above it, and outside of the noise multipliers below,
#: the bound by the number of batches that hold a row is nearly tight.
_LARGEST_RATE = 1 - 1e-4
#: Smallest noise multiplier that dp-accounting supports.
_LEAST_NOISE = 0.1
#: Largest noise multiplier that dp-accounting supports.
_MOST_NOISE = 1e6

#: Most steps for the numerical accountant. Above, other bounds give epsilon.
_MOST_STEPS = 10**7
#: Most grid cells for this accountant, which needs memory for each. Above, other bounds give epsilon.
_MOST_CELLS = 2e7

#: Error of a composed delta per step, by the rounding of Fourier transforms: 80 times the largest measured.
_DELTA_ERROR = 1e-15

#: Tolerance of calibration in log(noise multiplier).
_PRECISION = 2e-4

#: Smallest ratio of the noise multipliers with and without sampling.
_LEAST_PART = 1e-6

#: The numbers of batches that hold a row are divided into this many groups. Each group is bounded by its
#: largest number.
_GROUPS = 500
#: Groups begin at this many standard deviations below the mean number.
_DEVIATIONS_BELOW = 8.0
#: Fraction of delta for numbers above the last group.
_DELTA_ABOVE = 1e-6

#: Safety factor for the rounding of binomial probabilities and of sums over groups.
_UP = 1 + 1e-6

#: Margin, far above the rounding of the logarithm of a moment.
_ROUNDING = 1e-13


def epsilon_of(event: GaussianEvent, delta: float, neighboring: Neighboring) -> float:
    """An upper bound on the epsilon of ``event`` at ``delta``.

    The time grows with the range of the privacy loss divided by the interval. The range is large if the noise
    is small, but then the error, which falls with the square of the interval, is soon negligible. So the
    interval shrinks only until epsilon changes no more.
    """
    bound = _epsilon_of_batches(event, delta, neighboring)
    if event.sampling_rate > _LARGEST_RATE or not _LEAST_NOISE <= event.noise_multiplier <= _MOST_NOISE:
        return bound
    if bound > _MOST_CELLS * _INTERVALS[0] or event.n_steps > _MOST_STEPS:
        bound = min(bound, _epsilon_of_renyi(event, delta, neighboring))
    spent = math.inf
    # Losses beyond epsilon are rare, so the grid has about epsilon / interval cells.
    if bound <= _MOST_CELLS * _INTERVALS[0] and event.n_steps <= _MOST_STEPS:
        spent = _epsilon(event, delta, neighboring, _INTERVALS[0])
        for interval in _INTERVALS[1:]:
            fine_enough = interval * max(1.0, event.noise_multiplier**2) < _FINEST
            if fine_enough or spent > _COARSE or min(spent, bound) > _MOST_CELLS * interval:
                break
            coarser, spent = spent, min(spent, _epsilon(event, delta, neighboring, interval))
            if coarser - spent <= _SETTLED * spent:
                break
        if spent == math.inf:
            spent = _epsilon_of_renyi(event, delta, neighboring)
    return min(spent, bound)


def _epsilon_of_batches(event: GaussianEvent, delta: float, neighboring: Neighboring) -> float:
    """Epsilon if an attacker knew which batches hold the row: an upper bound for any terms.

    Given these batches, the releases are full-batch ones, as many as there are batches. By joint convexity of
    the divergence, delta is at most its mean over the binomial number of batches.
    """
    full_batch = gaussian.epsilon_for(event.full_mu(neighboring), delta)
    n_steps, rate = float(event.n_steps), event.sampling_rate
    if rate == 1 or not 0 < full_batch < math.inf:
        return full_batch
    mean = n_steps * rate
    most, away = mean, 1.0
    while most < n_steps and binom.sf(most, n_steps, rate) > delta * _DELTA_ABOVE:
        most = min(math.ceil(mean + away * (math.sqrt(mean) + away)), n_steps)
        away *= 1.2
    least = max(math.floor(mean - _DEVIATIONS_BELOW * math.sqrt(mean)), 0.0)
    numbers = np.unique(np.append(np.ceil(np.linspace(least, most, _GROUPS)), most))
    above = np.append(binom.sf(numbers, n_steps, rate), 0.0)
    mus = np.sqrt(numbers) * event.full_mu(neighboring) / math.sqrt(n_steps)

    def allowed(epsilon: float) -> bool:
        with np.errstate(divide="ignore", invalid="ignore"):  # mu is 0 without batches
            log_deltas = np.where(mus > 0, gaussian.log_delta(epsilon / mus, mus)[0], -math.inf)
        deltas = np.append(np.exp(log_deltas), 1.0)
        # Summation by parts avoids cancellation.
        total = deltas[0] + float(np.sum(np.maximum(np.diff(deltas), 0.0) * above[:-1]))
        return bool(total * _UP <= delta)

    if allowed(0.0):
        return 0.0
    low, high = 0.0, full_batch
    while high - low > _PRECISION / 100 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if allowed(middle) else (middle, high)
    return high


def _epsilon_of_renyi(event: GaussianEvent, delta: float, neighboring: Neighboring) -> float:
    """Epsilon by Renyi divergences of whole orders, since the series of others may diverge."""
    orders = ORDERS[np.floor(ORDERS) == ORDERS]
    return epsilon_of_rdp(renyi(event, orders, neighboring), delta, orders)


@lru_cache(maxsize=1024)  # it takes up to a second, and the fits of a search need the same values
def _epsilon(event: GaussianEvent, delta: float, neighboring: Neighboring, interval: float) -> float:
    """Epsilon by one discretisation: an upper bound for any interval, infinite if there is none."""
    delta_left = delta - _DELTA_ERROR * event.n_steps
    if delta_left <= 0:
        return math.inf
    accountant = pld_privacy_accountant.PLDAccountant(
        _RELATION[relation_name(neighboring)], value_discretization_interval=interval
    )
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    step = dp_event.PoissonSampledDpEvent(event.sampling_rate, release)
    accountant.compose(step, event.n_steps)
    return float(accountant.get_epsilon(delta_left))


def renyi(event: GaussianEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    """Upper bounds (n_orders,) on the Renyi divergences of ``event``; infinite for orders without a bound.

    Replacing a row removes one and adds another: by the weak triangle inequality (Mironov 2017, Corollary 4),
    ``D_a(P | R) <= (a - 1/2) / (a - 1) D_2a(P | Q) + D_(2a - 1)(Q | R)``.
    """
    if not _LEAST_NOISE <= event.noise_multiplier <= _MOST_NOISE or event.sampling_rate > _LARGEST_RATE:
        return np.full(orders.shape, np.inf)
    if relation_name(neighboring) == "add_or_remove_one":
        return _renyi_of_zeroing(event, orders)
    out, back = np.split(_renyi_of_zeroing(event, np.append(2 * orders, 2 * orders - 1)), 2)
    return np.asarray((orders - 0.5) / (orders - 1) * out + back)


def _renyi_of_zeroing(event: GaussianEvent, orders: FloatArray) -> FloatArray:
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    log, converged = logging.getLogger("absl"), lambda record: "failed to converge" not in record.getMessage()
    log.addFilter(converged)  # orders whose series does not converge are infinite, which is an upper bound
    try:
        accountant.compose(dp_event.PoissonSampledDpEvent(event.sampling_rate, release), event.n_steps)
    finally:
        log.removeFilter(converged)
    # Rounding can make a very small divergence 0 or negative.
    rounding = _ROUNDING * event.n_steps / (orders - 1)
    return np.asarray(np.maximum(accountant.rdp, 0.0) * (1 + _ROUNDING) + rounding)


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float,
    neighboring: Neighboring,
    upper: float,
) -> float:
    """Noise multiplier with which sampled releases spend at most ``epsilon``, and nearly all of it.

    ``upper`` is the multiplier of full batches.
    """

    def excess(log_multiplier: float) -> float:
        """Logarithm of the ratio of the spent epsilon to ``epsilon``, which is nearly linear."""
        event = GaussianEvent(math.exp(log_multiplier), n_steps, sampling_rate)
        return math.log(max(epsilon_of(event, delta, neighboring) / epsilon, 1e-3))

    # A guess by the central limit theorem, with a margin. Accounting takes long for little noise.
    guess = 1.5 / math.sqrt(math.log1p(max(sampling_rate * upper, 1e-100) ** -2))
    high = min(max(guess, 0.5), upper)
    if excess(math.log(high)) > 0:
        high = upper
    low = min(_LEAST_NOISE, high) / 2
    while excess(math.log(low)) <= 0:
        if low < _LEAST_PART * upper:  # delta alone may cover that a row is in a batch
            return low
        low, high = low / 2, low
    point = brentq(excess, math.log(low), math.log(high), xtol=_PRECISION)
    while excess(point) > 0:
        point += _PRECISION
    return min(math.exp(point), upper)
