"""Accelerators are chosen in one place, and the library works without any of them."""

import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import skmixdp
from skmixdp import MixedDPLogisticRegression
from skmixdp._kernels import (
    Cascade,
    add_products,
    bfloat16_product,
    laid_out,
    product_session,
    row_products,
)
from skmixdp._kernels.accelerators import _MODULES, Accelerator, Measured, accelerators

PACKAGE = Path(skmixdp.__file__).parent

WITHOUT = [(name,) for name in _MODULES] + [tuple(_MODULES)]


@pytest.fixture
def fit_without(monkeypatch):
    """Returns ``fit(names)``: what is left, and coefficients, as if these accelerators were deleted."""

    def fit(names):
        with monkeypatch.context() as patch:
            for name in names:
                patch.setitem(sys.modules, f"skmixdp._kernels.{name}", None)
            accelerators.cache_clear()
            X = np.random.default_rng(0).normal(size=(400, 30)).astype(np.float32)
            y = np.arange(400) % 3
            coefficients = []
            for dtype in ("float32", "bfloat16"):
                head = MixedDPLogisticRegression(n_steps=3, dtype=dtype, random_state=0)
                coefficients.append(head.fit(X[50:], y[50:], X_pub=X[:50], y_pub=y[:50]).coef_)
            return accelerators(), np.vstack(coefficients)

    yield fit
    accelerators.cache_clear()


@pytest.mark.parametrize("names", WITHOUT, ids="+".join)
def test_a_fit_does_without_an_accelerator(fit_without, names):
    _, expected = fit_without(())
    left, found = fit_without(names)
    assert len(left) == len(_MODULES) - len(names)
    # Another library rounds otherwise, and rows in bfloat16 have eight bits.
    np.testing.assert_allclose(found, expected, atol=1e-2 * np.abs(expected).max())


def test_one_place_knows_the_accelerators():
    for name in _MODULES:
        pattern = re.compile(rf"(import|from)\b[^\n]*\b{name}\b|[\"']{name}[\"']")
        others = (path for path in PACKAGE.rglob("*.py") if path.stem != name)
        knowing = [path.name for path in others if pattern.search(path.read_text())]
        assert knowing == ["accelerators.py"]


def test_what_all_decline_is_multiplied_by_numpy(monkeypatch):
    monkeypatch.setattr("skmixdp._kernels.products.accelerators", lambda: (Accelerator(),))
    monkeypatch.setattr("skmixdp._kernels.accelerators.accelerators", lambda: (Accelerator(),))
    X, points = np.arange(12.0).reshape(4, 3), np.ones((2, 3))
    np.testing.assert_array_equal(row_products(X, points, np.empty((4, 2))), X @ points.T)
    total = Cascade()
    add_products(total, np.ones((4, 2)), X)
    np.testing.assert_array_equal(total.value, np.ones((2, 4)) @ X)
    assert bfloat16_product() is None
    with product_session(np.float32):
        pass


def test_all_that_are_named_are_there():
    assert len(accelerators()) == len(_MODULES)


class Timed(Accelerator):
    """NumPy's products, after a rest; for rows of any size but those of 7 entries."""

    is_measured = True

    def __init__(self, rest):
        self.rest, self.calls = rest, 0

    def row_products(self, X, points, out):
        time.sleep(self.rest)
        self.calls += 1
        return None if X.shape[1] == 7 else np.matmul(X, points.T, out=out)

    def panel_sum(self, C, X, out):
        time.sleep(self.rest)
        self.calls += 1
        return X.shape[1] != 7 and np.matmul(C.T, X, out=out) is out

    def prefers_rows(self, points, dtype):
        return True


@pytest.mark.parametrize(("ours", "theirs", "used"), [(0.0, 0.02, True), (0.02, 0.0, False)])
def test_an_accelerator_is_used_where_it_was_measured_to_be_faster(ours, theirs, used):
    inner, other = Timed(ours), Timed(theirs)
    measured = Measured(inner, (other,))
    X, points = np.ones((5, 30), np.float32), np.ones((3, 30), np.float32)
    for _ in range(2):
        found = measured.row_products(X, points, np.empty((5, 3), np.float32))
        assert (found is not None) == used
        if used:
            np.testing.assert_array_equal(found, np.full((5, 3), 30))
        assert measured.panel_sum(np.ones((5, 3), np.float32), X, np.empty((3, 30), np.float32)) == used
    before = inner.calls + other.calls
    measured.prefers_rows(points + 1, np.float32)
    assert inner.calls + other.calls == before  # each class of sizes is measured once


def test_threads_that_measure_at_the_same_time_choose_alike(monkeypatch):
    """Otherwise the library could change in the middle of a fit."""
    both_measure, slower_ends = threading.Barrier(2), threading.Event()
    measured, points = Measured(Timed(0.0), ()), np.ones((3, 30), np.float32)
    slower = []

    def timed(ours, theirs):
        if threading.get_ident() in slower:
            return 2.0  # its second trial
        if both_measure.wait(10):
            slower.append(threading.get_ident())
            slower_ends.wait(10)
            return 2.0
        return 0.5

    monkeypatch.setattr("skmixdp._kernels.accelerators._seconds", timed)
    found = []

    def choose():
        found.append(measured.prefers_rows(points, np.float32))
        slower_ends.set()

    threads = [threading.Thread(target=choose) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True, True] and measured.prefers_rows(points, np.float32)


@pytest.mark.parametrize(
    ("ratios", "used"), [([0.9], True), ([1.3, 0.9], True), ([1.3, 1.2], False), ([0.99, 0.99], False)]
)
def test_a_trial_that_finds_it_slower_is_repeated_once(ratios, used, monkeypatch):
    left = list(ratios)
    monkeypatch.setattr("skmixdp._kernels.accelerators._seconds", lambda ours, theirs: left.pop(0))
    measured = Measured(Timed(0.0), ())
    assert measured.prefers_rows(np.ones((3, 30), np.float32), np.float32) == used
    assert left == []


def test_an_accelerator_is_not_used_for_sizes_that_it_declines():
    measured = Measured(Timed(0.0), ())
    X, points = np.ones((5, 7), np.float32), np.ones((3, 7), np.float32)
    assert measured.row_products(X, points, np.empty((5, 3), np.float32)) is None
    assert not measured.panel_sum(np.ones((5, 3), np.float32), X, np.empty((3, 7), np.float32))


def test_double_precision_and_nothing_are_not_measured():
    inner = Timed(0.0)
    measured = Measured(inner, ())
    assert not measured.prefers_rows(np.ones((3, 30)), np.float64)
    assert not measured.prefers_rows(np.ones((0, 30), np.float32), np.float32)
    assert not measured.prefers_rows(np.ones((3, 0), np.float32), np.float32)
    assert inner.calls == 0


@pytest.mark.parametrize("d", [40, 300, 700])
@pytest.mark.parametrize("k", [2, 10, 70])
def test_products_are_right_whichever_library_is_chosen(d, k):
    rng = np.random.default_rng(0)
    X, W = (rng.standard_normal(shape, dtype=np.float32) for shape in ((800, d), (k, d)))
    C = rng.standard_normal((800, k), dtype=np.float32)
    found = row_products(X, laid_out(W, np.float32), np.empty((800, k), np.float32))
    np.testing.assert_allclose(found, X.astype(np.float64) @ W.T, atol=1e-3)
    total = Cascade()
    add_products(total, C, X)
    np.testing.assert_allclose(total.value, C.T.astype(np.float64) @ X, atol=1e-3)
