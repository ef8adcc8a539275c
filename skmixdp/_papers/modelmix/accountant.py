"""Renyi privacy of releases with secret mixtures of heads (ModelMix).

One step releases ``sum + N(0, s_n^2 I)`` plus, in each coordinate, a uniform number from an
interval of width at least ``w``. In units of ``s_n``, a coordinate of the outcome follows
``P0 = N(0, 1) * U[-w/2, w/2]`` or, with one row more, ``P1``: the same shifted by at most
``shift``. With ``L = P1 / P0`` the moments are ``A_j = (E_{P0} L^j)^s`` for a row that reaches
``s`` coordinates, each by ``shift``, and for Poisson batches of rate ``q``

    RDP(alpha) = log(sum_j C(alpha, j) (1 - q)^(alpha - j) q^j A_j) / (alpha - 1).

Two steps of the argument are not proved in the paper: that the worst row spreads over as few coordinates as
its bounds admit (convexity of ``v^2 -> log A_j``), and that the narrowest interval is the worst (``A_j``
falls with ``w``). Both hold on the grids of ``tests/unit/privacy/test_mixing_grids.py``, and nothing is
claimed outside these.

Everything is computed in log space: densities are differences of normal distribution functions,
and the trapezoidal rule converges exponentially fast for these integrands.

Source: ModelMix (Xiao, Wan and Devadas 2022), Theorem 4.1 and Corollary 4.1.
"""

import math
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

from ..._utils.validation import Number, check
from ...components.protocols import FloatArray
from ...privacy.accounting.gaussian import epsilon_of_rdp

Conversion = Literal["tight", "classic"]
CONVERSION: tuple[Conversion, ...] = get_args(Conversion)

#: Convexity and monotonicity were tested up to this order.
MAX_ORDER = 256
#: They were tested up to this shift.
MAX_SHIFT = 6.0
#: They were tested up to this product of order and shift.
MAX_PRODUCT = 250.0
#: They were tested from this width on, above which A_j falls.
MIN_WIDTH = 0.05

#: Largest width, for which the points of the grid can still be counted.
WIDTH = Number("a positive finite number up to 1e15", low=0, high=1e15, closed="right")

#: Step of the trapezoidal rule; 0.2 already agrees with 0.01 to the last digits.
_STEP = 0.1

#: Half the range of the quadrature: a standard normal variable is beyond it with probability 1e-19.
_REACH = 9.0

#: Orders. Fractional ones are dense where large epsilons have their minimum.
_FRACTIONAL: FloatArray = 1 + np.geomspace(0.01, 10, 81)
_INTEGER: FloatArray = np.arange(2.0, MAX_ORDER + 1)

#: Relative margin of safety, far above the error of the quadrature and of the sums.
_RELATIVE = 1e-9
#: Absolute margin of safety for one coordinate, likewise.
_ABSOLUTE = 1e-13


@lru_cache(maxsize=1024)
def epsilon_for(
    *,
    shift: float,
    width: float,
    sampling_rate: float,
    linf_split: int,
    n_steps: int,
    delta: float,
    conversion: Conversion = "tight",
) -> float:
    """Smallest epsilon that the Renyi orders give for ``n_steps`` mixed releases; infinite where untested.

    ``shift`` is the largest change of a coordinate by one row, and ``width`` the smallest width of the
    mixing, both in units of the noise's standard deviation. Conversions are Canonne, Kamath and Steinke 2020,
    Proposition 12, or ``log(1 / delta) / (order - 1)``.
    """
    orders = np.append(_FRACTIONAL, _INTEGER)
    divergences = renyi(
        orders, n_steps, shift=shift, width=width, sampling_rate=sampling_rate, linf_split=linf_split
    )
    if conversion == "tight":
        return epsilon_of_rdp(divergences, delta, orders)
    return float(np.min(divergences - math.log(delta) / (orders - 1)))


def renyi(
    orders: FloatArray, n_steps: int, *, shift: float, width: float, sampling_rate: float, linf_split: int
) -> FloatArray:
    """Renyi divergences (n_orders,) of ``n_steps`` mixed releases; infinite where nothing was tested."""
    is_tested = (orders <= MAX_ORDER) & (orders * shift <= MAX_PRODUCT)
    is_tested &= shift <= MAX_SHIFT and width >= MIN_WIDTH
    if linf_split > 1:
        is_tested &= orders == np.floor(orders)
    divergences = np.full(orders.shape, np.inf)
    if is_tested.any():
        moments = log_moments(orders[is_tested], shift, width, sampling_rate, linf_split)
        margin = _ABSOLUTE * linf_split  # the error of one coordinate, for all coordinates
        divergences[is_tested] = n_steps * (moments * (1 + _RELATIVE) + margin) / (orders[is_tested] - 1)
    return divergences


def log_moments(
    orders: FloatArray, shift: float, width: float, sampling_rate: float, linf_split: int
) -> FloatArray:
    """``(order - 1) RDP(order)`` (n_orders,) of one release, at whole orders unless ``linf_split = 1``."""
    if linf_split == 1:
        return log_ratio_moments(orders, shift, width, sampling_rate)
    if sampling_rate == 1:  # the sum has one term, and the logarithm of (1 - q)^0 is not computed
        return linf_split * log_ratio_moments(orders, shift, width)
    j: FloatArray = np.arange(orders.max() + 1)
    each = linf_split * log_ratio_moments(j, shift, width)
    absent = orders[:, np.newaxis] - j
    terms = (
        gammaln(orders + 1)[:, np.newaxis]
        - gammaln(j + 1)
        - gammaln(np.maximum(absent, 0) + 1)
        + absent * math.log1p(-sampling_rate)
        + j * math.log(sampling_rate)
        + each
    )
    return np.asarray(logsumexp(np.where(absent >= 0, terms, -np.inf), axis=1))


def log_ratio_moments(orders: FloatArray, shift: float, width: float, q: float = 1.0) -> FloatArray:
    """``log E_{P0} (1 - q + q P1 / P0)^order`` of one coordinate (n_orders,), by the trapezoidal rule."""
    check("width", width, WIDTH)
    half = width / 2
    first = -half - _REACH
    # The integrand falls as a Gaussian does beyond half + order * shift.
    n_points = math.ceil((width + orders.max() * shift + 2 * _REACH) / _STEP) + 1
    # Far from both edges P0 and P1 are equal and constant, so these points are only counted.
    flat_from = math.floor((2 * _REACH + shift) / _STEP) + 1
    flat_to = max(math.ceil(width / _STEP), flat_from)
    index = np.concatenate([np.arange(flat_from), np.arange(flat_to, n_points)])
    z = first + _STEP * index
    density = _log_density(z, half)
    ratio = _log_density(z - shift, half) - density
    # At q = 1 there is no log(1 - q).
    mixture = ratio if q == 1 else np.logaddexp(math.log1p(-q), math.log(q) + ratio)
    total = logsumexp(density + orders[:, np.newaxis] * mixture, axis=1) + math.log(_STEP)
    if flat_to > flat_from:
        total = np.logaddexp(total, math.log((flat_to - flat_from) * _STEP / width))
    return np.asarray(total)


def _log_density(z: FloatArray, half: float) -> FloatArray:
    """Logarithm of ``(Phi(z + half) - Phi(z - half)) / (2 half)``, in its left tail."""
    upper, lower = log_ndtr(half - np.abs(z)), log_ndtr(-half - np.abs(z))
    return np.asarray(upper + np.log(-np.expm1(lower - upper)) - math.log(2 * half))
