"""Privacy of Poisson-sampled Gaussian releases, through ``dp-accounting``.

The privacy loss distribution (PLD) is discretised pessimistically: the result is an upper
bound on epsilon that comes closer to it as the interval shrinks.
"""

import math

from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant
from scipy.optimize import brentq

from .events import GaussianEvent, Neighboring

_RELATION = {
    # Zeroing out a row has the same privacy loss as adding or removing it.
    "add_or_remove_one": privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE,
    # The accountant doubles the sensitivity by itself here: the multiplier is not halved.
    "replace_one": privacy_accountant.NeighboringRelation.REPLACE_ONE,
}

#: Discretisations of the privacy loss: one to search on, one to approach, one to report.
_COARSE, _MIDDLE, _FINE = 5e-3, 5e-4, 1e-4

#: A calibrated multiplier may leave this fraction of epsilon unspent.
_UNSPENT = 3e-4


def epsilon_of(
    event: GaussianEvent, delta: float, neighboring: Neighboring, interval: float = _FINE
) -> float:
    """Epsilon of ``event`` at ``delta``, an upper bound at any ``interval``."""
    accountant = pld_privacy_accountant.PLDAccountant(
        _RELATION[neighboring], value_discretization_interval=interval
    )
    release = dp_event.GaussianDpEvent(event.noise_multiplier)
    step = dp_event.PoissonSampledDpEvent(event.sampling_rate, release)
    accountant.compose(step, event.n_steps)
    return float(accountant.get_epsilon(delta))


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    *,
    n_steps: int,
    sampling_rate: float,
    neighboring: Neighboring,
    upper: float,
) -> float:
    """Multiplier with which sampled releases spend ``epsilon`` but for 3 parts in 10,000.

    The root is found on a coarse discretisation, which is cheap and within some percent, and
    corrected on finer ones by secant steps that aim just below the budget.

    Parameters
    ----------
    epsilon, delta : float
        The budget.
    n_steps, sampling_rate, neighboring
        As in :class:`GaussianEvent`.
    upper : float
        A multiplier that is large enough.
    """

    def excess(log_sigma: float, interval: float) -> float:
        event = GaussianEvent(math.exp(log_sigma), n_steps, sampling_rate)
        spent = epsilon_of(event, delta, neighboring, interval)
        return math.log(max(spent, 1e-12) / epsilon)

    high = math.log(upper)
    low = high - 0.5
    while excess(low, _COARSE) < 0:
        low, high = low - 0.5, low
    point = float(brentq(excess, low, high, args=(_COARSE,), xtol=1e-3))
    slope = (excess(point + 0.02, _COARSE) - excess(point, _COARSE)) / 0.02
    for interval in (_MIDDLE, _FINE):
        value = excess(point, interval)
        while not -_UNSPENT <= value <= 0:
            last, point = (point, value), point - (value + _UNSPENT / 2) / slope
            value = excess(point, interval)
            slope = (value - last[1]) / (point - last[0])
    return math.exp(point)
