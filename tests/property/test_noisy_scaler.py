"""One row never moves the sums of a NoisyScaler by more than the stated sensitivity."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy.accounting.budgets import Budget
from skmixdp.privacy.units import Units
from tests.conftest import Watched
from tests.private_names import Transaction, dotted_path, noisy_sum
from tests.rounding import assert_close

ENTRIES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-2, 2),
    st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e308, -1e308, 0.3]),
)


@st.composite
def row_and_bounds(draw):
    d = draw(st.integers(1, 6))
    row = draw(hnp.arrays(np.float64, d, elements=ENTRIES))
    low = draw(hnp.arrays(np.float64, d, elements=st.floats(-1e300, 1e300)))
    high = low + draw(hnp.arrays(np.float64, d, elements=st.floats(1e-300, 1e300)))
    return row, low, np.where(high > low, high, low + np.maximum(np.abs(low), 1.0))


def watched(fit):
    """The sums to which noise is added, and the scale of the noise."""
    noise = Watched()
    with patch(dotted_path("transaction.NoiseSource"), lambda seed: noise):
        report = fit().privacy_
    (array,), (scale,) = noise.sums, noise.scales
    return array.astype(np.longdouble).ravel(), scale / report.noise_multiplier


@pytest.mark.filterwarnings("ignore:delta:UserWarning", "ignore:many private rows occur:UserWarning")
@given(drawn=row_and_bounds(), with_std=st.booleans())
def test_no_row_adds_more_than_the_sensitivity(drawn, with_std):
    """Two equal rows give twice what one adds, exactly: doubling does not round."""
    row, low, high = drawn
    scaler = NoisyScaler(bounds=(low, high), with_std=with_std)
    array, sensitivity = watched(lambda: scaler.fit(np.vstack([row, row])))
    assert np.linalg.norm(array / 2) <= sensitivity
    assert sensitivity == pytest.approx(math.sqrt(len(row)), rel=1e-6)


@pytest.mark.filterwarnings("ignore:delta:UserWarning")
@pytest.mark.parametrize("noise", ["float", "discrete"])
@pytest.mark.parametrize("corner", ["low", "high", "middle", "beyond"])
def test_removing_a_row_stays_within_the_bound_and_meets_it(corner, noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(50, 4))
    X[0] = {"low": -1.0, "high": 1.0, "middle": 0.0, "beyond": 1e9}[corner]
    move, sensitivity = removal(X, noise)
    assert move <= sensitivity * (1 + 1e-12)
    # Both ends of the square's range meet the bound: a smaller one would be wrong.
    assert move > 0.999 * sensitivity


class GridWatched(Watched):
    """Watched, for sums on a grid."""

    needs_grid = True

    def add_noise(self, array, scale, grid):
        np.testing.assert_array_equal(array / grid, np.round(array / grid))
        return super().add_noise(array, scale, grid)


def removal(X, noise):
    """Move of the released array when the first row is zeroed out, and the stated sensitivity."""
    u = np.clip(X, -1, 1)
    contributions = np.hstack([math.sqrt(2 * math.sqrt(2) - 2) * u, math.sqrt(2) * (u**2 - math.sqrt(0.5))])
    arrays = []
    for rows in (contributions, np.vstack([0 * contributions[:1], contributions[1:]])):
        noises = []

        def keep(*args, noises=noises):
            noises.append(GridWatched() if noise == "discrete" else Watched())
            return noises[-1]

        name = "DiscreteNoise" if noise == "discrete" else "NoiseSource"
        transaction = Transaction(Budget(1.0, 1e-5, None, None, "add_or_remove_one", noise), "test")
        with patch(dotted_path(f"transaction.{name}"), keep):
            _, report = noisy_sum(rows, 2.0, transaction, (), Units(None, len(rows)))
        arrays.append(noises[0].sums[0])
    move = np.linalg.norm(arrays[0].astype(np.longdouble) - arrays[1])
    return float(move), noises[0].scales[0] / report.noise_multiplier


def test_a_row_that_is_longer_than_was_said_is_cut():
    rows = np.array([[30.0, 40.0], [0.3, 0.4]])
    noise = Watched()
    with patch(dotted_path("transaction.NoiseSource"), lambda seed: noise):
        transaction = Transaction(Budget(1.0, 1e-5, None, None, "add_or_remove_one", "float"), "test")
        noisy_sum(rows, 1.0, transaction, (), Units(None, 2))
    assert_close(noise.sums[0], [[0.6 + 0.3, 0.8 + 0.4]])
