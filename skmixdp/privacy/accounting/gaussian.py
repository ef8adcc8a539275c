"""Privacy of composed full-batch Gaussian releases, in closed form.

A release of multiplier ``sigma`` is ``1/sigma``-Gaussian-DP; ``T`` of them are
``mu``-Gaussian-DP with ``mu = sqrt(sum_t 1 / sigma_t**2)``, which is equivalent to the
curve ``delta(epsilon)`` below (Dong, Roth, Su 2022; Balle and Wang 2018, Theorem 8;
AdaMix, Lemmas 6 and 8). There is no approximation other than rounding, and solutions are rounded to the
safe side.

Discrete noise of parameter ``sigma``, on an integer-valued query of L2 sensitivity 1, has no such curve. It
is ``rho``-zero-concentrated DP with ``rho = 1 / (2 sigma**2)``, as continuous noise is, and ``rho`` adds up
over steps (Canonne, Kamath and Steinke 2020, Theorem 4). Their conversion costs a little more epsilon, and
also serves the Renyi divergences of other releases.

All scalars are plain floats: ``mu``, ``rho``, ``epsilon`` and ``log_delta`` (natural logarithm).
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, ndtr

FloatArray = NDArray[np.floating[Any]]

#: Relative margin by which a limit, ``mu``, ``rho`` or ``epsilon`` is rounded to the conservative side. It is
#: far above the error of the root finder and of the argument of the curve, and still negligible.
_SAFETY = 1e-9

#: Relative margin of the logarithm of a delta, far above the error of :func:`log_delta`.
_CURVE_SAFETY = 1e-10

#: Relative margin, far above the rounding of a few operations.
_ROUNDING = 1e-14

#: Smallest allowed epsilon. Squares of ratios beyond it would overflow.
_SMALLEST_EPSILON = 1e-100
#: Largest allowed epsilon, for the same reason.
_LARGEST_EPSILON = 1e16

#: Shortest interval over which Mills ratios are subtracted; over shorter ones their slope is integrated,
#: since subtraction would cancel digits.
_SHORT = 1e-3

#: Largest ``mu``, whose epsilon is near the end of the range of floats.
_LARGEST_MU = 1e150

#: The orders at which Renyi divergences are kept. Small budgets need large orders.
ORDERS: FloatArray = np.concatenate(
    [np.arange(11, 110) / 10, np.arange(11, 65), [72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024]]
).astype(np.float64)

#: The logarithm of the root of 2 pi.
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
#: The root of pi / 2.
_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def log_delta(x: FloatArray | float, mu: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the exact delta of ``mu``-Gaussian-DP at epsilon ``mu * x``, and its derivative by ``x``.

    With ``a = x - mu/2``, ``b = x + mu/2`` and the Mills ratio ``R(t) = Phi(-t) / phi(t)``, the delta
    ``Phi(-a) - e^epsilon Phi(-b)`` is ``phi(a) (R(a) - R(b))``. For negative ``a`` its complement
    ``Phi(a) + phi(a) R(b)`` is computed. Nothing under- or overflows, and nothing cancels.
    """
    a, b = x - mu / 2, x + mu / 2
    with np.errstate(all="ignore"):  # one formula may overflow where the other one is used
        above, middle, below = (_ROOT_HALF_PI * erfcx(t * math.sqrt(0.5)) for t in (a, x, b))
        # The mean slope of -R: a difference quotient, or over short intervals Simpson's rule on 1 - t R(t).
        short = 1 - (a * above + 4 * x * middle + b * below) / 6
        fall = np.where(mu < _SHORT, short, (above - below) / mu)
        log_density = -a * a / 2 - _LOG_SQRT_2PI
        second = np.exp(log_density) * below
        lost = ndtr(a) + second
        near = a > -1
        value = np.where(near, log_density + np.log(mu * fall), np.log1p(-lost))
        return value, -np.where(near, below / fall, mu * second / (1 - lost))


@lru_cache(maxsize=128)  # a fit needs the same budget for its plan and for calibration
def mu_for(epsilon: float, delta: float) -> float:
    """Largest ``mu`` whose ``delta(epsilon)`` does not exceed ``delta``."""
    _check_range(epsilon)
    target = math.log(delta) * (1 + _CURVE_SAFETY)

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        return float(log_delta(epsilon / mu, mu)[0]) - target

    # A lower bound: with this mu, the Gaussian tail alone is below delta.
    tail = math.sqrt(-2 * target)
    low = high = math.log(2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon)))
    width = 1.0
    while excess(high) < 0:
        high, width = high + width, 2 * width
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - 2 * _SAFETY)


@lru_cache(maxsize=128)  # as for mu_for
def epsilon_for(mu: float, delta: float) -> float:
    """Smallest ``epsilon`` at which ``mu``-Gaussian DP has at most ``delta``; infinite if ``mu`` is huge."""
    return float(epsilons_for(np.array(mu), delta))


def epsilons_for(mus: FloatArray, delta: float) -> FloatArray:
    """:func:`epsilon_for` of many ``mu``; ``mu = 0`` has epsilon 0."""
    target = math.log(delta) * (1 + _CURVE_SAFETY)
    solved = (mus > 0) & (mus < _LARGEST_MU)
    mu = np.where(solved, mus, 1.0)
    needed = log_delta(0.0, mu)[0] > target
    # The logarithm of delta is concave, so Newton's method approaches the root from above, in ten steps if
    # delta is tiny and in forty if it is next to 1. It starts where the Gaussian tail alone is below delta.
    x = step = mu / 2 + math.sqrt(-2 * target)
    while np.any(step > 1e-12 * x):
        value, slope = log_delta(x, mu)
        step = np.where(needed, np.maximum((value - target) / slope, 0.0), 0.0)
        x = x - step
    epsilons = np.where(needed, mu * x * (1 + _SAFETY), 0.0)
    return np.where(solved, epsilons, np.where(mus > 0, math.inf, 0.0))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest epsilon of ``rho``-zCDP at ``delta`` (Canonne, Kamath and Steinke 2020, Corollary 13).

    Any order gives a valid epsilon, so an inexact minimum is still an upper bound.
    """
    if rho == math.inf:
        return math.inf

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # the Renyi order minus 1
        gain = math.log1p(1 / excess) + math.log1p(excess) / excess
        loss = rho * (1 + excess) - math.log(delta) / excess
        return loss - gain + _ROUNDING * (loss + gain)

    # The classical conversion has its minimum at this order; that of the tight one is near it.
    centre = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    least = minimize_scalar(epsilon, bounds=(centre - 6, centre + 6), method="bounded")
    return max(float(least.fun), 0.0)


def rho_for(epsilon: float, delta: float) -> float:
    """Largest ``rho`` that the conversion allows at ``(epsilon, delta)``."""
    _check_range(epsilon)

    def excess(log_rho: float) -> float:
        return epsilon_of_rho(math.exp(log_rho), delta) - epsilon

    # The classical conversion epsilon = rho + 2 sqrt(rho log(1/delta)) bounds the tight one, so
    # the rho that it allows is a lower bound.
    classical = epsilon / (math.sqrt(epsilon - math.log(delta)) + math.sqrt(-math.log(delta)))
    low = 2 * math.log(classical) - 1e-6
    high = low + 1
    while excess(high) < 0:
        high += 1
    # The minimum over orders is inexact by less than this margin.
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - 2 * _SAFETY)


def rdp_limits(epsilon: float, delta: float, orders: FloatArray) -> FloatArray:
    """Largest divergence of each order that (epsilon, delta) allows; negative if none is allowed."""
    limits = epsilon - _conversion_cost(delta, orders)
    return np.asarray(limits - _SAFETY * np.abs(limits))


def epsilon_of_rdp(divergences: FloatArray, delta: float, orders: FloatArray) -> float:
    """Smallest epsilon at ``delta`` that follows from Renyi divergences which were fixed in advance."""
    return max(0.0, float(np.min(divergences * (1 + _ROUNDING) + _conversion_cost(delta, orders))))


def _conversion_cost(delta: float, orders: FloatArray) -> FloatArray:
    """What epsilon exceeds a divergence by (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    gain = np.log(orders) / (orders - 1) - np.log1p(-1 / orders)
    loss = -math.log(delta) / (orders - 1)
    return np.asarray(loss - gain + _ROUNDING * (loss + gain))


def _check_range(epsilon: float) -> None:
    if not _SMALLEST_EPSILON <= epsilon <= _LARGEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon:g} is out of the range of budgets that noise can be computed for; use a "
            f"number from {_SMALLEST_EPSILON:g} to {_LARGEST_EPSILON:g}."
        )
