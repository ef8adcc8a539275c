"""Chunks of a Dask array are spread over the workers, stay where they are, and answer there."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asking import request_of
from tests.private_names import RowMap, divided, special_table
from tests.rounding import assert_close

THREADS = {"a": 1, "b": 2, "c": 4}


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=60),
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 8), min_size=1),
    st.data(),
)
def test_no_worker_gets_more_than_its_share_but_for_one_chunk(sizes, threads, data):
    someone = st.lists(st.sampled_from("abcdez"), max_size=2)  # z left the cluster
    holders = [data.draw(someone) for _ in sizes]
    places = divided(sizes, threads, holders)
    assert set(places) <= set(threads)
    share = sum(sizes) / sum(threads.values())
    for worker, n in threads.items():
        load = sum(size for size, place in zip(sizes, places, strict=True) if place == worker)
        assert load <= n * share + max(sizes)


def test_chunks_that_nobody_holds_are_dealt_out_in_order():
    assert divided([10] * 7, THREADS, [()] * 7) == ["a", "b", "b", "c", "c", "c", "c"]


def test_chunks_stay_where_they_are_as_long_as_that_is_fair():
    fair = ["c", "b", "c", "a", "c", "b", "c"]
    assert divided([10] * 7, THREADS, [(worker,) for worker in fair]) == fair
    crowded = divided([10] * 4, {"a": 1, "b": 1}, [("a",)] * 4)
    assert crowded == ["a", "a", "b", "b"]


def test_without_workers_nothing_is_placed():
    assert divided([10, 10], {}, [(), ()]) == [None, None]


@pytest.mark.parametrize("persisted", [False, True], ids=["lazy", "persisted on one worker"])
def test_each_worker_keeps_and_answers_its_share(persisted):
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((800, 5)), rng.integers(3, size=800)
    W = rng.standard_normal((3, 5))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as workers,
        distributed.Client(workers) as client,
    ):
        chunked = da.from_array(X, chunks=(100, -1))
        if persisted:
            chunked = client.persist(chunked, workers=[min(client.nthreads())])
            distributed.wait(chunked)
        rows = special_table(chunked).private_rows(y, RowMap(None, False, None), X.dtype, exact=False)
        with distributed.get_task_stream(client) as stream:
            ((got, _),) = rows.private_sums([request_of(W, lambda Z, block: (Z, None))])
        answered = Counter(t["worker"] for t in stream.data if str(t["key"]).startswith("sums"))
    assert sorted(answered.values()) == [4, 4]
    assert_close(got, W @ X.T @ X, 1e-9)
