"""Centre and spread of columns that users declare."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    MixedDPRidge,
    Typical,
    fit_many,
    load,
    private_pipeline,
)
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X, Y = load_breast_cancer(return_X_y=True)
D = X.shape[1]
ORDER = np.random.default_rng(0).permutation(len(X))
TRAIN, TEST = ORDER[:400], ORDER[400:]
#: Spreads are off by a factor of up to 2, and centres by half a spread.
_rng = np.random.default_rng(1)
ROUGH = {
    j: Typical(center + 0.5 * spread * shift, spread * 2.0**power)
    for j, (center, spread, shift, power) in enumerate(
        zip(X.mean(0), X.std(0), _rng.uniform(-1, 1, D), _rng.uniform(-1, 1, D), strict=True)
    )
}


def head(kind=MixedDPLogisticRegression, **parameters):
    return kind(**{"epsilon": 0.5, "classes": [0, 1], "random_state": 0} | parameters)


def fitted(kind=MixedDPLogisticRegression, rows=X[TRAIN], y=Y[TRAIN], **parameters):
    return head(kind, **parameters).fit(rows, y)


@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, AdditiveDPClassifier])
def test_rough_declarations_are_worth_more_than_epsilon(kind):
    without, declared = fitted(kind), fitted(kind, scale=ROUGH)
    assert declared.score(X[TEST], Y[TEST]) > 0.85 > without.score(X[TEST], Y[TEST])
    assert declared.privacy_.epsilon == pytest.approx(without.privacy_.epsilon, abs=1e-9)
    assert "columns" not in dict(declared.privacy_.shares)
    assert f"the scale of {D} columns (declared)" in declared.privacy_.treated_as_public


@pytest.mark.parametrize("kind", [MixedDPRidge, AdditiveDPRegressor])
def test_regressions_take_them(kind):
    target = X[:, 0] + X[:, 1]
    settings = {"target_center": 33.0, "target_scale": 8.0, "epsilon": 1.0, "random_state": 0}
    without, declared = (
        kind(**settings, **more).fit(X[TRAIN], target[TRAIN]).score(X[TEST], target[TEST])
        for more in ({}, {"scale": ROUGH})
    )
    assert declared > 0.5 > without


def test_the_map_is_what_is_declared_whatever_the_rows_are():
    columns = fitted(scale=ROUGH)._row_map.columns
    other = fitted(rows=3 * X[TRAIN][::-1] + 1e4, scale=ROUGH)._row_map.columns
    for each in (columns, other):
        np.testing.assert_array_equal(each.center, [value for value, _ in ROUGH.values()])
        np.testing.assert_allclose(
            each.factor, [1 / distance for _, distance in ROUGH.values()], rtol=1e-15, atol=0
        )


def test_columns_that_are_not_declared_keep_their_unit_or_that_of_public_rows():
    some = {3: Typical(600, 300), 0: Typical(14, 4)}
    columns = fitted(scale=some)._row_map.columns
    np.testing.assert_array_equal(columns.center[[0, 3]], [14, 600])
    np.testing.assert_array_equal(np.delete(columns.factor, [0, 3]), 1.0)
    known = head(scale=some).fit(X[TRAIN], Y[TRAIN], X_unlabeled=X[TEST])._row_map.columns
    np.testing.assert_array_equal(known.center[[0, 3]], [14, 600])
    np.testing.assert_allclose(
        np.delete(known.center, [0, 3]), np.delete(X[TEST].mean(0), [0, 3]), rtol=1e-9, atol=0
    )


def test_clear_histograms_take_their_place():
    few = {0: Typical(14, 4), 1: Typical(19, 4)}
    clf = fitted(rows=X[TRAIN][:, :2], scale=few, epsilon=50.0)
    assert "columns" in dict(clf.privacy_.shares)
    assert not np.array_equal(clf._row_map.columns.center, [14, 19])


def test_names_of_frames_count():
    frame = pd.DataFrame(X[TRAIN], columns=[f"c{j}" for j in range(D)])
    named = head(scale={f"c{j}": value for j, value in ROUGH.items()}).fit(frame, Y[TRAIN])
    np.testing.assert_array_equal(named.coef_, fitted(scale=ROUGH).coef_)


COLUMNS = {"radius": (0.0, 40.0), "area": "number", "wide": ["yes", "no"]}
SCALE = {"area": Typical(600, 300), "radius": Typical(14, 4)}


class TestBehindAnEncoder:
    FRAME = pd.DataFrame(
        {"radius": X[:, 0], "area": X[:, 3], "wide": np.where(X[:, 1] > 19, "yes", "no")}
    ).iloc[TRAIN]

    @pytest.mark.parametrize("kind", [MixedDPLogisticRegression, AdditiveDPClassifier])
    def test_columns_are_those_of_the_frame(self, kind):
        pipeline = private_pipeline(TableEncoder(COLUMNS), head(kind, scale=SCALE))
        pipeline.fit(self.FRAME, Y[TRAIN])
        assert "columns" not in dict(pipeline[-1].privacy_.shares)
        assert pipeline.score(self.FRAME, Y[TRAIN]) > 0.7

    def test_they_are_in_the_units_of_the_encoder(self):
        pipeline = private_pipeline(TableEncoder(COLUMNS), head(scale=SCALE))
        columns = pipeline.fit(self.FRAME, Y[TRAIN])[-1]._row_map.columns
        np.testing.assert_allclose(columns.center, [(14 - 20) / 20, 600, 0.5, 0.5], rtol=1e-12, atol=0)
        np.testing.assert_allclose(1 / columns.factor, [4 / 20, 300, 0.5, 0.5], rtol=1e-12, atol=0)

    def test_another_column_is_refused(self):
        pipeline = private_pipeline(TableEncoder(COLUMNS), head(scale={"wide": Typical(0, 1)}))
        with pytest.raises(ValueError, match="'wide', which is no numeric column"):
            pipeline.fit(self.FRAME, Y[TRAIN])


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ({0: (1, 2, 3)}, r"scale\[0\]=.* must be Typical"),
        ({0: 5.0}, r"scale\[0\]=5.0 must be Typical"),
        ({0: (1, 2)}, r"scale\[0\]=\(1, 2\) must be Typical\(value, distance\).* or Typical.between"),
        ({0: [1, 2]}, "must be Typical"),
        ({0: np.array([1.0, 2.0])}, "must be Typical"),
        ({0: Typical(1, 0)}, "with a distance of at least 1e-15"),
        ({0: Typical(1, -2)}, "must be Typical"),
        ({0: Typical(np.nan, 1)}, "must be Typical"),
        ({0: Typical(1, np.inf)}, "must be Typical"),
        ({0: Typical("a", "b")}, "must be Typical"),
        ({"age": Typical(45, 15)}, "'age', which is no numeric column"),
        ({D: Typical(45, 15)}, "which is no numeric column"),
        ({True: Typical(45, 15)}, "which is no numeric column"),
        ({(1, 2): Typical(45, 15)}, "which is no numeric column"),
        ((45, 15), "scale=.* must be"),
        ("age", "scale='age' must be"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, AdditiveDPClassifier])
def test_bad_declarations_are_refused_before_the_charge(kind, scale, message):
    ledger = PrivacyLedger(":memory:")
    ledger.add_dataset("rows", epsilon=10, delta=1e-4)
    data_set = ledger["rows"]
    with pytest.raises(ValueError, match=message):
        fitted(kind, scale=scale, ledger=data_set, random_state=None)
    assert not data_set.charges()


def test_bounds_stand_for_quantiles():
    typical = Typical.between(-1.645, 1.645)
    assert typical == pytest.approx((0.0, 1.0), abs=1e-12)


def test_fit_many_files_and_clones(tmp_path):
    one, other = fit_many([head(scale=ROUGH), head(AdditiveDPClassifier, scale=ROUGH)], X[TRAIN], Y[TRAIN])
    for clf in (one, other):
        clf.save(tmp_path / "head")
        np.testing.assert_array_equal(load(tmp_path / "head").predict(X[TEST]), clf.predict(X[TEST]))
        assert sklearn.clone(clf).scale == ROUGH
        np.testing.assert_array_equal(clf.coef_, sklearn.clone(clf).fit(X[TRAIN], Y[TRAIN]).coef_)


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
def test_persons_and_discrete_noise(neighboring):
    clf = head(scale=ROUGH, neighboring=neighboring)
    assert clf.fit(X[TRAIN], Y[TRAIN], groups=np.arange(400) // 2).privacy_.unit == "person"
    exact = head(scale=ROUGH, neighboring=neighboring, noise="discrete", random_state=None)
    assert exact.fit(X[TRAIN], Y[TRAIN]).score(X[TEST], Y[TEST]) > 0.6
