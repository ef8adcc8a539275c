"""What people expect of a category that no row of the fit had: a prediction about the mean of known ones."""

import numpy as np
import pandas as pd
import pytest

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.preprocessing import TableEncoder

HEADS = {"linear": MixedDPLogisticRegression, "additive": AdditiveDPClassifier, "ridge": MixedDPRidge}
N = 6000


def table(n_categories, n_columns, seed=0):
    """A frame with two numbers and columns of equally frequent categories, and its labels."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, n_categories, (N, n_columns))
    X = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    for j in range(n_columns):
        X[f"c{j}"] = np.char.add("v", places[:, j].astype(str))
    score = X["a"] + np.linspace(-1, 1, n_categories)[places].sum(axis=1)
    return X, (score + rng.logistic(size=N) > 0).astype(int)


def fitted(kind, n_categories, n_columns, epsilon, n_pub, indicators="auto"):
    X, y = table(n_categories, n_columns)
    values = [f"v{place}" for place in range(n_categories)]
    kinds = {"a": "number", "b": "number", **{f"c{j}": values for j in range(n_columns)}}
    public = {"X_pub": X[:n_pub], "y_pub": y[:n_pub]} if n_pub else {}
    classes = {} if kind == "ridge" else {"classes": [0, 1]}
    head = HEADS[kind](epsilon=epsilon, random_state=0, **classes)
    model = private_pipeline(TableEncoder(kinds, indicators=indicators), head)
    return model.fit(X[n_pub:], y[n_pub:], **public)


def rows(*cells, n_columns=1):
    """Average rows with the same cell in each column of categories."""
    return pd.DataFrame([{"a": 0.0, "b": 0.0, **{f"c{j}": cell for j in range(n_columns)}} for cell in cells])


def score(model, X):
    """Probabilities of class 1, or predictions."""
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def off(model, n_categories, n_columns=1):
    """How far mean scores with a new and with a missing category are from those with known ones."""
    X = table(n_categories, n_columns, seed=1)[0]
    new = X.assign(**{f"c{j}": "new" for j in range(n_columns)})
    missing = X.assign(**{f"c{j}": None for j in range(n_columns)})
    mean = score(model, X).mean()
    return np.abs([score(model, new).mean() - mean, score(model, missing).mean() - mean])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_pub", [0, 200])
@pytest.mark.parametrize("epsilon", [1.0, 8.0, 1e6])
@pytest.mark.parametrize("kind", HEADS)
def test_scores_are_about_the_mean_at_any_budget(kind, epsilon, n_pub):
    assert off(fitted(kind, 4, 1, epsilon, n_pub), 4).max() <= 0.04


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_categories", "n_columns"), [(2, 1), (50, 1), (5, 6)])
@pytest.mark.parametrize("kind", HEADS)
def test_so_they_are_for_few_and_many_categories_and_several_columns(kind, n_categories, n_columns):
    assert off(fitted(kind, n_categories, n_columns, 1.0, 0), n_categories, n_columns).max() <= 0.06


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("indicators", [True, False])
@pytest.mark.parametrize("kind", HEADS)
def test_exports_agree(kind, indicators):
    model, new = fitted(kind, 3, 2, 1.0, 200, indicators), rows("v1", "new", None, n_columns=2)
    plain = model.to_sklearn()
    assert np.allclose(score(plain, new), score(model, new), rtol=0, atol=1e-9)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    cells = {name: new[[name]].fillna("").to_numpy(object) for name in ("c0", "c1")}
    answers = session.run(None, {**cells, **{name: new[[name]].to_numpy() for name in ("a", "b")}})
    wanted = model.predict(new) if kind == "ridge" else model.predict_proba(new)
    assert np.allclose(np.ravel(answers[-1]), np.ravel(wanted), rtol=0, atol=1e-9)


def test_public_rows_tell_the_shares():
    public = pd.DataFrame({"c": ["u"] * 6 + ["v"] * 2 + [None]})
    encoder = TableEncoder(indicators=False).fit(public, X_pub=public)
    assert encoder.columns_["c"].shares == (0.7, 0.3)  # one more of each counts
    encoded = encoder.transform(pd.DataFrame({"c": ["u", "x", None]}))
    assert encoded.tolist() == [[1, 0], [0.7, 0.3], [0.7, 0.3]]
