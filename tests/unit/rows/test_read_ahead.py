"""Wide rows are read ahead of their products with few points: any memory, no warning, the same sums."""

import warnings

import numpy as np
import pytest

from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals
from tests.asking import request_of
from tests.private_names import Batch, InMemoryRows, blockwise, classification_loss, read_ahead, row_memory

rng = np.random.default_rng(0)


def padded(n_rows, d_in, dtype=np.float32):
    rows = row_memory(n_rows, d_in, dtype)
    rows[:] = rng.standard_normal((n_rows, d_in))
    return rows


@pytest.fixture
def words(monkeypatch):
    """How many whole numbers each call reads."""
    found, xor = [], np.bitwise_xor

    class Recorded:
        @staticmethod
        def reduce(entries):
            found.append(len(entries))
            return xor.reduce(entries)

    monkeypatch.setattr(np, "bitwise_xor", Recorded)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_rows", "d_in"), [(2, 65), (3, 65), (7, 127), (10, 130), (40, 700), (9, 512)])
def test_all_rows_but_the_last_are_read_and_nothing_behind_them(n_rows, d_in, dtype, words):
    X = padded(n_rows, d_in, dtype)
    before = X.copy()
    read_ahead(X)
    assert words == [(n_rows - 1) * X.strides[0] // 8]
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((0, 100), np.float32),
        np.zeros((1, 100), np.float32),
        np.zeros((100, 0), np.float32),
        np.zeros((100, 100), np.float32, order="F"),
        np.zeros((100, 100), np.float32)[::-1],
        np.zeros((100, 100), np.float32)[:, ::-1],
        np.zeros((100, 100), np.float32)[:, :40],
        np.zeros((100, 100), np.float32)[::3],
        np.broadcast_to(np.zeros(100, np.float32), (100, 100)),
        np.lib.stride_tricks.sliding_window_view(np.zeros(200, np.float32), 100),
    ],
    ids=[
        *("no row", "one row", "no column", "by columns", "from the last row", "from the last column"),
        *("some columns", "some rows", "one row many times", "rows that share memory"),
    ],
)
def test_rows_that_lie_otherwise_are_left_alone(X, words):
    read_ahead(X)
    assert words == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45, -0.0])
def test_no_value_raises_a_warning(value):
    X = padded(30, 200)
    X[4:9] = value
    X.flags.writeable = False
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        read_ahead(X)


@pytest.mark.covering
@pytest.mark.parametrize("chosen", ["all", "half", "every third"])
@pytest.mark.parametrize("d_in", [100, 512, 700])
def test_sums_are_the_same_to_the_last_bit(d_in, chosen, monkeypatch):
    n, k = 20_000, 5
    X, y = padded(n, d_in), rng.integers(k, size=n)
    mask = {"all": None, "half": np.arange(n) < n // 2, "every third": np.arange(n) % 3 == 0}[chosen]

    def query(Z, block):
        return clipped_residuals(Z, block, loss=classification_loss(k), clip=L2Clip(0.5))

    request = request_of(rng.standard_normal((k, d_in)), query, Batch(members=mask))
    calls = []
    monkeypatch.setattr(blockwise, "read_ahead", lambda X: calls.append(len(X)) or read_ahead(X))
    ((with_it, _),) = InMemoryRows(X, y).private_sums([request])
    # Rows that were picked have just been copied.
    assert sum(calls) == {"all": n, "half": n // 2, "every third": 0}[chosen]
    monkeypatch.setattr(blockwise, "read_ahead", lambda X: None)
    ((without, _),) = InMemoryRows(X, y).private_sums([request])
    np.testing.assert_array_equal(with_it, without)


@pytest.mark.parametrize(
    ("d_in", "m"), [(20, 3), (200, 64), (6000, 3)], ids=["narrow", "many points", "long rows"]
)
def test_rows_that_gain_nothing_are_not_read_ahead(d_in, m, monkeypatch):
    monkeypatch.setattr(blockwise, "read_ahead", lambda X: pytest.fail("it was read ahead"))
    X = rng.standard_normal((500, d_in)).astype(np.float32)
    request = request_of(rng.standard_normal((m, d_in)), lambda Z, block: (Z, None))
    InMemoryRows(X, np.zeros(500, int)).private_sums([request])
