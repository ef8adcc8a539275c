import tracemalloc

import numpy as np
import pytest

from skmixdp.components import GradientQuery, L2Clip
from skmixdp.components.protocols import PublicInfo, StepContext
from skmixdp.components.public import PublicData
from skmixdp.components.subspaces import PublicSubspace
from skmixdp.privacy import NoiseSource
from tests.asking import request_of
from tests.private_names import (
    GaussianMechanism,
    InMemoryRows,
    SoftmaxLoss,
    dotted_path,
    release,
    sum_resolution,
)
from tests.rounding import assert_close

rng = np.random.default_rng(0)
X, y = rng.normal(size=(1000, 7)), rng.integers(3, size=1000)
A = rng.normal(size=(2, 7))


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """Narrow rows in blocks of 256 rows, so that the thousand rows here have several."""
    monkeypatch.setattr(dotted_path("blockwise._NARROW_ROWS"), 256)


def squares(Z, block):
    return Z**2 + block.y[:, None], np.column_stack([block.norms, block.max_abs])


def test_answers_equal_dense_sums_whatever_the_blocks():
    expected = ((X @ A.T) ** 2 + y[:, None]).T @ X
    statistics = [np.linalg.norm(X, axis=1).sum(), np.abs(X).max(axis=1).sum()]
    for block_bytes in (1, 20_000, 2**30):
        rows = InMemoryRows(X, y, block_bytes=block_bytes)
        ((matrix, vector),) = rows.private_sums([request_of(A, squares)])
        assert_close(matrix, expected)
        assert_close(vector, statistics)


class TestExactSums:
    """Sums on the grid are the same to the last bit in any order and any blocks."""

    @pytest.mark.parametrize("n_rows", [2, 1000, 50_000])
    def test_no_rounding_in_any_order(self, n_rows):
        data = rng.normal(size=(n_rows, 5))
        data /= np.linalg.norm(data, axis=1, keepdims=True)
        labels = np.zeros(n_rows, int)

        def clipped(Z, block):
            factor = np.minimum(1, 0.5 / (np.linalg.norm(Z, axis=1) * block.norms))
            return Z * factor[:, None], None

        points = rng.normal(size=(3, 5))
        sums = []
        for order, size in ((np.arange(n_rows), 1), (rng.permutation(n_rows), 2**30)):
            rows = InMemoryRows(data[order], labels, exact=True, block_bytes=size)
            resolution = sum_resolution(n_rows, rows.grid, 0.5)
            ((matrix, _),) = rows.private_sums([request_of(points, clipped, resolution=resolution)])
            sums.append(matrix)
        np.testing.assert_array_equal(sums[0], sums[1])
        units = sums[0] / (rows.grid * resolution)
        np.testing.assert_array_equal(units, np.round(units))
        assert np.abs(units).max() < 2**53
        assert n_rows * 0.5 / (rows.grid * resolution) <= 2**53

    def test_the_grid_is_fine(self):
        rows = InMemoryRows(X, y, exact=True)
        assert np.abs(rows._X - X).max() <= rows.grid / 2 < 1e-6
        assert sum_resolution(1000, rows.grid, 0.5) < 1e-6

    def test_rounding_lengthens_no_contribution(self):
        rows = InMemoryRows(X, y, exact=True)
        seen = []

        def keep(Z, block):
            seen.append(Z.copy())
            return Z, None

        resolution = 2.0**-8
        lone = InMemoryRows(X[:1], y[:1], exact=True)
        ((matrix, _),) = lone.private_sums([request_of(A, keep, resolution=resolution)])
        assert np.linalg.norm(matrix) <= np.linalg.norm(seen[0]) * np.linalg.norm(lone._X)
        assert rows.grid is not None


@pytest.mark.parametrize("subspace", [None, PublicSubspace(40)], ids=["full", "projected"])
def test_a_step_needs_no_memory_of_the_size_of_all_gradients(subspace):
    """20,000 rows x 20,000 parameters would be 1.6 GB; a step stays below 32 MB."""
    n, d, k = 20_000, 400, 50
    big = rng.normal(size=(n, d)).astype(np.float32)
    labels = rng.integers(k, size=n)
    data = PublicData(big[:100], labels[:100], SoftmaxLoss(k))
    view = data.view(np.zeros((k, d)))
    info = PublicInfo(view, 1.0, n, float(n), np.inf)
    rows = InMemoryRows(big, labels)
    mechanism = GaussianMechanism(1.0, 2, NoiseSource(0))
    query = GradientQuery(L2Clip(0.5), subspace, sum_to_zero=True)
    ctx = StepContext(
        1, 1, view, info.batch_size, 0.1, 1.0, 0.0, view.W, np.dtype("float32"), NoiseSource(0), 1.0
    )
    tracemalloc.start()
    try:
        rounds = query.step(ctx)
        mechanism.begin_step(None)
        answer = release(rows, [(mechanism, next(rounds))])[0].arrays
        with pytest.raises(StopIteration):
            rounds.send(answer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20
