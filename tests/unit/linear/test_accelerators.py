"""Accelerators are chosen in one place, and the library works without any of them."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import skmixdp
from skmixdp import MixedDPLogisticRegression
from skmixdp._kernels import Cascade, add_products, bfloat16_product, product_session, row_products
from skmixdp._kernels.accelerators import _MODULES, Accelerator, accelerators

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
