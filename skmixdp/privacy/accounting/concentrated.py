"""From zero-concentrated differential privacy to (epsilon, delta).

Discrete Gaussian noise of parameter ``sigma`` on an integer-valued query of L2 sensitivity 1 is
``rho``-zCDP with ``rho = 1 / (2 sigma**2)``, exactly as continuous noise is, and ``rho`` adds up
over steps (Canonne, Kamath and Steinke 2020, Theorem 4). The conversion below is their
Corollary 13; it costs a little more epsilon than the exact Gaussian curve.
"""

import math

from scipy.optimize import brentq, minimize_scalar

#: Relative margin to the safe side, far above the error of the root finder.
_SAFETY = 1e-9


def epsilon_for(rho: float, delta: float) -> float:
    """Smallest epsilon that the conversion gives for ``rho``-zCDP at ``delta``.

    It is infinite for an infinite ``rho``. Any order gives a valid epsilon, so an inexact minimum is
    still an upper bound.
    """
    if rho == math.inf:
        return math.inf

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # the Renyi order less 1
        order = 1 + excess
        return rho * order + math.log(excess / order) - (math.log(delta) + math.log(order)) / excess

    # The classical conversion is minimal at this order; the tight one lies near it.
    centre = 0.5 * math.log(-math.log(delta) / rho)
    found = minimize_scalar(epsilon, bounds=(centre - 6, centre + 6), method="bounded")
    return max(float(found.fun), 0.0)


def rho_for(epsilon: float, delta: float) -> float:
    """Largest ``rho`` that the conversion allows at ``(epsilon, delta)``."""

    def excess(log_rho: float) -> float:
        return epsilon_for(math.exp(log_rho), delta) - epsilon

    # The classical conversion epsilon = rho + 2 sqrt(rho log(1/delta)) bounds the tight one, so
    # the rho that it allows is a lower bound.
    classical = math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))
    low = 2 * math.log(classical) - 1e-6
    high = low + 1
    while excess(high) < 0:
        high += 1
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - _SAFETY)
