"""Fitted estimators of every kind, each made once."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import PAZO, AdaMix, ModelMix, NoisyGD
from skmixdp.components import ConstantWeight
from skmixdp.features import ZeroShotHead


@cache
def rows_of(name):
    """Rows, labels and the number of public rows of a data set, in a fixed random order."""
    load = {
        "digits": load_digits,
        "cancer": load_breast_cancer,
        "iris": load_iris,
        "wine": load_wine,
        "diabetes": load_diabetes,
    }[name]
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:600]
    return X[order].astype(np.float64), y[order], len(order) // 5


def methods_of(model):
    return [name for name in ("predict", "predict_proba", "decision_function") if hasattr(model, name)]


def there_and_back(model, folder):
    """The model that is saved in a file of a folder and loaded from it."""
    model.save(folder / "model.safetensors")
    return skmixdp.load(folder / "model.safetensors")


def fitted(estimator, data="digits", *, public=True, rows=None, labels=None, n_public=None):
    X, y, usual = rows_of(data)
    n_public = usual if n_public is None else n_public
    y = y if labels is None else labels(y)
    X = X if rows is None else rows(X)
    if not public:
        return estimator.fit(X[n_public:], y[n_public:])
    return estimator.fit(X[n_public:], y[n_public:], X_pub=X[:n_public], y_pub=y[:n_public])


def _logistic(*args, n_steps=6, **parameters):
    return MixedDPLogisticRegression(*args, epsilon=3.0, random_state=0, n_steps=n_steps, **parameters)


def _ridge(n_steps=6, **parameters):
    return MixedDPRidge(epsilon=3.0, random_state=0, n_steps=n_steps, **parameters)


#: Labels (n, 3) of classes.
LABELS = lambda y: np.stack([y % 2 == 0, y > 4, y % 3 == 1], axis=1).astype(int)  # noqa: E731

#: Name -> (data set, a function that fits). Together they use every field of the row map.
MODELS = {
    "digits": ("digits", lambda: fitted(_logistic(n_steps=None))),
    "cancer": ("cancer", lambda: fitted(_logistic(), "cancer")),
    "iris": ("iris", lambda: fitted(_logistic(), "iris")),
    "wine": ("wine", lambda: fitted(_logistic(), "wine")),
    "without public rows": ("digits", lambda: fitted(_logistic(classes=np.arange(10)), public=False)),
    "learned geometry": (
        "digits",
        lambda: fitted(_logistic(n_steps=None, rows=RowMapping(geometry=True, whiten=True))),
    ),
    "few public rows": (
        "digits",
        lambda: fitted(_logistic("adamix", rows=RowMapping(whiten=True)), n_public=50),
    ),
    "clipped rows": ("wine", lambda: fitted(_logistic(rows=RowMapping(norm="clip")), "wine")),
    "rows as they are": ("digits", lambda: fitted(_logistic(rows=RowMapping(norm=None)))),
    "nothing learned": (
        "cancer",
        lambda: fitted(
            _logistic(
                "noisy-gd", rows=RowMapping(center=False, whiten=False), fit_intercept=False, scale=False
            ),
            "cancer",
        ),
    ),
    "class names": (
        "iris",
        lambda: fitted(
            _logistic(class_weight={"a": 1.0, "b": 2.0, "c": 1.0}),
            "iris",
            labels=lambda y: np.array([*"abc"])[y],
        ),
    ),
    "class names as objects": (
        "cancer",
        lambda: fitted(_logistic(), "cancer", labels=lambda y: np.array(["ill", "well"], dtype=object)[y]),
    ),
    "several labels": ("digits", lambda: fitted(_logistic(n_steps=None, classes=[*"zyx"]), labels=LABELS)),
    "two labels, no public rows": (
        "wine",
        lambda: fitted(_logistic(), "wine", public=False, labels=lambda y: LABELS(y)[:, :2]),
    ),
    "bools": ("cancer", lambda: fitted(_logistic(), "cancer", labels=lambda y: y == 1)),
    "small integers": ("cancer", lambda: fitted(_logistic(), "cancer", labels=lambda y: y.astype(np.int8))),
    "float32 rows": ("digits", lambda: fitted(_logistic(), rows=lambda X: X.astype(np.float32))),
    "float64 products": ("digits", lambda: fitted(_logistic(dtype="float64"))),
    "sparse rows": (
        "digits",
        lambda: fitted(_logistic(classes=np.arange(10)), rows=sp.csr_matrix, public=False),
    ),
    "algorithm object": (
        "digits",
        lambda: fitted(_logistic(AdaMix(n_components=5, public_weight=ConstantWeight(0.3)))),
    ),
    "nested algorithm": ("digits", lambda: fitted(_logistic(ModelMix(NoisyGD(momentum=0.0))))),
    "zeroth order": (
        "digits",
        lambda: fitted(MixedDPLogisticRegression(PAZO("m", n_directions=2), n_steps=5, random_state=0)),
    ),
    "start from names": (
        "iris",
        lambda: fitted(
            _logistic(init=ZeroShotHead({0: "a", 1: "b", 2: "c"}, embeddings=np.eye(3, 4))), "iris"
        ),
    ),
    "start from an array": ("iris", lambda: fitted(_logistic("noisy-gd", init=np.ones((3, 4))), "iris")),
    "regression": ("diabetes", lambda: fitted(_ridge(n_steps=None), "diabetes")),
    "regression on unit rows": (
        "diabetes",
        lambda: fitted(_ridge(rows=RowMapping(norm="unit", whiten=True)), "diabetes"),
    ),
    "two targets": (
        "diabetes",
        lambda: fitted(_ridge(target_scale=[50.0, 5.0]), "diabetes", labels=lambda y: np.c_[y, y / 10]),
    ),
}


@cache
def model_and_rows(name):
    """A fitted estimator of :data:`MODELS`, and dense rows of its data."""
    data, fit = MODELS[name]
    return fit(), rows_of(data)[0]


@pytest.fixture(params=MODELS)
def model(request):
    return model_and_rows(request.param)


@pytest.fixture
def digits():
    return model_and_rows("digits")


@pytest.fixture(params=["digits", "clipped rows", "learned geometry", "rows as they are"])
def model_and_odd_rows(request):
    """A model of classes and rows that are zero, tiny, huge and mirrored."""
    model, X = model_and_rows(request.param)
    return model, np.concatenate([np.zeros((1, X.shape[1])), X[:1] * 1e-12, X[:1] * 1e12, -X[:1]])


@pytest.fixture
def named_columns():
    """A model of a frame with the columns a, b, c and d, and the frame."""
    X = pd.DataFrame(rows_of("iris")[0], columns=[*"abcd"])
    return fitted(MixedDPLogisticRegression(epsilon=3.0), "iris", rows=lambda _: X), X


@pytest.fixture
def no_pickle(monkeypatch):
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *args, **kwargs: pytest.fail("pickle"))
