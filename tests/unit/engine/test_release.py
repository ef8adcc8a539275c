"""A run is given what its budget covers and nothing more."""

import warnings

import numpy as np
import pytest

from skmixdp.components.protocols import PrivateQuery, ReleasedArray
from skmixdp.privacy.noise import DiscreteNoise
from tests.conftest import Silent, Watched
from tests.private_names import Batch, GaussianMechanism, InMemoryRows, release, sum_error, sum_resolution
from tests.rounding import assert_close, assert_relative

X = np.random.default_rng(0).normal(size=(20, 3))
ROWS = InMemoryRows(X, np.zeros(20, int))


def query(*parts, assemble=None):
    shape = {"points": np.zeros((1, 3)), "contribute": lambda Z, block: (Z + 1, Z + 1), "releases": parts}
    return PrivateQuery(**shape) if assemble is None else PrivateQuery(**shape, assemble=assemble)


BOTH = query(ReleasedArray(0.5, 0.5), ReleasedArray(2.0, 0.5))


def begun(noise, multiplier=1.0, n_steps=1):
    """A mechanism in its first step, which all rows take part in."""
    mechanism = GaussianMechanism(multiplier, n_steps, noise)
    mechanism.begin_step(None)
    return mechanism


def test_each_part_gets_its_own_noise():
    noise = Watched()
    release(ROWS, [(begun(noise, 3.0), BOTH)])
    exact = [3.0 * 0.5 / np.sqrt(0.5), 3.0 * 2.0 / np.sqrt(0.5)]
    assert_relative(noise.scales, exact, 1e-12)


def test_products_that_overflow_give_no_warning():
    """It would tell of a private row."""
    rows = InMemoryRows(np.full((20, 3), 5e29, dtype=np.float32), np.zeros(20, int))
    points = np.array([[1e20, -1e20, 0.0]])
    counted = PrivateQuery(points, lambda Z, block: (None, (Z > 0).astype(float)), (ReleasedArray(1.0),))
    with warnings.catch_warnings(action="error"):
        release(rows, [(begun(Watched(), 3.0), counted)])


def test_the_rounding_of_sums_is_part_of_the_sensitivity():
    """For each part in units of its own terms, on every source that adds with rounding."""
    part = ReleasedArray(0.5, 0.5, longest_term=100.0, later_roundings=1e-6)
    for dtype in ("float32", "float64"):
        rows, noise = InMemoryRows(X.astype(dtype), np.zeros(20, int)), Watched()
        parts = release(rows, [(begun(noise, 3.0), query(part, ReleasedArray(2.0, 0.5)))])[0].stated
        error = sum_error(20, dtype)
        stated = [0.5 + error.of(100.0, 1e-6), 2.0 + error.of(2.0)]
        assert [part.sensitivity for part in parts] == stated
        assert noise.scales == [3.0 * sensitivity / np.sqrt(0.5) for sensitivity in stated]
        assert stated[0] > 0.5 + 100 * error.relative + 2 * 20 * 100 * 1e-6
        assert stated[1] > 2.0 * (1 + (9e-3 if dtype == "float32" else 1e-15))


def test_sums_without_rounding_cost_no_noise():
    rows, noise = InMemoryRows(X, np.zeros(20, int), exact=True), Watched()
    noise.needs_grid = True
    parts = release(rows, [(begun(noise, 3.0), BOTH)])[0].stated
    assert [part.sensitivity for part in parts] == [0.5, 2.0]


def test_what_is_released_are_the_sums():
    noise = Watched()
    release(ROWS, [(begun(noise, 3.0), BOTH)])
    assert_close(noise.sums[0], X.sum(axis=0, keepdims=True))
    assert_relative(noise.sums[1], [20])


def test_shares_of_all_rounds_count_towards_one_step():
    mechanism = begun(Silent(0))
    half = query(ReleasedArray(1.0, 0.3), ReleasedArray(1.0, 0.2))
    release(ROWS, [(mechanism, half)])
    release(ROWS, [(mechanism, half)])
    with pytest.raises(RuntimeError, match="sum to more than 1"):
        release(ROWS, [(mechanism, query(ReleasedArray(1.0, 0.1), ReleasedArray(1.0, 0.1)))])


def test_what_a_step_leaves_is_not_kept_for_the_next():
    mechanism = begun(Silent(0), n_steps=2)
    mechanism.begin_step(None)
    with pytest.raises(RuntimeError, match="sum to more than 1"):
        release(ROWS, [(mechanism, query(ReleasedArray(1.0, 1.0), ReleasedArray(1.0, 0.5)))])


def test_no_step_beyond_those_that_were_paid_for():
    mechanism = GaussianMechanism(1.0, 1, Silent(0))
    with pytest.raises(RuntimeError, match="sum to more than 1"):
        release(ROWS, [(mechanism, BOTH)])  # before the first step begins
    mechanism.begin_step(None)
    with pytest.raises(RuntimeError, match="has been taken"):
        mechanism.begin_step(None)


def test_a_step_is_told_of_once_and_before_its_noise():
    told, noise = [], Watched()
    mechanism = begun(noise, n_steps=2)
    mechanism.before_noise = lambda: told.append(len(noise.sums))
    half = query(ReleasedArray(1.0, 0.25), ReleasedArray(1.0, 0.25))
    release(ROWS, [(mechanism, half)])
    release(ROWS, [(mechanism, half)])
    assert told == [0] and mechanism.step == 1

    def refuses():
        raise RuntimeError("released before")

    mechanism.begin_step(None)
    mechanism.before_noise = refuses
    for _ in range(2):
        with pytest.raises(RuntimeError, match="released before"):
            release(ROWS, [(mechanism, half)])
    assert len(noise.sums) == 4


@pytest.mark.parametrize(
    "part",
    [
        *(ReleasedArray(np.inf), ReleasedArray(np.nan), ReleasedArray(-0.5), ReleasedArray(1.0, 0.0)),
        *(ReleasedArray(1.0, -0.5),),
    ],
)
def test_a_part_without_a_usable_sensitivity_is_refused_before_the_rows_are_asked(part):
    class Unasked(InMemoryRows):
        def private_sums(self, requests):
            raise AssertionError("the rows were asked")

    with pytest.raises(RuntimeError, match="share and a finite sensitivity"):
        release(Unasked(X, np.zeros(20, int)), [(begun(Silent(0)), query(part, ReleasedArray(1.0, 0.1)))])


def test_shares_that_add_up_to_one_but_for_rounding_are_admitted():
    mechanism = begun(Silent(0))
    for _ in range(10):  # ten times 0.1 is a little more than 1
        mechanism.admit(query(ReleasedArray(0.0, 0.1)), ROWS)
    with pytest.raises(RuntimeError, match="sum to more than 1"):
        mechanism.admit(query(ReleasedArray(1.0, 1e-9)), ROWS)


def test_the_rows_are_asked_what_the_question_says():
    mechanism = GaussianMechanism(1.0, 1, Silent(0))
    mask, batch = np.arange(20) < 5, Batch(np.arange(20) < 3, 0.2)
    mechanism.begin_step(mask, batch)
    asked = PrivateQuery(
        np.ones((2, 3)),
        lambda Z, block: (Z, None),
        (ReleasedArray(1.0),),
        panel_rows=64,
        n_fixed=2,
        takes_tensors=True,
    )
    request = mechanism.admit(asked, ROWS)
    assert request.query is asked
    assert request.batch.members is mask and request.batch.taken is batch.taken and request.batch.rate == 0.2
    assert request.resolution is None


def test_every_array_must_be_stated():
    noise = Watched()
    with pytest.raises(RuntimeError, match="must describe each array"):
        release(ROWS, [(begun(noise), query(ReleasedArray(1.0)))])
    assert noise.sums == []


def test_a_batch_holds_for_its_step():
    members, batch = np.arange(20) < 8, Batch(np.arange(20) % 8 < 5, 0.6)
    mechanism = GaussianMechanism(1.0, 2, Silent(0))
    mechanism.begin_step(members, batch)
    matrix, count = release(ROWS, [(mechanism, BOTH)])[0].arrays
    assert_close(matrix[0], X[:5].sum(axis=0))
    assert count == [5]
    mechanism.begin_step(None)
    _, count = release(ROWS, [(mechanism, BOTH)])[0].arrays
    assert count == [20]


class TestDiscrete:
    ON_A_GRID = InMemoryRows(X, np.zeros(20, int), exact=True)

    def test_it_needs_rows_on_a_grid(self):
        with pytest.raises(RuntimeError, match="rows on a grid"):
            release(ROWS, [(begun(DiscreteNoise()), BOTH)])

    def test_the_grid_is_coarse_enough_for_the_part_that_moves_most(self):
        asked = query(ReleasedArray(1e-3, 0.5), ReleasedArray(8.0, 0.5))
        resolution = begun(DiscreteNoise()).admit(asked, self.ON_A_GRID).resolution
        grid = self.ON_A_GRID.grid
        assert resolution == sum_resolution(20, grid, 8.0) > sum_resolution(20, grid, 1e-3)

    @pytest.mark.parametrize("kind", [DiscreteNoise, Silent])
    def test_noise_is_drawn_on_the_grid_of_the_sums_if_it_needs_one(self, kind):
        class Noted(kind):
            def add_noise(self, array, scale, grid):
                grids.append(grid)
                return super().add_noise(array, scale, grid)

        grids = []
        release(self.ON_A_GRID, [(begun(Noted()), BOTH)])
        grid = self.ON_A_GRID.grid
        assert grids == [grid * sum_resolution(20, grid, 2.0) if kind is DiscreteNoise else None] * 2

    def test_it_refuses_a_map_that_leaves_the_grid(self):
        asked = query(ReleasedArray(4.0), assemble=lambda sums: (sums[0] / 3,))
        with pytest.raises(RuntimeError, match="whole multiples"):
            release(self.ON_A_GRID, [(begun(DiscreteNoise()), asked)])

    def test_what_is_released_lies_on_the_grid(self):
        mechanism = begun(DiscreteNoise())
        request = mechanism.admit(BOTH, self.ON_A_GRID)
        grid = self.ON_A_GRID.grid * request.resolution
        matrix, _ = mechanism.add_noise(BOTH, self.ON_A_GRID.private_sums([request])[0], grid)
        np.testing.assert_array_equal(matrix / grid, np.round(matrix / grid))
