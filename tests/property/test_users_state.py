"""Settings of NumPy, SciPy and warnings that a user made tell nothing of a private row."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer, StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, private_pipeline
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler, PublicOnly, PublicWhitener, RowNormalizer, TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.odd_cells import check_odd_cell

N, ROW, NAMES = 60, 23, list("abc")
rng = np.random.default_rng(0)
ROWS, X_PUB = rng.normal(size=(N, 3)), rng.normal(size=(40, 3))
LABELS, Y_PUB = np.arange(N) % 2, np.arange(40) % 2
TARGETS = ROWS @ [1.0, 2.0, 3.0]
TERMS = {"epsilon": 30.0, "delta": 1e-4}


def head():
    return MixedDPLogisticRegression("noisy-gd", classes=[0, 1], n_steps=2, **TERMS)


def after(*steps):
    """Scalers with a charge of their own, transformers, and a head."""

    def fit(X):
        frame = any(isinstance(step, TableEncoder) for step in steps)
        rows, public = (pd.DataFrame(each, columns=NAMES) if frame else each for each in (X, X_PUB))
        return private_pipeline(*steps, head()).fit(rows, LABELS, X_pub=public, y_pub=Y_PUB)

    return fit


def scaler(**parameters):
    return NoisyScaler(bounds=(-3, 3), **TERMS, **parameters)


CLF = head().fit(ROWS, LABELS)
REG = MixedDPRidge("noisy-gd", n_steps=2, target_center=0.0, target_scale=10.0, **TERMS).fit(ROWS, TARGETS)


def search(X):
    grid = {"learning_rate": [0.1, 1.0]}
    found = PrivateSearchCV(head(), grid, epsilon=30.0, delta=1e-4, n_trials=2, strategy="grid")
    return found.fit(X, LABELS).privacy_


#: What releases something of rows, of which one entry is odd.
OF_ROWS = {
    "head": lambda X: head().fit(X, LABELS),
    "NoisyScaler": after(scaler()),
    "NoisyScaler without mean": after(scaler(with_mean=False)),
    "NoisyScaler by histograms": after(NoisyScaler(**TERMS)),
    "RowNormalizer": after(scaler(), RowNormalizer()),
    "PublicWhitener": after(scaler(), PublicWhitener()),
    "StandardScaler": after(scaler(), PublicOnly(StandardScaler())),
    "MinMaxScaler": after(scaler(), PublicOnly(MinMaxScaler())),
    "PCA": after(scaler(), PublicOnly(PCA())),
    "QuantileTransformer": after(scaler(), PublicOnly(QuantileTransformer(n_quantiles=10))),
    "TableEncoder": after(TableEncoder()),
    "score": lambda X: CLF.private_score(X, LABELS, epsilon=1.0),
    "confusion": lambda X: CLF.private_confusion(X, LABELS, epsilon=1.0),
    "evaluation": lambda X: private_evaluation(CLF, X, LABELS, epsilon=1.0).summary(),
    "search": search,
}
#: What releases something of targets, of which one is odd.
OF_TARGETS = {
    "regression": lambda y: MixedDPRidge("noisy-gd", n_steps=2, target_scale=10.0, **TERMS).fit(ROWS, y),
    "score": lambda y: REG.private_score(ROWS, y, epsilon=1.0),
    "score in small units": lambda y: (
        MixedDPRidge(target_scale=1e-3, n_steps=2, **TERMS)
        .fit(ROWS, TARGETS)
        .private_score(ROWS, y, epsilon=1.0)
    ),
    "evaluation": lambda y: private_evaluation(REG, ROWS, y, epsilon=1.0, target_bounds=(-10, 10)).summary(),
    "search": lambda y: (
        PrivateSearchCV(
            MixedDPRidge(target_scale=10.0, n_steps=2), {"l2": [0.1, 1.0]}, epsilon=30.0, strategy="grid"
        )
        .fit(ROWS, y)
        .privacy_
    ),
}
VALUES = (1.7e308, -1.7e308, 1e200, 1e-310, 1e-45, -5e-324)


def under(release, state):
    """The path of a release under a state of the user; "error" turns warnings of numbers into errors."""

    def path_of(rows):
        def path(calls):
            of_numpy = "warn" if state == "error" else state
            with np.errstate(all=of_numpy), special.errstate(all=of_numpy), warnings.catch_warnings():
                if state == "error":
                    warnings.filterwarnings("error", category=RuntimeWarning)
                return release(rows)

        return path

    return path_of


def check(monkeypatch, release, rows, value, state, **options):
    other = rows.copy()
    other[(ROW, 1) if rows.ndim == 2 else ROW] = value
    if rows.ndim == 2 and value == 1.7e308:
        other[ROW] = [value, value, -value]
    refused = check_odd_cell(monkeypatch, under(release, state), rows, other, each_row=False, **options)
    assert not refused


@pytest.mark.covering("path value", "path state")
@pytest.mark.parametrize("state", ["ignore", "warn", "raise", "error"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("path", OF_ROWS)
def test_no_row_is_told_of(monkeypatch, path, value, state):
    check(monkeypatch, OF_ROWS[path], ROWS, value, state)


@pytest.mark.covering("path value", "path state")
@pytest.mark.parametrize("state", ["ignore", "warn", "raise", "error"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("path", OF_TARGETS)
def test_no_target_is_told_of(monkeypatch, path, value, state):
    check(monkeypatch, OF_TARGETS[path], TARGETS, value, state)


def test_a_row_that_a_scaler_took_is_refused_by_no_head():
    X = ROWS.copy()
    X[ROW] = 1.7e308
    ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=100.0, delta=1e-3)
    first = NoisyScaler(epsilon=0.5, bounds=(-0.3, 0.3), ledger=ledger)
    clf = head().set_params(ledger=ledger)
    private_pipeline(first, clf).fit(X, LABELS)
    assert [charge.outcome for charge in ledger.charges()] == ["finished"] * 2


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_transforms_of_finite_rows_are_finite(dtype):
    largest = np.finfo(dtype).max
    X = np.array([[largest, -largest, largest], [largest, largest, largest]], dtype)
    public = (X_PUB * 1e-3).astype(dtype)
    for transformer in (
        NoisyScaler(epsilon=100.0, bounds=(-1e-3, 1e-3)).fit(X_PUB.astype(dtype)),
        PublicWhitener().fit(X, X_pub=public),
        PublicOnly(StandardScaler()).fit(X, X_pub=public),
        PublicOnly(PCA()).fit(X, X_pub=public),
        PublicOnly(MinMaxScaler()).fit(X, X_pub=public),
    ):
        rows = transformer.transform(X)
        assert rows.dtype == dtype and np.isfinite(rows).all(), transformer


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
def test_missing_cells_stay_missing_in_their_rows(container):
    if container == "polars":
        pytest.importorskip("polars")
    X = np.array([[np.nan, 1.7e308, 0.0], [1.7e308, 1.0, 2.0]])
    scaler = PublicOnly(StandardScaler().set_output(transform=container)).fit(X, X_pub=X_PUB * 1e-3)
    rows = np.asarray(scaler.transform(X))
    assert np.isnan(rows[0, 0]) and np.isfinite(rows.ravel()[1:]).all()


@pytest.mark.parametrize("dtype", ["f4", "Float32", object])
def test_types_of_columns_do_not_decide_how_a_wrapped_transformer_reads(dtype):
    X = pd.DataFrame(ROWS.astype("f4"), columns=NAMES)
    public = pd.DataFrame(X_PUB.astype("f4"), columns=NAMES)
    scaler = PublicOnly(StandardScaler()).fit(X, X_pub=public)
    one, other = scaler.transform(X.astype("f8")), scaler.transform(X.astype(dtype))
    assert one.tobytes() == other.tobytes()


def test_warnings_of_a_wrapped_transformer_are_withheld():
    encoder = OneHotEncoder(handle_unknown="warn", sparse_output=False)
    wrapped = PublicOnly(encoder).fit(LABELS[:, None], X_pub=LABELS[:, None])
    with warnings.catch_warnings(record=True, action="always") as caught:
        assert wrapped.transform([[0], [7]]).tolist() == [[1, 0], [0, 0]]
    assert not caught


def test_scores_of_zero_are_not_told_of():
    """SciPy tells of a logit that is infinite, if it is asked to."""
    model = SureModel().fit(ROWS, LABELS)
    with special.errstate(all="warn"), warnings.catch_warnings(record=True, action="always") as caught:
        private_evaluation(model, ROWS, LABELS, epsilon=1.0)
    assert not caught, [str(each.message) for each in caught]


class SureModel(ClassifierMixin, BaseEstimator):
    """A model that is sure of each row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        sure = (X[:, 0] > 0).astype(float)
        return np.column_stack([1 - sure, sure])
