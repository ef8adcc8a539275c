"""Fits whose rows belong to persons: ids, sources, reports, ledgers and folds."""

import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    cross_val_score,
)

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, fit_many
from skmixdp.algorithms import DPZero, NoisyGD
from skmixdp.audit import per_instance_epsilon
from skmixdp.datasets import open_rows
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.inspection import model_card
from skmixdp.model_selection import public_params, public_score
from skmixdp.preprocessing import check_pipeline
from skmixdp.privacy import PrivacyLedger
from tests.unit.rows.conftest import HELD

pytestmark = pytest.mark.filterwarnings("ignore::skmixdp.exceptions.NotPrivateWarning")

rng = np.random.default_rng(0)
GROUPS = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 8, 60)))
Y = rng.integers(0, 3, len(GROUPS))
X = (np.eye(3)[Y] @ (3 * rng.normal(size=(3, 6))) + rng.normal(size=(len(Y), 6))).astype("f4")
X_PUB, Y_PUB = X[:30] + 0.1, Y[:30]


def head(**parameters):
    return MixedDPLogisticRegression(**{"epsilon": 5.0, "classes": range(3), "random_state": 0, **parameters})


def coefficients(groups=GROUPS, X=X, y=Y, **parameters):
    fitted = head(**parameters).fit(X, y, X_PUB, Y_PUB, groups=groups)
    return np.column_stack([fitted.coef_, fitted.intercept_])


@cache
def whole():
    return coefficients()


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS - 1000,
        GROUPS.astype(float),
        np.array([f"person {g:03}" for g in GROUPS]),
        np.array([f"person {g:03}" for g in GROUPS], dtype=object),
        [f"{g:03}" for g in GROUPS],
        pd.Series(GROUPS, name="patient"),
        pd.Series(GROUPS, dtype="Int64"),
        pd.Series([f"{g:03}" for g in GROUPS], dtype="category"),
        pd.to_datetime(GROUPS, unit="D"),
    ],
)
def test_ids_of_any_kind_tell_the_same_persons(groups):
    np.testing.assert_allclose(coefficients(groups), whole(), atol=1e-12)


def test_the_order_of_rows_does_not_matter():
    order = rng.permutation(len(Y))
    np.testing.assert_allclose(coefficients(GROUPS[order], X[order], Y[order]), whole(), atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"noise": "discrete"}, "noise='discrete'"),
        ({"batch_size": 61}, "batch_size=61"),
        ({"device": "meta"}, "device='meta'"),
    ],
)
def test_what_persons_exclude_is_refused(parameters, match):
    pytest.importorskip("opendp")
    with pytest.raises(ValueError, match=match):
        head(**{"random_state": None, **parameters}).fit(X, Y, groups=GROUPS)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_of_any_source_give_the_same_head(tmp_path):
    names = "sparse", "memory map", "npy files", "torch", "dask"
    sources = {name: HELD[name](tmp_path, X, Y)[0] for name in names}
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)])
    sources |= {"frame": frame, "float64": X.astype("f8"), "Fortran": np.asfortranarray(X)}
    for name, held in sources.items():
        np.testing.assert_allclose(coefficients(X=held), whole(), atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.npz"])
def test_files_hold_the_ids_of_persons(tmp_path, name):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)]).assign(label=Y, patient=GROUPS)
    if name == "rows.npz":
        np.savez(tmp_path / name, X=X, y=Y, patient=GROUPS)
    elif name == "rows.feather":
        frame.to_feather(tmp_path / name, chunksize=50)
    else:
        frame.to_parquet(tmp_path / name, row_group_size=50)
    label = None if name == "rows.npz" else "label"
    files = open_rows(tmp_path / name, label=label, group="patient")
    assert files.shape == X.shape and files.groups.tolist() == GROUPS.tolist()
    dataset = PrivacyLedger(":memory:").add_dataset("rows", epsilon=100, delta=1e-3, unit="patient")
    fitted = head().fit(files, None, X_PUB, Y_PUB)
    np.testing.assert_array_equal(fitted.coef_, coefficients()[:, :-1])
    assert fitted.privacy_.unit == "patient" and fitted.privacy_.n_private == 60
    assert "patient" in str(model_card(fitted))
    charged = head(ledger=dataset, random_state=None).fit(files, None, X_PUB, Y_PUB)
    charged.private_score(files, None, epsilon=1.0)
    assert ["column 'patient'" in charge.description for charge in dataset.charges()] == [True, True]
    for refused in (head().fit, partial(fitted.private_score, epsilon=1.0)):
        with pytest.raises(ValueError, match="group='patient'"):
            refused(files, None, groups=GROUPS)
    with pytest.raises(ValueError, match="group='doctor' is no"):
        open_rows(tmp_path / name, label=label, group="doctor")


def test_ids_of_files_are_never_made_alike(tmp_path):
    ids = pd.Series(GROUPS)
    for part, column in enumerate((ids, ids.astype(str))):
        pd.DataFrame({"a": X[:, 0], "person": column}).to_parquet(tmp_path / f"{part}.parquet")
    with pytest.raises(ValueError, match="one type"):
        head().fit(open_rows(tmp_path, group="person"), np.tile(Y, 2))


def test_float16_and_integers_are_taken_as_they_are():
    numbers = np.round(X * 100)
    reference = coefficients(X=numbers.astype("f8"), dtype="float64")
    np.testing.assert_allclose(coefficients(X=numbers.astype("i4"), dtype="float64"), reference, atol=1e-9)
    half = coefficients(X=X.astype("f2"), dtype="float64")
    np.testing.assert_allclose(half, coefficients(X=X.astype("f2").astype("f8"), dtype="float64"), atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        (MixedDPLogisticRegression, NoisyGD(0.3)),
        (MixedDPRidge, NoisyGD(0.3)),
        (MixedDPLogisticRegression, DPZero()),
    ],
)
def test_persons_of_one_row_are_as_rows(kind, algorithm):
    # Sums are stated to be rounded less, which is a little less noise.
    parameters = {"epsilon": 5.0, "random_state": 0, "n_steps": 5, "dtype": "float64"}
    y, y_pub = (X[:, :1], X_PUB[:, :1]) if kind is MixedDPRidge else (Y, Y_PUB)
    alone, persons = (
        kind(algorithm, **parameters).fit(X, y, X_PUB, y_pub, groups=groups)
        for groups in (None, np.arange(len(y)))
    )
    np.testing.assert_allclose(persons.coef_, alone.coef_, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_the_report_and_the_model_card_speak_of_persons():
    groups = pd.Series(GROUPS, name="patient")
    fitted = head(random_state=None).fit(X, Y, X_PUB, Y_PUB, groups=groups)
    report = fitted.privacy_
    assert report.unit == "patient" and report.n_private == 60
    text = str(report)
    assert "all rows of one person (column 'patient')" in text and "60 persons (column 'patient')" in text
    assert "the numbers of persons and of features" in text and "ids of persons" in text
    assert "rows are public" not in text and str(len(Y)) not in text
    for document in (model_card(fitted), fitted._repr_html_(), report._repr_html_()):
        assert "all rows of one person" in str(document) and "one private row" not in str(document)
    unnamed = head(random_state=None).fit(X, Y, X_PUB, Y_PUB, groups=GROUPS).privacy_
    assert unnamed.unit == "person" and "all rows of one person added or removed" in str(unnamed)
    assert head(random_state=None).fit(X, Y).privacy_.unit == "row"


def test_a_fold_counts_the_rows_of_the_fold():
    """Folds cut through persons: what counts are the rows within."""
    rows = [rng.random(len(Y)) < 0.5 for _ in range(3)]
    heads = fit_many([head() for _ in rows], X, Y, X_PUB, Y_PUB, rows=rows, groups=GROUPS)
    for fitted, own in zip(heads, rows, strict=True):
        alone = head().fit(X[own], Y[own], X_PUB, Y_PUB, groups=GROUPS[own])
        np.testing.assert_allclose(fitted.coef_, alone.coef_, atol=1e-12)
        assert fitted.privacy_.n_private == len(np.unique(GROUPS[own]))


def test_a_splitter_that_deals_persons_by_size_is_named():
    public = public_params(X_PUB, Y_PUB)
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            head(), {"epsilon": [1.0]}, cv=GroupKFold(3), scoring=public_score(X_PUB, Y_PUB)
        )
        assert "numbers of rows" in str(check_pipeline(search))
        assert "numbers of rows" not in str(check_pipeline(search.set_params(cv=GroupKFold(3, shuffle=True))))
        with pytest.warns(PrivacyLeakWarning, match="dealt by their numbers of rows"):
            cross_val_score(head(), X, Y, cv=GroupKFold(3), params={"groups": GROUPS, **public})


@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True), ShuffleSplit(2), StratifiedGroupKFold(3)])
def test_a_splitter_that_deals_rows_is_named_if_there_are_persons(cv):
    """Where a fold of rows ends follows from how many rows others have."""
    passed = {"groups": GROUPS, **public_params(X_PUB, Y_PUB)}
    terms = {"scoring": public_score(X_PUB, Y_PUB), "cv": cv}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(head(), {"epsilon": [1.0]}, **terms)
        for fit in (
            lambda: search.fit(X, Y, **passed),
            lambda: cross_val_score(head(), X, Y, params=passed, **terms),
        ):
            with warnings.catch_warnings(record=True, action="always") as caught:
                fit()
            assert any("dealt by their numbers of rows" in str(one.message) for one in caught)
        assert "numbers of rows" in search.best_estimator_.privacy_.no_guarantee
        splits = [(np.arange(120), np.arange(120, len(X)))]
        for right in (GroupKFold(3, shuffle=True), GroupShuffleSplit(2), splits):
            with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
                search.set_params(cv=right).fit(X, Y, **passed)


def test_each_person_has_a_record_of_its_own_loss():
    fitted = head(record_per_instance=True, random_state=None).fit(X, Y, X_PUB, Y_PUB, groups=GROUPS)
    losses = per_instance_epsilon(fitted, delta=1e-5)
    assert losses.shape == (60,)
    assert np.all(losses > 0) and losses.max() <= fitted.privacy_.epsilon * (1 + 1e-9)


def test_weights_multiply_gradients_before_the_clip():
    weights = np.where(GROUPS < 30, 0.0, 1.0)
    terms = {"n_steps": 3, "max_sample_weight": 1.0}
    zero = head(**terms).fit(X, Y, X_PUB, Y_PUB, sample_weight=weights, groups=GROUPS)
    others = X.copy()
    others[GROUPS < 30] *= -1
    same = head(**terms).fit(others, Y, X_PUB, Y_PUB, sample_weight=weights, groups=GROUPS)
    np.testing.assert_allclose(zero.coef_, same.coef_, atol=1e-9)


def test_persons_of_many_unlike_rows_gain_over_one_row_each_and_group_privacy():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    test, public, private = slice(0, 400), slice(400, 450), slice(450, None)
    groups = np.arange(len(y[private])) // 10
    parameters = {"epsilon": 1.0, "classes": range(10)}

    def accuracy(rows=slice(None), groups=None, **more):
        scores = []
        for seed in range(3):
            head = MixedDPLogisticRegression(**parameters, random_state=seed, **more)
            head.fit(X[private][rows], y[private][rows], X[public], y[public], groups=groups)
            scores.append(head.score(X[test], y[test]))
        return np.mean(scores)

    persons = accuracy(groups=groups)
    assert persons >= accuracy(slice(None, None, 10)) and persons > 0.85


def test_several_labels_of_persons():
    labels = np.column_stack([Y == 0, Y > 0]).astype(int)
    fitted = MixedDPLogisticRegression(epsilon=20.0, random_state=0).fit(X, labels, groups=GROUPS)
    assert fitted.privacy_.n_private == 60
    assert fitted.predict(X).shape == labels.shape and np.mean(fitted.predict(X) == labels) > 0.8


def test_only_names_of_columns_are_reported():
    """A Dask array is named by a hash of what it holds."""
    da = pytest.importorskip("dask.array")
    fitted = head().fit(X, Y, X_PUB, Y_PUB, groups=da.from_array(GROUPS, chunks=50))
    assert fitted.privacy_.unit == "person"


def test_ids_are_no_weights_by_place():
    with pytest.raises(TypeError, match="positional"):
        head().fit(X, Y, X_PUB, Y_PUB, GROUPS)
