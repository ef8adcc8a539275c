"""Scores, evaluations, thresholds, scalers and searches of persons: what is released, charged and refused."""

import pickle
import re
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.model_selection import PrivateSearchCV, private_evaluation
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import PrivacyLedger
from tests.secrets import reachable

N = 400
rng = np.random.default_rng(0)
SIZES = rng.integers(1, 8, N)
GROUPS = pd.Series(rng.permutation(np.repeat(np.arange(N), SIZES)), name="patient")
Y = rng.integers(0, 3, len(GROUPS))
X = (np.eye(3)[Y] @ rng.normal(size=(3, 6)) + rng.normal(size=(len(Y), 6))).astype("f4")
HEAD = MixedDPLogisticRegression("noisy-gd", n_steps=3, epsilon=3.0, classes=range(3))
BINARY = clone(HEAD).set_params(classes=range(2))
#: Noise that is next to none.
EXACT = {"epsilon": 1e12}


def of_persons(values, groups=GROUPS):
    """Means over persons of the means over their rows."""
    return pd.DataFrame(np.asarray(values, float)).groupby(np.asarray(groups)).mean().mean(axis=0).to_numpy()


@pytest.fixture(scope="module")
def fitted():
    return clone(HEAD).fit(X, Y, groups=GROUPS)


@pytest.fixture
def patients():
    return PrivacyLedger(":memory:").add_dataset("patients", epsilon=100.0, delta=1e-4, unit="patient")


# -- what is released ----------------------------------------------------------------------


def test_a_score_is_the_mean_over_persons(fitted):
    right = of_persons(fitted.predict(X) == Y)
    score = fitted.private_score(X, Y, groups=GROUPS, noise_multiplier=1e-9)
    np.testing.assert_allclose(score, right[0], atol=1e-6)
    assert abs(score - fitted.score(X, Y)) > 1e-3


def test_a_confusion_has_one_unit_of_each_person(fitted):
    found = fitted.private_confusion(X, Y, groups=GROUPS, noise_multiplier=1e-9)
    cells = (3 * Y + fitted.predict(X))[:, np.newaxis] == np.arange(9)
    np.testing.assert_allclose(found.ravel(), N * of_persons(cells), atol=1e-6)


def test_a_score_of_a_regression_is_the_mean_over_persons():
    ridge = MixedDPRidge("noisy-gd", n_steps=3, epsilon=3.0, target_scale=2.0).fit(X, X[:, 0], groups=GROUPS)
    near = 1 - np.minimum(np.abs(ridge.predict(X) - X[:, 0]) / 4.0, 1)
    score = ridge.private_score(X, X[:, 0], groups=GROUPS, noise_multiplier=1e-9)
    np.testing.assert_allclose(score, of_persons(near)[0], atol=1e-5)


@pytest.mark.parametrize("layout", ["top", "one_vs_rest"])
def test_an_evaluation_has_one_unit_of_each_person_in_each_histogram(fitted, layout):
    found = private_evaluation(fitted, X, Y, groups=GROUPS, layout=layout, n_bins=8, **EXACT)
    np.testing.assert_allclose(found.counts.sum(axis=1), N, atol=1e-3)
    assert found.cells.n_rows == found.privacy.n_private == N
    if layout == "top":
        np.testing.assert_allclose(found.share().value, of_persons(fitted.predict(X) == Y)[0], atol=1e-5)
    text = str(found)
    assert "400 persons (column 'patient')" in text and "persons a cell" in text and "rows" not in text
    assert str(len(Y)) not in text + str(found.privacy)


def test_the_cells_follow_from_the_number_of_persons(fitted):
    """The number of rows would tell how many rows persons have."""
    few = private_evaluation(fitted, X, Y, groups=GROUPS, epsilon=1.0)
    many = np.tile(np.arange(len(Y)), 50)
    grown = private_evaluation(fitted, X[many], Y[many], groups=GROUPS.to_numpy()[many], epsilon=1.0)
    assert few.counts.shape == grown.counts.shape and few.noise_scale == grown.noise_scale


@pytest.mark.parametrize("with_std", [True, False])
def test_a_scaler_has_the_mean_and_deviation_over_persons(with_std):
    scaler, of_rows = (NoisyScaler(**EXACT, bounds=(-2.0, 2.0), with_std=with_std) for _ in range(2))
    scaler.fit(X, groups=GROUPS)
    cut = np.clip(X.astype("f8"), -2, 2)
    mean = of_persons(cut)
    np.testing.assert_allclose(scaler.mean_, mean, atol=1e-5)
    if with_std:
        np.testing.assert_allclose(scaler.scale_, np.sqrt(of_persons(cut**2) - mean**2), atol=1e-4)
    units = [one.mean_noise_ * N / scaler.privacy_.noise_multiplier for one in (scaler, of_rows.fit(X[:N]))]
    np.testing.assert_allclose(*units, atol=1e-12)


def test_persons_who_count_once_decide_what_a_scaler_finds_without_bounds():
    """One person with nine tenths of the rows does not move the centre."""
    usual, far = rng.normal(size=(2000, 2)), rng.normal(100.0, 1.0, size=(18000, 2))
    groups = np.append(np.arange(2000), np.full(18000, 5))
    scaler = NoisyScaler(10.0).fit(np.vstack([usual, far]), groups=groups)
    assert np.abs(scaler.mean_).max() < 0.5 and scaler.scale_.max() < 5


GRID = {"learning_rate": [0.3, 1.0]}


def test_no_object_holds_how_many_rows_persons_have():
    """After a fit, an evaluation, a search, a score and a scaler."""
    many = np.tile(np.arange(len(Y)), 7)  # so that no count is like another number
    rows, y, groups = X[many], Y[many], GROUPS.iloc[many]
    model = clone(BINARY).fit(rows, y > 0, groups=groups)
    released = [
        model,
        private_evaluation(model, rows, y > 0, groups=groups, epsilon=1.0),
        PrivateSearchCV(HEAD, {"learning_rate": [0.3, 1.0]}, strategy="grid").fit(rows, y, groups=groups),
        NoisyScaler(bounds=(-4, 4)).fit(rows, groups=groups),
        NoisyScaler(50.0).fit(rows, groups=groups),
    ]
    best = released[2].best_estimator_
    released[2].private_score = best.private_score(rows, y, groups=groups, noise_multiplier=9.0)
    counts = {len(y), *np.bincount(y).tolist(), int((y > 0).sum())}
    assert min(counts) > 1000
    for part in reachable([*released, *map(pickle.dumps, released), *map(str, released)]):
        if isinstance(part, (int, float)):
            assert part not in counts
        elif isinstance(part, np.ndarray):
            assert part.dtype.kind not in "fiu" or not np.isin(part, list(counts)).any()
            assert len(y) not in part.shape
        elif isinstance(part, str):
            assert not {int(number) for number in re.findall(r"\d+", part)} & counts


# -- searches -------------------------------------------------------------------------------


def test_the_scores_of_a_search_are_means_over_persons():
    """One person with nine tenths of the rows, all of them wrong, does not move them."""
    grown = pd.Series(np.append(GROUPS, np.full(9 * len(Y), 7)))
    rows, y = np.vstack([X, np.tile(X, (9, 1))]), np.append(Y, np.tile((Y + 1) % 3, 9))
    search = PrivateSearchCV(HEAD, GRID, strategy="grid", epsilon=500.0)
    assert search.fit(rows, y, groups=grown).best_score_ > 0.5


def test_a_pipeline_passes_persons_to_its_scaler_and_its_head(patients):
    pipe = make_pipeline(NoisyScaler(0.5, bounds=(-4, 4), ledger=patients), clone(HEAD))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.set_params(mixeddplogisticregression__ledger=patients).fit(X, Y, groups=GROUPS)
    said = [charge.description.split(", ")[1] for charge in patients.charges()]
    assert said == ["400 persons (column 'patient')"] * 2
    assert pipe[0].privacy_.unit == pipe[-1].privacy_.unit == "patient"


class TakesIds(FunctionTransformer):
    """A step that requests ids, so that scikit-learn lets them pass."""

    __metadata_request__fit: ClassVar = {"groups": True}

    def fit(self, X, y=None, groups=None):
        return super().fit(X, y)


def test_a_search_over_a_pipeline_passes_persons_to_fits_and_scores():
    pipe = Pipeline([("head", clone(HEAD))])
    grid = {"head__learning_rate": [0.3, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        found = PrivateSearchCV(pipe, grid, strategy="grid").fit(X, Y, groups=GROUPS)
        assert found.best_estimator_[-1].privacy_.unit == "patient"
        deaf = Pipeline([("ids", TakesIds()), ("head", clone(HEAD).set_fit_request(groups=False))])
        with pytest.raises(ValueError, match="protects 'row', and the search 'patient'"):
            PrivateSearchCV(deaf, grid, strategy="grid").fit(X, Y, groups=GROUPS)


def test_a_pipeline_needs_routing_to_pass_persons_on():
    pipe = Pipeline([("head", clone(BINARY))])
    search = PrivateSearchCV(pipe, {"head__learning_rate": [0.3]}, strategy="grid")
    with pytest.raises(ValueError, match="groups reaches the steps of a Pipeline only with metadata routing"):
        search.fit(X, Y > 0, groups=GROUPS)


# -- what is refused ------------------------------------------------------------------------
