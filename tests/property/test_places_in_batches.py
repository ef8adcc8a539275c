"""A row outside of a random batch is a row that is zeroed out, bit for bit: no other row changes place."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.asking import request_of
from tests.private_names import Batch, RowMap, Whitening, n_lanes, rounds

from .spies import prepare, source

N, D = 6000, 9
RATE = 0.01
KINDS = [
    *("memory", "sparse", "memory map", "memory map, as if wide", "npy files", "parquet", "dask", "torch"),
    *("torch, as on a device",),
]
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)).astype("f4")
W = 3 * rng.normal(size=(4, D + 1))
whitening = Whitening.of(X[:40].astype(float), np.arange(40) % 2)
MAPS = {
    "whitened": RowMap(X[:40].mean(axis=0), True, 0.3, whitening=whitening),
    "as they are": RowMap(None, False, 0.3),
}


@given(
    n=st.integers(2, 400),
    lanes=st.sampled_from([1, 2, 7, 64]),
    rate=st.sampled_from([0.01, 0.3, 0.9]),
    seed=st.integers(0, 99),
)
def test_another_row_moves_none_out_of_its_lane(n, lanes, rate, seed):
    taken = np.random.default_rng(seed).random(n) < rate
    row = seed % n
    places = []
    for there in (True, False):
        batch = taken.copy()
        batch[row], batch[(row + 1) % n] = there, False
        blocks = np.array(list(rounds(batch, lanes)))
        assert blocks.shape[1] == lanes and len(blocks) >= 1
        held = batch[blocks]
        assert sorted(blocks[held]) == np.flatnonzero(batch).tolist()
        places.append({int(i): place for block in blocks for place, i in enumerate(block) if batch[i]})
    with_row, without = places
    assert with_row.pop(row, None) == row % lanes
    assert with_row == without


def test_a_batch_of_all_rows_leaves_no_row_for_empty_places():
    with pytest.raises(RuntimeError, match="none is left"):
        next(rounds(np.ones(5, bool), 2))


@pytest.mark.parametrize(("rate", "n"), [(0.5, 10**6), (0.01, 300), (1.0, 10**5)])
def test_large_batches_and_small_data_are_visited_whole(rate, n):
    assert n_lanes([rate], n) == 0


def test_lanes_follow_from_public_facts():
    assert n_lanes([0.001], 10**6) == 64 * 4
    assert n_lanes([0.001, 0.003], 10**6) == 64 * 8


@pytest.mark.covering
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5, deadline=None)
@given(row=st.integers(0, N - 1), seed=st.integers(0, 99))
def test_what_others_contribute_does_not_depend_on_a_row(
    kind, dtype, name, tmp_path_factory, monkeypatch, row, seed
):
    prepare(kind, monkeypatch)
    rows = source(kind, tmp_path_factory.mktemp("rows"), X, np.arange(N), MAPS[name], dtype)
    taken = np.random.default_rng(seed).random(N) < RATE

    def seen(there, sums):
        """Each row's products and lengths, its place in a block, and the block's size."""
        found = {}

        def contribute(Z, block):
            products, norms, numbers = (np.array(part) for part in (Z, block.norms, block.y))
            for place, number in enumerate(numbers.tolist()):
                found[number] = (products[place].tobytes(), float(norms[place]), place, len(products))
            return Z * 0 + 1, None

        batch = taken.copy()
        batch[row] = there
        request = request_of(W, contribute, batch=Batch(batch, RATE))
        sums.append((rows.private_sums([request])[0][0], rows.sum_error(request)))
        return {number: found[number] for number in np.flatnonzero(batch).tolist()}

    if kind == "dask":  # contributions stay with the workers
        pytest.skip("a Dask array is visited by workers, which are sources in memory")
    sums = []
    with_row, without = seen(True, sums), seen(False, sums)
    del with_row[row]
    assert with_row == without
    (one, error), (other, _) = sums
    x = MAPS[name](X[row : row + 1], np.dtype(dtype))[0].astype(float)
    longest = 2 * max(np.linalg.norm(MAPS[name](X, np.float64), axis=1))
    # Four outputs are the same.
    assert np.linalg.norm(one - other - x) <= 2 * error.of(longest) + 1e-6 * longest


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_several_heads_are_gathered_together(kind, tmp_path, monkeypatch):
    prepare(kind, monkeypatch)
    rows = source(kind, tmp_path, X, np.arange(N), MAPS["as they are"], "float64")
    batches = [np.random.default_rng(seed).random(N) < RATE for seed in (0, 1)]
    members = np.arange(N) % 2 == 0

    def contribute(Z, block):
        return Z * 1.0, None

    requests = [request_of(W, contribute, batch=Batch(taken, RATE)) for taken in batches]
    requests.append(replace(requests[0], batch=replace(requests[0].batch, members=members)))
    mapped = MAPS["as they are"](X, np.float64)
    for (found, _), taken in zip(rows.private_sums(requests), [*batches, batches[0] & members], strict=True):
        held = mapped[taken]
        np.testing.assert_allclose(found, (held @ W.T).T @ held, rtol=1e-9, atol=1e-9)
