"""The lengths by which differences from a centre are clipped, number by number."""

import math

import numpy as np
import pytest

from tests.private_names import Block, Centre, SoftmaxLoss, clipped_parts, row_norms
from tests.rounding import assert_relative

PAD = 1e-15
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}

CASES = {
    # |r|, |x|, reach, r^T M x, entries of the centre
    "nothing cancels": (2.0, 3.0, 3.0, 1.0, 0.5),
    "everything cancels": (2.0, 3.0, 3.0, 36.0, math.sqrt(36 / 8)),
    "less than nothing is left": (2.0, 3.0, 3.0, 40.0, math.sqrt(36 / 8)),
    "products that are off by more": (2.0, 3.0, 50.0, 36.0, math.sqrt(36 / 8)),
    "short rows": (2.0, 3e-15, 3e-15, 0.0, 1e-15),
    "no centre": (2.0, 3.0, 3.0, 0.0, 0.0),
}


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("case", CASES)
def test_a_bound_is_the_length_and_all_that_rounding_can_hide(case, dtype):
    r, x, rounding_scale, aligned, entry = CASES[case]
    k, d = 2, 4
    centre = np.full((k, d), entry)
    R = np.array([[0.0, r]], dtype)
    products = np.array([[0.0, aligned / r]], dtype)
    (found,) = Centre(centre).residual_bounds(R, products, None, np.array([x]), np.array([rounding_scale]))

    eps, length = EPS[dtype], math.sqrt(k * d) * entry
    size = r * (rounding_scale + PAD) + length + math.sqrt(k) * PAD
    roundings = (d + k + 1) * eps / 2
    slack = 16 * eps + roundings / (1 - roundings)
    square = max((r * x) ** 2 - 2 * aligned + length**2, 0)
    exact = math.sqrt(square + slack * size**2) + 2 * eps * r * (x + PAD)
    assert found == pytest.approx(max(exact, size / 1024), rel=1e-10, abs=0)


@pytest.mark.parametrize("bad", ["residual", "product", "norm"])
def test_a_row_of_which_nothing_finite_is_known_has_an_infinite_bound(bad):
    R, products, norms = np.ones((3, 2)), np.ones((3, 2)), np.ones(3)
    for row, value in enumerate((math.inf, -math.inf, math.nan)):
        {"residual": R[:, 0], "product": products[:, 0], "norm": norms}[bad][row] = value
    with np.errstate(invalid="ignore"):
        found = Centre(np.ones((2, 4))).residual_bounds(R, products, None, norms)
    np.testing.assert_array_equal(found, np.inf)


@pytest.mark.parametrize("dtype", EPS)
def test_entries_are_bounded_by_the_largest_of_both(dtype):
    X = np.array([[3.0, -4.0], [0.5, 0.25]], dtype)
    R = np.array([[1.0, -2.0, 0.0], [0.5, 0.25, 0.0]], dtype)
    centre = np.array([[0.5, 0.0], [0.0, -7.0], [0.0, 0.0]])
    found = Centre(centre).largest_entries(R, Block(X, np.zeros(2), row_norms(X)), None)
    assert_relative(found, np.array([15.0, 7.25]) * (1 + 4 * EPS[dtype]), 1e-14)


@pytest.mark.parametrize("dtype", EPS)
def test_tensors_are_clipped_by_the_bounds_of_arrays(dtype):
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")

    class Spy:
        def weights(self, norms, largest):
            seen.append((np.asarray(norms), np.asarray(largest())))
            return 0 * norms

    seen = []
    rng, loss = np.random.default_rng(0), SoftmaxLoss(3)
    X, y = rng.normal(size=(50, 4)).astype(dtype), rng.integers(3, size=50)
    centre, W = 3 * rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    Z = X @ np.concatenate([W, centre]).astype(dtype).T
    block = Block(X, y, row_norms(X))
    there = Block(*map(torch.from_numpy, (block.X, block.y, block.norms)))
    clipped_parts(torch.from_numpy(Z.copy()), there, loss, Centre(centre), Spy())
    clipped_parts(Z.copy(), block, loss, Centre(centre), Spy())
    (norms, entries), (expected_norms, expected_entries) = seen
    tolerance = 1e-6 if dtype == "float32" else 1e-14  # residuals differ in the last place
    assert_relative(norms, expected_norms, tolerance)
    assert_relative(entries, expected_entries, tolerance / 10)
