"""One library's threads at a time, set back whatever happens."""

import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from skmixdp import MixedDPLogisticRegression
from skmixdp._kernels import onednn, product_session, threads
from skmixdp.estimators import _stages
from skmixdp.privacy import NoiseSource


def n_threads():
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


@pytest.fixture
def two_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(limits=2, user_api="blas"):
        if n_threads() != {2}:
            pytest.skip("this BLAS has one thread")
        yield


def multiplied(A, B, out):
    return np.matmul(A, B, out=out)


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setattr(onednn, "product_of", lambda dtype: multiplied if dtype == np.float32 else None)


def test_others_have_one_thread_within(two_threads, library):
    with product_session(np.float32):
        assert n_threads() == {1} and onednn.is_one_pool()
        with product_session(np.float32):
            assert n_threads() == {1} and onednn.is_one_pool()
        assert n_threads() == {1} and onednn.is_one_pool()
    assert n_threads() == {2} and not onednn.is_one_pool()


def test_an_error_sets_the_threads_back(two_threads, library):
    with pytest.raises(KeyError), product_session(np.float32):
        raise KeyError
    assert n_threads() == {2} and not onednn.is_one_pool()


def test_libraries_are_looked_for_again_after_an_import_only(two_threads, library, monkeypatch):
    looked = []
    monkeypatch.setattr(
        threads, "ThreadpoolController", lambda: looked.append(None) or ThreadpoolController()
    )
    threads.pools_of.cache_clear()
    for _ in range(3):
        with product_session(np.float32):
            assert n_threads() == {1}
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "another_library", None)
    with product_session(np.float32):
        assert n_threads() == {1}
    assert len(looked) == 2


def test_other_threads_of_the_program_know_nothing_of_it(two_threads, library):
    seen = []
    other = threading.Thread(target=lambda: seen.append(onednn.is_one_pool()))
    with product_session(np.float32):
        other.start()
        other.join()
    assert seen == [False]


def test_nothing_changes_without_the_library_or_with_one_thread(two_threads, library):
    with product_session(np.float64):
        assert n_threads() == {2} and not onednn.is_one_pool()
    with threadpool_limits(limits=1, user_api="blas"), product_session(np.float32):
        assert not onednn.is_one_pool()


@pytest.mark.parametrize(
    ("holder", "dtype", "expected"),
    [
        ("memory", "float32", False),  # threads of ours share the rows
        ("memory", "float64", False),
        ("memory", "bfloat16", True),
        ("file", "float32", True),
    ],
)
def test_a_fit_multiplies_with_one_pool(two_threads, library, monkeypatch, tmp_path, holder, dtype, expected):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)).astype(np.float32), np.arange(300) % 3
    if holder == "file":
        np.save(tmp_path / "rows.npy", X)
        X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    add_noise, seen = NoiseSource.add_noise, []

    def watched(self, *arguments):
        seen.append(onednn.is_one_pool())
        return add_noise(self, *arguments)

    monkeypatch.setattr(NoiseSource, "add_noise", watched)
    monkeypatch.setattr(_stages, "_MANY", 0)  # smaller fits have one thread
    MixedDPLogisticRegression(algorithm="adamix", n_steps=3, dtype=dtype).fit(
        X, y, X_pub=X[:60], y_pub=y[:60]
    )
    assert seen == [expected] * 3
    assert n_threads() == {2}
