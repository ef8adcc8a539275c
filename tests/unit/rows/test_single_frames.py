"""Frames of float32 are held as they are, and read as if they were of float64."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression

N, D = 20_000, 50
RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=N)
X = (RNG.normal(size=(N, D)) + 0.3 * Y[:, np.newaxis]).astype(np.float32)
NAMES = [f"f{j}" for j in range(D)]
PUBLIC = pd.DataFrame(X[:100], columns=NAMES), Y[:100]


def frames(library):
    """The rows as a frame of float32, and the same with one column of float64."""
    columns = dict(zip(NAMES, X.T, strict=True))
    make = getattr(pytest.importorskip(library), "table" if library == "pyarrow" else "DataFrame")
    return make(columns), make(columns | {"f3": columns["f3"].astype(np.float64)})


def fitted(frame, groups=None):
    model = MixedDPLogisticRegression("adamix", epsilon=1.0, random_state=0)
    return model.fit(frame, Y, X_pub=PUBLIC[0], y_pub=PUBLIC[1], groups=groups)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_type_of_one_column_changes_no_bit(library):
    """One private cell may choose that type."""
    single, mixed = map(fitted, frames(library))
    np.testing.assert_array_equal(single.coef_, mixed.coef_)
    np.testing.assert_array_equal(single.intercept_, mixed.intercept_)


def test_nor_with_persons():
    single, mixed = (fitted(frame, np.arange(N) // 4) for frame in frames("pandas"))
    np.testing.assert_array_equal(single.coef_, mixed.coef_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_fit_takes_little_memory(library):
    times = 4
    frame = pytest.importorskip(library).DataFrame(dict(zip(NAMES, np.tile(X, (times, 1)).T, strict=True)))
    tracemalloc.start()
    MixedDPLogisticRegression("adamix", epsilon=1.0, random_state=0).fit(
        frame, np.tile(Y, times), X_pub=PUBLIC[0], y_pub=PUBLIC[1]
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.8 * times * X.nbytes  # 2.4 with more rows
