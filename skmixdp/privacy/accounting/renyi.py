"""Renyi divergences as budgets: orders, and the conversion to epsilon and delta.

Orders are floats above 1; budgets are pairs (epsilon, delta).
"""

import math

import numpy as np

from .gaussian import FloatArray

#: The orders at which Renyi divergences are kept. Small budgets need large orders.
ORDERS: FloatArray = np.concatenate(
    [np.arange(11, 110) / 10, np.arange(11, 65), [72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024]]
).astype(np.float64)

#: Relative margin by which a limit is rounded down.
_SAFETY = 1e-9

#: Relative margin, far above the rounding of a few operations.
_ROUNDING = 1e-14


def rdp_limits(epsilon: float, delta: float, orders: FloatArray) -> FloatArray:
    """Largest Renyi divergence of each order that (epsilon, delta) allows; negative if none is allowed.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    limits = epsilon - _conversion_cost(delta, orders)
    return np.asarray(limits - _SAFETY * np.abs(limits))


def epsilon_of_rdp(divergences: FloatArray, delta: float, orders: FloatArray) -> float:
    """Smallest epsilon at ``delta`` that follows from Renyi divergences which were fixed in advance.

    Source: as for :func:`rdp_limits`.
    """
    return max(0.0, float(np.min(divergences * (1 + _ROUNDING) + _conversion_cost(delta, orders))))


def _conversion_cost(delta: float, orders: FloatArray) -> FloatArray:
    gain = np.log(orders) / (orders - 1) - np.log1p(-1 / orders)
    loss = -math.log(delta) / (orders - 1)
    return np.asarray(loss - gain + _ROUNDING * (loss + gain))
