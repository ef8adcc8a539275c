"""What the amplification of ModelMix rests on, in addition to its theorem.

Two properties that the paper does not prove, on grids; accounting claims nothing outside them
(``MAX_ORDER`` and its companions in ``skmixdp/_papers/modelmix/accountant.py``). A third grid compares,
for fractional orders and sampled batches, a row that moves one coordinate with one that moves two.
"""

import numpy as np
import pytest

from tests.private_names import MAX_ORDER, MAX_PRODUCT, MAX_SHIFT, MIN_WIDTH, log_ratio_moments
from tests.private_names import accountant as mixing
from tests.rounding import assert_relative

#: Rounding of a moment: relative and absolute.
RELATIVE, ABSOLUTE = 1e-12, 3e-14

THIN = {"n_widths": 4, "n_shifts": 9, "n_orders": 6}
FULL = {"n_widths": 31, "n_shifts": 49, "n_orders": 20}
sizes = pytest.mark.parametrize(
    "size", [THIN, pytest.param(FULL, marks=pytest.mark.slow)], ids=["thin", "full"]
)


def whole_orders(high, n):
    return np.unique(np.round(np.geomspace(2, high, n)))


@sizes
@pytest.mark.parametrize(("high", "top_shift"), [(64, MAX_SHIFT), (MAX_ORDER, 1.5), (MAX_ORDER, 0.2)])
def test_log_moments_are_convex_in_the_squared_shift(size, high, top_shift):
    orders = whole_orders(high, size["n_orders"])
    squares = np.linspace(0, top_shift**2, size["n_shifts"])
    for width in np.geomspace(0.01, 1000, size["n_widths"]):
        A = np.array([log_ratio_moments(orders, np.sqrt(square), width) for square in squares])
        assert np.abs(A[0]).max() < 1e-10
        bends = A[2:] - 2 * A[1:-1] + A[:-2]
        assert np.all(bends >= -4 * (ABSOLUTE + RELATIVE * np.abs(A[2:])))


@sizes
def test_moments_fall_as_the_mixing_widens(size):
    orders = whole_orders(MAX_ORDER, size["n_orders"])
    widths = np.geomspace(MIN_WIDTH, 1000, 3 * size["n_widths"])
    for product in np.geomspace(0.01, MAX_PRODUCT, size["n_shifts"]):
        for order in orders:
            if product / order > MAX_SHIFT:
                continue
            one = np.array([order])
            A = np.array([log_ratio_moments(one, product / order, width)[0] for width in widths])
            assert np.all(np.diff(A) <= 2 * (ABSOLUTE + RELATIVE * np.abs(A[1:])))


def test_beyond_the_grid_moments_fall_as_one_over_the_width():
    """Edges far apart act alone: ``A_j - 1`` is exactly proportional to ``1 / width``."""
    orders = np.array([2.0, 3, 8])
    near, far = (np.expm1(log_ratio_moments(orders, 0.5, width)) * width for width in (1e3, 1e5))
    assert_relative(near, far, 1e-8)
    assert np.all(near > 0)


def one_coordinate(shift, width, q, order):
    """Weights and ratios of P0 on a grid, to be combined over coordinates."""
    z = np.arange(-width / 2 - 9, width / 2 + order * shift + 9, 0.2)
    density = mixing._log_density(z, width / 2)
    return density + np.log(0.2), mixing._log_density(z - shift, width / 2) - density


@sizes
def test_fractional_orders_are_largest_where_one_coordinate_takes_all(size):
    orders = [1.05, 1.5, 2.5, 7.3]
    dense = size is FULL
    for q in (0.001, 0.02, 0.3, 1) if dense else (0.02, 1):
        for shift in (0.3, 1, 2.75, 6) if dense else (0.3, 2.75):
            for width in (0.05, 0.5, 3, 10, 40) if dense else (0.5, 10):
                alone = mixing.log_moments(np.array(orders), shift, width, q, 1)
                for part in (0.01, 0.1, 0.3, 0.5) if dense else (0.1, 0.5):
                    for order, bound in zip(orders, alone, strict=True):
                        pair = (shift * np.sqrt(1 - part), shift * np.sqrt(part))
                        (w1, r1), (w2, r2) = (one_coordinate(s, width, q, order) for s in pair)
                        ratio = r1[:, None] + r2
                        mixture = ratio if q == 1 else np.logaddexp(np.log1p(-q), np.log(q) + ratio)
                        shared = np.logaddexp.reduce((w1[:, None] + w2 + order * mixture).ravel())
                        assert shared <= bound + ABSOLUTE + RELATIVE * abs(bound)


@sizes
def test_fractional_orders_fall_as_the_mixing_widens(size):
    orders = np.array([1.01, 1.2, 1.5, 2.5, 7.3])
    widths = np.geomspace(MIN_WIDTH, 1000, 3 * size["n_widths"])
    for q in (0.001, 0.02, 0.3, 1):
        for shift in np.geomspace(0.01, MAX_SHIFT, size["n_orders"]):
            A = np.array([mixing.log_moments(orders, shift, width, q, 1) for width in widths])
            assert np.all(np.diff(A, axis=0) <= 2 * (ABSOLUTE + RELATIVE * np.abs(A[1:])))
