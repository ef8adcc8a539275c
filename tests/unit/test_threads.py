"""Threads that share the passes over rows: the same numbers, and as many threads of BLAS as before."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from skmixdp import MixedDPLogisticRegression
from skmixdp.components import L2Clip, public
from skmixdp.components.clipping import clipped_residuals
from tests.asking import request_of
from tests.private_names import (
    Batch,
    InMemoryRows,
    RowMap,
    block_size,
    classification_loss,
    dotted_path,
    in_parallel,
    n_parts,
    one_thread,
    process,
    transaction,
    worker_session,
)

rng = np.random.default_rng(0)


def n_threads():
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(process, "_allowed_threads", lambda: 2)
    np.ones((2, 2)) @ np.ones((2, 2))
    if not n_threads():
        pytest.skip("this version of threadpoolctl does not know this BLAS")
    with threadpool_limits(limits=2, user_api="blas"):
        yield


def test_tasks_run_in_other_threads_and_come_back_in_their_order(two_threads):
    names, both_work = [], threading.Barrier(2)

    def task(index):
        names.append(threading.current_thread().name)
        if index < 2:
            both_work.wait(10)
        with np.errstate(divide="raise"):
            return index, n_parts.get(), in_parallel([threading.get_ident] * 3)

    with worker_session():
        assert n_parts.get() == 4 and n_threads() == {1}
        found = in_parallel([partial(task, index) for index in range(7)])
        with worker_session():  # a fit within a fit shares its threads
            assert n_parts.get() == 4
    assert [index for index, _, _ in found] == list(range(7))
    # A task that waited for tasks of its own could wait for ever.
    assert all(inner == 1 and len(set(idents)) == 1 for _, inner, idents in found)
    assert len(set(names)) == 2 and threading.main_thread().name in names
    assert n_parts.get() == 1 and in_parallel([threading.get_ident]) == [threading.get_ident()]


@pytest.mark.covering
@pytest.mark.parametrize("failing", [0, 1, 4])
@pytest.mark.parametrize("error", [KeyError, IndexError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_and_sets_the_threads_back(two_threads, failing, error):
    before = n_threads()
    both_work = threading.Barrier(2)

    def task(index):
        if index < 2:
            both_work.wait(10)
        if index == failing:
            raise error

    with pytest.raises(error), worker_session():
        in_parallel([partial(task, index) for index in range(5)])
    assert n_threads() == before and n_parts.get() == 1


def test_tasks_that_wait_when_one_fails_are_not_begun(two_threads):
    begun = []

    def task(index):
        begun.append(index)
        raise KeyError

    with pytest.raises(KeyError), worker_session():
        in_parallel([partial(task, index) for index in range(100)])
    assert len(begun) <= 2


def test_what_the_caller_sets_holds_in_all_threads_and_what_a_task_sets_for_no_other(two_threads):
    def task():
        before = np.geterr()
        np.seterr(divide="raise")
        return before["divide"], before["over"], np.float32(1e30) * np.float32(1e30)

    with np.errstate(divide="warn", over="ignore"), worker_session():
        assert in_parallel([task] * 6) == [("warn", "ignore", np.inf)] * 6
        assert np.geterr()["divide"] == "warn"


def test_one_thread_of_blas_and_one_that_cannot_be_set_mean_one_thread(monkeypatch):
    with threadpool_limits(limits=1, user_api="blas"), worker_session():
        assert n_parts.get() == 1
    monkeypatch.setattr(process, "threadpool_info", lambda: [{"user_api": "openmp", "num_threads": 4}])
    with worker_session():
        assert n_parts.get() == 1


def requests(n, d_in, k):
    loss, clip = classification_loss(k), L2Clip(0.5)
    batch = Batch(members=rng.random(n) < 0.5)
    W = rng.normal(size=(loss.n_outputs, d_in))
    query = partial(clipped_residuals, loss=loss, clip=clip)

    def counted(Z, block):
        return None, np.asarray(Z > 0, dtype=float)

    return [
        [request_of(W, query)],
        [request_of(W, query, batch), request_of(W, counted, batch)],
        [request_of(W, counted)],
    ]


@pytest.mark.covering
@pytest.mark.parametrize(("n", "d_in", "k"), [(20_000, 100, 10), (150_000, 8, 3), (150_000, 8, 2), (0, 5, 3)])
def test_parts_of_the_rows_give_the_same_sums(two_threads, n, d_in, k):
    X, y = rng.normal(size=(n, d_in)).astype("f4"), rng.integers(k, size=n)
    rows = InMemoryRows.mapped(X, y, RowMap(np.full(d_in, 0.1), True, None), np.dtype("f4"))
    for asked in requests(n, d_in, k):
        expected = rows.private_sums(asked)
        with worker_session():
            found = rows.private_sums(asked)
        for (matrix, vector), (other_matrix, other_vector) in zip(expected, found, strict=True):
            for a, b in ((matrix, other_matrix), (vector, other_vector)):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-3)


def test_records_of_rows_see_the_blocks_in_their_order(two_threads):
    X = rng.normal(size=(9_000, 100)).astype("f4")
    rows, seen = InMemoryRows(X, np.zeros(9_000, int)), []
    watched = request_of(
        np.ones((2, 100)), lambda Z, block: (Z, None), observe=lambda rows, *_: seen.append(rows.start)
    )
    with worker_session():
        rows.private_sums([watched])
    assert len(seen) > 2 and seen == sorted(seen)


def test_a_fit_of_two_threads_is_that_of_one(two_threads, monkeypatch):
    X, y = rng.normal(size=(4_000, 100)).astype("f4"), rng.integers(3, size=4_000)
    sessions = []
    entered = worker_session

    def watched():
        sessions.append(1)
        return entered()

    monkeypatch.setattr(dotted_path("transaction.worker_session"), watched)

    def fitted(**options):
        head = MixedDPLogisticRegression(random_state=0, **options)
        return head.fit(X, y, X_pub=X[:60], y_pub=y[:60]).coef_

    alone = fitted()
    assert not sessions  # too few rows for threads to be worth their start
    monkeypatch.setattr(transaction, "_MUCH_WORK", 1)
    np.testing.assert_allclose(fitted(), alone, rtol=1e-4, atol=1e-6)
    assert sessions == [1]
    assert n_parts.get() == 1


def test_small_work_has_one_thread_of_each_library_and_sets_it_back(two_threads):
    with one_thread():
        assert n_threads() == {1}
        with one_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {2}
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert n_threads() == {2}


def test_a_small_fit_and_its_public_fit_have_one_thread(two_threads, monkeypatch):
    """Threads of SciPy would compete with those of NumPy: such fits took up to twice as long."""
    seen = {"public": [], "private": []}
    minimize, sums = public.minimize, InMemoryRows.private_sums

    def watched_minimize(*arguments, **options):
        seen["public"].append(n_threads())
        return minimize(*arguments, **options)

    def watched_sums(self, requests):
        seen["private"].append(n_threads())
        return sums(self, requests)

    monkeypatch.setattr(public, "minimize", watched_minimize)
    monkeypatch.setattr(InMemoryRows, "private_sums", watched_sums)
    X, y = rng.standard_normal((300, 70)), np.arange(300) % 3
    MixedDPLogisticRegression(random_state=0).fit(X, y, X_pub=X[:60], y_pub=y[:60])
    for found in seen.values():
        assert found and all(each == {1} for each in found)
    assert n_threads() == {2}
    monkeypatch.setattr(public, "_MUCH_WORK", 0)
    seen["public"].clear()
    public.PublicData(X, y, classification_loss(3)).fit(1.0)
    assert seen["public"] == [{2}]  # products of many public rows have all threads


def largest_part(n_rows, count, block_rows):
    """Rows of the largest part of a pass, in units of their mean."""
    n_blocks = -(-n_rows // block_rows)
    ends = [min(index * n_blocks // count * block_rows, n_rows) for index in range(count + 1)]
    return np.diff(ends).max() * count / n_rows


@pytest.mark.covering
@pytest.mark.parametrize("n_rows", [10_000, 50_000, 200_000, 1_000_000])
@pytest.mark.parametrize("most", [512, 8192, 64_512])
def test_parts_of_a_pass_are_as_large_as_each_other(n_rows, most):
    assert block_size(most, n_rows, 1) == block_size(most)
    for count in (2, 4, 8):
        rows = block_size(most, n_rows, count)
        assert rows < most + 384
        assert largest_part(n_rows, count, rows) < 1.15 + 384 * count / n_rows
    assert block_size(most, 0, 4) == 384
    assert largest_part(50_000, 4, block_size(8192)) > 1.25  # blocks of the largest size would be uneven


def test_programs_with_threads_of_their_own_get_their_numbers_back(two_threads):
    """What one fit has set for a while is not what another one sets back."""

    def work(first):
        for turn in range(60):
            with (one_thread, worker_session)[(first + turn) % 2]():
                assert n_threads() <= {1, 2}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert n_threads() == {2}
