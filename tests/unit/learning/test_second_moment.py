"""A noisy second moment, the matrix that it makes for descent, and the clip that rises with the budget."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp.algorithms import Auto
from skmixdp.components import SGD
from skmixdp.components.public import PublicData
from skmixdp.components.updates import Preconditioned, TailAverage
from skmixdp.privacy import NoiseSource
from tests.conftest import learned, make_problem
from tests.private_names import (
    Columns,
    InMemoryRows,
    RowMap,
    WeightedLoss,
    map_share,
    moment_map,
    noisy_matrix,
    preconditioner_of,
    second_moment_share,
    special_table,
    with_weights,
)
from tests.rounding import assert_close

FLOAT = np.dtype("float64")
rng = np.random.default_rng(0)
N, D = 800, 6
SHAPE = rng.normal(size=(D, D)) * [3.0, 1.0, 1.0, 0.3, 0.1, 0.0]
X = rng.normal(size=(N, D)) @ SHAPE.T + [1.0, *np.zeros(D - 1)]
ROW_MAP = RowMap(None, True, None, columns=Columns(np.zeros(D), np.ones(D)), bound=5.0)
ROWS = ROW_MAP(X, np.float64)


def moment_of(rows, multiplier=1e-6, noise=None, members=None):
    source = InMemoryRows(rows, np.zeros(len(rows)))
    return learned(source, noisy_matrix, rows.shape[1], multiplier, noise=noise, members=members)


def clipped_moment(rows):
    """By hand: the outer product of a row is as long as the row squared, and is shortened to 1."""
    squares = np.sum(rows**2, axis=1)
    weights = 1 / np.maximum(squares, 1)
    return (rows * weights[:, np.newaxis]).T @ rows / len(rows)


class TestRelease:
    @pytest.mark.parametrize("longer", [1.0, 3.0])
    def test_without_noise_it_is_that_of_the_rows(self, longer):
        matrix, _ = moment_of(longer * ROWS)
        # The clip is a little below 1, which covers its own rounding.
        np.testing.assert_allclose(matrix, clipped_moment(longer * ROWS), rtol=0, atol=1e-7)

    def test_members_alone_count(self):
        members = np.arange(N) < 300
        rows = np.where(members[:, np.newaxis], ROWS, 1.0)
        found, alone = moment_of(rows, members=members), moment_of(ROWS[:300])
        np.testing.assert_allclose(found[0], alone[0], rtol=0, atol=1e-9)

    def test_sparse_rows_have_the_same(self):
        table = special_table(sp.csr_array(X))
        rows = table.private_rows(np.zeros(N), ROW_MAP, FLOAT, exact=False)
        sparse, _ = learned(rows, noisy_matrix, D, 1e-6)
        np.testing.assert_allclose(sparse, moment_of(ROWS)[0], rtol=0, atol=1e-7)

    def test_its_noise_is_that_of_a_symmetric_matrix(self):
        """Rows of zeros show noise alone; its largest eigenvalue is near the stated one, and hardly above."""
        d = 30
        found = [moment_of(np.zeros((10, d)), 2.0, NoiseSource(seed)) for seed in range(20)]
        assert_close([noise for _, noise in found], np.full(20, 2.0 / 10 * math.sqrt(2 * d)), 1e-6)
        largest = np.array([np.linalg.eigvalsh(matrix).max() for matrix, _ in found]) / found[0][1]
        assert 0.8 < largest.mean() < 1.05 and largest.max() < 1.3

    def test_its_share_follows_public_facts(self):
        assert second_moment_share(0.27, 10**6, 10) == 0.03
        assert second_moment_share(0.27, 1000, 10) == 0 == second_moment_share(1e-9, 10**6, 1)
        for d in (1, 10, 100):  # the least rows in proportion to the root of d, times d
            n = math.sqrt(2 * d / 0.03) * 4 * d / 0.6 / 0.27
            assert second_moment_share(0.27, math.ceil(1.001 * n), d) == 0.03
            assert second_moment_share(0.27, math.floor(0.999 * n), d) == 0


class TestMapOfRows:
    """Rows of a regression after the inverse root of their second moment."""

    @staticmethod
    def mapped(row_map, multiplier=1e-6):
        rows = row_map(X, np.float64)
        source = InMemoryRows(rows, np.zeros(len(rows)))
        matrix, noise = learned(source, noisy_matrix, rows.shape[1], multiplier)
        return moment_map(row_map, matrix, noise, times=1.0)

    @pytest.mark.parametrize("constant", [None, 0.3])
    def test_their_second_moment_is_that_of_a_sphere_and_what_is_stated(self, constant):
        once = self.mapped(replace(ROW_MAP, bound=30.0, intercept_value=constant))
        twice = self.mapped(once[0])
        for row_map, _, largest in (once, twice):
            rows = replace(row_map, intercept_value=None)(X, np.float64)
            moments = np.linalg.eigvalsh(rows.T @ rows / N)
            assert moments[-1] <= largest  # which has a margin
        # One column is a combination of others, up to rounding, and the last bound cuts a few rows.
        np.testing.assert_allclose(moments[1:] / twice[1].max(), np.ones(D - 1), atol=0.2)
        lengths = np.linalg.norm(rows, axis=1)
        assert lengths.max() <= 1 + 1e-9 and 0.3 < math.sqrt(np.mean(lengths**2)) < 0.7
        if constant is not None:
            np.testing.assert_allclose(rows.mean(axis=0), np.zeros(D), atol=0.02)

    def test_what_noise_hides_is_as_long_as_the_floor_allows(self):
        """Without rows, noise alone is mapped: all factors are between those of the floor and of the edge."""
        matrix, noise = learned(
            InMemoryRows(np.zeros((50, 30)), np.zeros(50)), noisy_matrix, 30, 2.0, noise=NoiseSource(0)
        )
        row_map, moments, _ = moment_map(RowMap(None, True, None, bound=3.0), matrix, noise, times=1.0)
        factors = row_map.whitening.factors
        assert factors.max() == 1 and 0.5 < factors.min() < 0.7
        assert np.all(np.isfinite(moments)) and row_map.bound > 0

    def test_rows_of_zeros_without_noise_are_left_alone(self):
        of_zeros = np.zeros((4, 4)), 1e-12
        row_map, _, largest = moment_map(RowMap(None, True, None, bound=3.0), *of_zeros, times=1.0)
        assert_close(row_map.whitening.factors, np.ones(4))
        assert 0 < row_map.bound < math.inf and largest > 0

    def test_its_share_follows_public_facts(self):
        for d in (1, 10, 100):
            n = max(math.sqrt(2 * d / 0.1) * d / 0.9, 400) / 0.27
            assert map_share(0.27, math.ceil(1.001 * n), d) == 0.1
            assert map_share(0.27, math.floor(0.999 * n), d) == 0 == map_share(1e-9, 100, d)


class TestPreconditioner:
    found = moment_of(ROWS)

    @pytest.mark.parametrize("intercept", [None, 0.4])
    def test_it_is_a_multiple_of_the_raised_inverse(self, intercept):
        matrix, _ = preconditioner_of(*self.found, intercept)
        second = clipped_moment(ROWS)
        if intercept is not None:
            second = np.block([[second, np.zeros((D, 1))], [np.zeros((1, D)), np.full((1, 1), intercept**2)]])
        least = 0.05 * np.trace(clipped_moment(ROWS)) / D
        raised = second + max(self.found[1] / 2, least) * np.eye(len(second))
        product = matrix @ raised
        np.testing.assert_allclose(product, product[0, 0] * np.eye(len(second)), rtol=0, atol=1e-5)
        assert matrix.shape == second.shape and np.all(np.linalg.eigvalsh(matrix) > 0)
        assert_close(matrix, matrix.T)

    @pytest.mark.parametrize("intercept", [None, 0.4])
    def test_outputs_of_noise_are_as_long_as_without(self, intercept):
        matrix, _ = preconditioner_of(*self.found, intercept)
        rows = ROWS if intercept is None else np.column_stack([ROWS, np.full(N, intercept)])
        noise = rng.normal(size=(4000, rows.shape[1]))
        with_it, without = (np.mean((rows @ heads.T) ** 2) for heads in (noise @ matrix, noise))
        assert with_it == pytest.approx(without, rel=0.1)

    def test_the_bound_on_moments_is_one(self):
        matrix, bound = preconditioner_of(*self.found, None)
        root = np.linalg.cholesky(matrix)
        true = np.linalg.eigvalsh(root.T @ clipped_moment(ROWS) @ root).max()
        assert true <= bound * (1 + 1e-6) and bound < 2 * true

    def test_half_of_the_noise_raises_the_eigenvalues(self):
        matrix, bound = preconditioner_of(np.diag([3.0, 1.0]), 2.0, None)
        assert matrix[1, 1] / matrix[0, 0] == pytest.approx((3 + 1) / (1 + 1))
        assert bound == pytest.approx(matrix[1, 1] * (1 + 2))  # all noise may be missing

    def test_noise_alone_leaves_directions_alone(self):
        """Where noise hides all, the matrix is nearly the identity."""
        matrix, _ = preconditioner_of(1e-3 * np.eye(D), 10.0, None)
        np.testing.assert_allclose(matrix, np.eye(D), rtol=0, atol=1e-6)

    def test_rows_of_zeros_leave_them_finite(self):
        """Nothing is known but noise, or next to it."""
        for values in (np.zeros(D), np.full(D, 1e-300)):
            for intercept in (None, 0.3):
                matrix, bound = preconditioner_of(np.diag(values), 0.1, intercept)
                assert np.all(np.linalg.eigvalsh(matrix) > 0) and 0 < bound < 10


class TestUpdate:
    def test_directions_are_multiplied_and_nothing_else_is(self):
        matrix = np.diag([1.0, 10.0, 0.1])
        inner, update = SGD(0.5), Preconditioned(SGD(0.5), matrix)
        W = rng.normal(size=(2, 3))
        first, second = inner.init(W), update.init(W)
        np.testing.assert_array_equal(first[0], second[0])
        ctx = SimpleNamespace(view=SimpleNamespace(W=W), step_size=0.7, t=1, n_steps=4)
        direction = rng.normal(size=(2, 3))
        one = inner.step(ctx, direction * [1.0, 10.0, 0.1], first[1])
        other = update.step(ctx, direction, second[1])
        assert_close(other[0], one[0])
        np.testing.assert_array_equal(update.result(*other), inner.result(*one))

    def test_the_default_algorithm_follows_it(self):
        """With the identity, descent is the same; with another one, steps are not."""
        problem = make_problem(3)
        d_in = problem.X.shape[1]
        heads = []
        for matrix in (None, np.eye(d_in), np.diag(np.linspace(0.2, 3, d_in))):
            info = replace(problem.info, preconditioner=matrix, second_moment=0.3)
            moved = replace(problem, info=info)
            recipe = moved.recipe(Auto(shrink=False), learning_rate=0.3)
            assert isinstance(recipe.update, TailAverage)
            assert isinstance(recipe.update.inner, Preconditioned) == (matrix is not None)
            heads.append(moved.trained(recipe, n_steps=5)[0])
        assert not np.allclose(heads[2], heads[1], atol=1e-3)
        assert heads[0].shape == heads[2].shape


class TestRaisedClip:
    """The clip rises in proportion to the budget, up to the longest gradient."""

    info = replace(make_problem(3).info, second_moment=0.2)

    def clip(self, mu, n_rows, clip=0.3, info=info, **facts):
        info = replace(info, mu=mu, n_private=n_rows, **facts)
        return replace(make_problem(3), info=info).recipe(Auto(clip)).query.clipper.threshold

    def test_without_need_it_stays(self):
        assert self.clip(0.27, 1000) == 0.3 == self.clip(1e-9, 10**9)  # the budget is small
        assert self.clip(10.0, 10**6, clip=50.0) == 50.0
        assert self.clip(1.0, 1000, second_moment=math.inf) == 0.3  # there is no longest gradient

    def test_it_grows_with_the_budget_up_to_what_cuts_nothing(self):
        curvature = self.info.view.data.loss.curvature * 0.2
        wanted = 0.6
        assert self.clip(1.0, round(wanted * 10_000 / curvature)) == pytest.approx(wanted)
        longest = self.info.view.data.loss.lipschitz * self.info.row_norm_bound
        assert self.clip(10.0, 10**6) == self.clip(100.0, 10**8) == longest > 1

    def test_weights_leave_it_as_it_is(self):
        data = self.info.view.data
        weighted = PublicData(data.X, with_weights(data.y, np.ones(len(data.y))), WeightedLoss(data.loss))
        info = replace(self.info, view=weighted.view(self.info.view.W))
        assert self.clip(1.0, 10**6, info=info) == self.clip(1.0, 10**6)
        assert self.clip(1.0, 10**6, info=info, mean_weight=0.01) == self.clip(1.0, 10**4)

    def test_its_sensitivity_is_that_of_the_query(self):
        for mu, n_rows in ((0.27, 1000), (1.0, 60_000), (10.0, 10**6)):
            info = replace(self.info, mu=mu, n_private=n_rows)
            recipe = replace(make_problem(3), info=info).recipe(Auto())
            stated = recipe.query.sensitivity(info.view, FLOAT)
            assert stated == pytest.approx(recipe.query.clipper.threshold, rel=1e-6)
