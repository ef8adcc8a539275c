"""Privacy of composed full-batch Gaussian releases, in closed form.

A release of multiplier ``sigma`` is ``1/sigma``-Gaussian-DP; ``T`` of them are
``mu``-Gaussian-DP with ``mu = sqrt(sum_t 1 / sigma_t**2)``, which is equivalent to the
curve ``delta(epsilon)`` below (Dong, Roth, Su 2022; Balle and Wang 2018, Theorem 8;
AdaMix, Lemmas 6 and 8). There is no approximation other than rounding, and solutions are rounded to the
safe side.

Discrete noise of parameter ``sigma``, on an integer-valued query of L2 sensitivity 1, has no such curve. It
is ``rho``-zero-concentrated DP with ``rho = 1 / (2 sigma**2)``, as continuous noise is, and ``rho`` adds up
over steps (Canonne, Kamath and Steinke 2020, Theorem 4). Their conversion costs a little more epsilon.

All scalars are plain floats: ``mu``, ``rho``, ``epsilon`` and ``log_delta`` (natural logarithm).
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfcx, log_ndtr

#: Relative margin by which a solved ``mu``, ``rho`` or ``epsilon`` is moved to the safe side. It is far above
#: the error of the root finder and of the curve, and still negligible.
_SAFETY = 1e-9

#: Budgets outside of this range are refused. Squares of their ratios would leave the range of floats.
_SMALLEST_EPSILON, _LARGEST_EPSILON = 1e-100, 1e16

#: A difference of ``erfcx`` over an interval shorter than this is integrated, since subtracting would cancel.
_SHORT = 1e-3

#: Halvings of an interval that leave nothing but rounding.
_HALVINGS = 60

_SQRT2 = math.sqrt(2.0)


def log_delta(epsilon: float, mu: float) -> float:
    """Natural logarithm of the exact delta of a ``mu``-Gaussian-DP mechanism.

    With ``x = epsilon / mu``, both terms of ``Phi(mu/2 - x) - e^epsilon Phi(-mu/2 - x)``
    carry the factor ``exp(-(x - mu/2)**2 / 2)``; taking it out leaves a difference of two
    scaled complementary error functions, which neither under- nor overflows in the tail. The second term is
    never computed as ``exp(epsilon)`` times ``Phi``, whose logarithms cancel if ``mu`` is huge.
    """
    x = epsilon / mu
    low, high = (x - mu / 2) / _SQRT2, (x + mu / 2) / _SQRT2
    if low > 0:
        return float(-low * low + math.log(0.5 * _drop(low, mu / _SQRT2)))
    if mu < 1:  # both terms are near 1/2, so their difference is taken first
        return math.log((math.erf(-low) + math.erf(high)) / 2 - math.expm1(epsilon) * math.erfc(high) / 2)
    first = log_ndtr(-low * _SQRT2)
    return float(first + math.log1p(-math.exp(-low * low - first) * 0.5 * erfcx(high)))


def _drop(low: float, width: float) -> float:
    """``erfcx(low) - erfcx(low + width)`` for positive ``low``, to many digits for any width.

    Over short intervals it is the integral of the slope by Simpson's rule.
    """
    if width >= _SHORT:
        return float(erfcx(low) - erfcx(low + width))
    return width * (_slope(low) + 4 * _slope(low + width / 2) + _slope(low + width)) / 6


def _slope(x: float) -> float:
    """Minus the derivative of ``erfcx``, ``2 / sqrt(pi) - 2 x erfcx(x)``; expanded for large ``x``."""
    if x < 50:
        return float(2 / math.sqrt(math.pi) - 2 * x * erfcx(x))
    square = x * x
    return (1 - 1.5 / square + 3.75 / square**2 - 13.125 / square**3) / (math.sqrt(math.pi) * square)


@lru_cache(maxsize=128)  # a fit asks for the same budget when it plans and when it calibrates
def mu_for(epsilon: float, delta: float) -> float:
    """Largest ``mu`` whose ``delta(epsilon)`` does not exceed ``delta``."""
    _check_range(epsilon)
    target = math.log(delta)
    root = _increasing_root(lambda u: log_delta(epsilon, math.exp(u)) - target, start=math.log(epsilon))
    return math.exp(root) * (1 - _SAFETY)


def epsilon_for(mu: float, delta: float) -> float:
    """Smallest ``epsilon`` at which a ``mu``-Gaussian-DP mechanism has at most ``delta``.

    Zero where ``delta`` exceeds the total variation ``delta(0) = 2 Phi(mu/2) - 1``.
    """
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # Above mu**2/2 + mu*sqrt(2 log(1/delta)) the Gaussian tail alone is below delta.
    ceiling = mu**2 / 2 + mu * math.sqrt(-2 * target)
    root = _increasing_root(lambda u: target - log_delta(math.exp(u), mu), start=math.log(ceiling))
    return math.exp(root) * (1 + _SAFETY)


def epsilons_for(mus: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """:func:`epsilon_for` of many ``mu``, by bisection. ``mu = 0`` has epsilon 0."""
    target = math.log(delta)
    positive = mus > 0
    mu = np.where(positive, mus, 1.0)
    low = np.zeros_like(mu)
    # The Gaussian tail alone is below delta there; see epsilon_for.
    high = mu**2 / 2 + mu * math.sqrt(-2 * target)
    needed = positive & (_log_deltas(low, mu) > target)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _log_deltas(middle, mu) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(needed, high * (1 + _SAFETY), 0.0)


def _log_deltas(epsilon: NDArray[np.float64], mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """:func:`log_delta` of arrays."""
    x = epsilon / mu
    low, high = (x - mu / 2) / _SQRT2, (x + mu / 2) / _SQRT2
    with np.errstate(all="ignore"):  # each formula may overflow where the other one is used
        tail = -(low**2) + np.log(0.5 * (erfcx(low) - erfcx(high)))
        first = log_ndtr(-low * _SQRT2)
        body = first + np.log1p(-np.exp(-(low**2) - first) * 0.5 * erfcx(high))
    return np.asarray(np.where(low > 0, tail, body))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest epsilon that the conversion of ``rho``-zCDP gives at ``delta``.

    It is infinite for an infinite ``rho``. Any order gives a valid epsilon, so an inexact minimum is
    still an upper bound.

    Source: Canonne, Kamath and Steinke 2020, Corollary 13.
    """
    if rho == math.inf:
        return math.inf

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # the Renyi order less 1
        order = 1 + excess
        return rho * order - math.log1p(1 / excess) - (math.log(delta) + math.log(order)) / excess

    # The classical conversion is minimal at this order; the tight one lies near it.
    centre = 0.5 * math.log(-math.log(delta) / rho)
    found = minimize_scalar(epsilon, bounds=(centre - 6, centre + 6), method="bounded")
    return max(float(found.fun), 0.0)


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
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 - _SAFETY)


def _check_range(epsilon: float) -> None:
    if not _SMALLEST_EPSILON <= epsilon <= _LARGEST_EPSILON:
        raise ValueError(
            f"epsilon={epsilon:g} is out of the range of budgets that noise can be computed for; use a "
            f"number from {_SMALLEST_EPSILON:g} to {_LARGEST_EPSILON:g}."
        )


def _increasing_root(function: Callable[[float], float], start: float) -> float:
    """Root of an increasing function, bracketed by doubling steps from ``start``."""
    low = high = start
    width = 1.0
    while function(low) > 0:
        low, width = low - width, 2 * width
    width = 1.0
    while function(high) < 0:
        high, width = high + width, 2 * width
    return low if low == high else float(brentq(function, low, high, xtol=1e-14, rtol=1e-14))
