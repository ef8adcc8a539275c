"""What people expect of wide tables: no number of columns at which the result falls off."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, private_pipeline
from skmixdp.preprocessing import TableEncoder

N, N_TEST = 12_000, 4000
WIDTHS = [50, 100, 101, 200, 400]


@cache
def table(width):
    """Age, income, and columns of zeros and ones, of which five count."""
    rng = np.random.default_rng(0)
    age, income = rng.uniform(18, 80, N + N_TEST), rng.lognormal(10, 0.6, N + N_TEST)
    flags = (rng.random((N + N_TEST, width - 2)) < 0.1).astype(float)
    score = 0.1 * (age - 48) + flags[:, :5].sum(axis=1) - 0.5
    return np.column_stack([age, income, flags]), score + rng.logistic(size=N + N_TEST) > 0


def area(model, X, y):
    model.fit(X[:N], y[:N])
    return roc_auc_score(y[N:], model.predict_proba(X[N:])[:, 1])


def head(**parameters):
    return MixedDPLogisticRegression(epsilon=1.0, classes=[False, True], random_state=0, **parameters)


@cache
def with_true_scales(width):
    X, y = table(width)
    return area(head(scale=False, rows=RowMapping(norm="clip")), (X - X.mean(axis=0)) / X.std(axis=0), y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", WIDTHS)
def test_bare_arrays_of_any_width_are_as_good_as_with_true_scales(width):
    assert area(head(), *table(width)) > with_true_scales(width) - 0.02


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", WIDTHS)
def test_an_encoder_tells_which_columns_are_numbers(width):
    X, y = table(width)
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(width)])
    kinds = {name: "number" if place < 2 else "boolean" for place, name in enumerate(frame)}
    model = private_pipeline(TableEncoder(kinds), head())
    assert area(model, frame, y) > with_true_scales(width) - 0.02
    # Two histograms of many, so the share does not grow with the width.
    assert dict(model.privacy_.shares)["columns"] < 0.011


@pytest.mark.filterwarnings("ignore")
def test_categories_with_many_values_do_not_count_as_numbers():
    rng = np.random.default_rng(0)
    codes, income = rng.integers(0, 150, N + N_TEST), rng.lognormal(10, 0.6, N + N_TEST)
    effects = rng.normal(size=150)
    frame = pd.DataFrame({"code": np.char.add("v", codes.astype(str)), "income": income})
    y = effects[codes] + 2 * (np.log(income) - 10) + rng.logistic(size=N + N_TEST) > 0
    values = [f"v{place}" for place in range(150)]
    encoded = area(private_pipeline(TableEncoder({"code": values, "income": "number"}), head()), frame, y)
    steps = [("codes", OneHotEncoder(categories=[values], sparse_output=False), ["code"])]
    transformed = private_pipeline(
        ColumnTransformer([*steps, ("numbers", "passthrough", ["income"])]), head()
    )
    assert encoded > 0.7 and area(transformed, frame, y) > encoded - 0.02
    assert dict(transformed.privacy_.shares)["columns"] == pytest.approx(0.01)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [100, 101, 126])
def test_a_regression_too(width):
    X, _ = table(width)
    y = 0.1 * X[:, 0] + X[:, 2:7].sum(axis=1) + np.random.default_rng(1).normal(size=len(X))
    ridge = MixedDPRidge(epsilon=1.0, random_state=0).fit(X[:N], y[:N])
    assert ridge.score(X[N:], y[N:]) > 0.6


def test_pixels_and_embeddings_pay_for_one_look_alone():
    X = np.random.default_rng(0).normal(size=(3000, 150))
    clf = head().fit(X, X[:, 0] > 0)
    assert dict(clf.privacy_.shares)["columns"] == pytest.approx(0.005)
