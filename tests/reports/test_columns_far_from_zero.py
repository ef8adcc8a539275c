"""What people expect of years, times, prices and coordinates: that they need not be centred by hand."""

import numpy as np
import pandas as pd
import pytest

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.preprocessing import TableEncoder

N, N_TEST, N_PUBLIC = 10_000, 4000, 60
#: Spreads of a column from 0: in double precision, and in single precision.
OFFSETS = [1e2, 1023.9, 1e4, 65536.0, 1e6, 1e9]
IN_SINGLE = [1e3, 65536.0, 1e5]


def table(n_far, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N + N_TEST + N_PUBLIC, n_far + 2))
    score = 2 * Z[:, :n_far].sum(axis=1) / np.sqrt(n_far) + Z[:, -1]
    return Z, (score + rng.logistic(size=len(Z)) > 0).astype(int)


def accuracy(X, y, *, public):
    head = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0)
    known = {"X_pub": X[-N_PUBLIC:], "y_pub": y[-N_PUBLIC:]} if public else {}
    return head.fit(X[:N], y[:N], **known).score(X[N:-N_PUBLIC], y[N:-N_PUBLIC])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("n_far", [1, 8])
@pytest.mark.parametrize(
    ("offset", "dtype"), [(each, "float64") for each in OFFSETS] + [(each, "float32") for each in IN_SINGLE]
)
def test_accuracy_is_that_of_centred_columns(offset, dtype, n_far, public):
    Z, y = table(n_far)
    X = (Z * np.where(np.arange(n_far + 2) < n_far, 1e-3, 1.0)).astype(np.float64)
    X[:, :n_far] += 1e-3 * offset * np.where(np.arange(n_far) % 2, -1, 1)
    # Both have a standard error of half a point by the noise and by other rows at the edge.
    assert abs(accuracy(X.astype(dtype), y, public=public) - accuracy(Z, y, public=public)) <= 0.015


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("per_second", [1, 10**3, 10**6, 10**9])
def test_times_in_any_unit_are_found_through_an_encoder(per_second, public):
    days = np.random.default_rng(0).uniform(0, 365, N)
    seconds = 1_700_000_000 + (86_400 * days).astype(np.int64)
    X, y = pd.DataFrame({"time": seconds * per_second, "x": np.sin(days)}), (days > 180).astype(int)
    known = {"X_pub": X[:50], "y_pub": y[:50]} if public else {}
    encoder = TableEncoder({"time": "number", "x": "number"})
    head = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=0)
    model = private_pipeline(encoder, head).fit(X, y, **known)
    assert model.score(X, y) > 0.98
    assert np.array_equal(model.to_sklearn().predict(X[:200]), model.predict(X[:200]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("offset", [1e4, 3e4, 65536.0, 1e5])
def test_curves_find_them_too(offset):
    Z, y = table(1)
    curves = AdditiveDPClassifier(epsilon=1.0, classes=[0, 1], random_state=0)
    near = curves.fit(Z, y).score(Z, y)
    X = Z + np.array([offset, 0.0, 0.0])
    assert curves.fit(X, y).score(X, y) > near - 0.015
    assert len(curves.knots_[0]) > 4


@pytest.mark.filterwarnings("ignore")
def test_regressions_find_them_too():
    Z = table(1)[0]
    X = Z + np.array([1e4, 0.0, 0.0])
    ridge = MixedDPRidge(epsilon=1.0, random_state=0)
    assert ridge.fit(X, Z @ [2.0, 0.0, 1.0]).score(X, Z @ [2.0, 0.0, 1.0]) > 0.95
