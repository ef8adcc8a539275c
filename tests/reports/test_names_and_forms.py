"""Names decide what columns are, and inputs of other forms are read, or refused in one sentence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    MixedDPRidge,
    load,
    private_pipeline,
)
from skmixdp.datasets import open_rows
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import PublicOnly, TableEncoder

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 3))
FRAME = pd.DataFrame(X, columns=list("pqr"))
LABELS = pd.DataFrame({"a": (X[:, 0] > 0).astype(int), "b": (X[:, 1] > 1).astype(int)})
ONE = LABELS["a"]
SWAPPED = LABELS[["b", "a"]]
NEAR = {"epsilon": 5.0, "delta": 1e-4}
BOUNDS = dict.fromkeys("pqr", (-3, 3))


def head(**options):
    return MixedDPLogisticRegression(**{"classes": [0, 1], **NEAR, **options})


# -- several labels ------------------------------------------------------------------------

OTHER_NAMES = r"y has the columns \['b', 'a'\] and this classifier has \['a', 'b'\]; pass the same columns"


@pytest.mark.parametrize(
    "names", [["b", "a"], ["c", "d"], ["a", "c"], ("b", "a"), np.array(["b", "a"])], ids=str
)
def test_names_of_labels_that_are_not_those_of_their_columns_are_refused(names):
    with pytest.raises(
        ValueError, match=r"y has the columns \['a', 'b'\] and classes names .*the same order\."
    ):
        head(classes=names).fit(X, LABELS)


@pytest.mark.parametrize(
    "y", [LABELS, LABELS.to_numpy(), pd.DataFrame(LABELS.to_numpy())], ids=lambda y: type(y).__name__
)
def test_columns_of_these_names_or_of_none_are_taken(y):
    model = head(classes=["a", "b"]).fit(X, y)
    assert model.classes_.tolist() == ["a", "b"] and model.score(X, y) > 0.95


@pytest.mark.parametrize("kind", [MixedDPRidge, AdditiveDPRegressor])
def test_swapped_targets_are_refused_wherever_they_are_compared(kind, tmp_path):
    targets = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] - X[:, 2]})
    model = kind(**NEAR).fit(X, targets)
    model.save(tmp_path / "model.safetensors")
    for each in (model, load(tmp_path / "model.safetensors")):
        assert each.score(X, targets) == each.score(X, targets.to_numpy()) > 0.9
        assert each.private_score(X, targets, **NEAR) > 0.8
        other = r"y has the columns \['b', 'a'\] and this regression has \['a', 'b'\]; pass the same columns"
        with pytest.raises(ValueError, match=other):
            each.score(X, targets[["b", "a"]])
        with pytest.raises(ValueError, match=other):
            each.private_score(X, targets[["b", "a"]], **NEAR)
    # A fit without names has none.
    assert model.fit(X, targets.to_numpy()).score(X, targets[["a", "b"]]) > 0.9


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.score(X, SWAPPED),
        lambda model: private_evaluation(model, X, SWAPPED, **NEAR),
        lambda model: model.private_score(X, SWAPPED, epsilon=1.0, delta=1e-4),
        lambda model: model.score(
            X, LABELS.rename(columns={"a": "c"})[["c", "b"]].rename(columns={"c": "b", "b": "a"})
        ),
    ],
    ids=["score", "private_evaluation", "private_score", "renamed"],
)
def test_swapped_labels_are_refused_wherever_they_are_compared(use):
    with pytest.raises(ValueError, match=OTHER_NAMES):
        use(head(classes=None).fit(X, LABELS))


@pytest.mark.parametrize(
    "model", [head(classes=None), MixedDPRidge(**NEAR)], ids=lambda each: type(each).__name__
)
def test_public_columns_in_another_order_are_refused(model):
    with pytest.raises(ValueError, match=r"y and y_pub differ in their columns, \['a', 'b'\] and others"):
        model.fit(X[200:], LABELS[200:], X_pub=X[:200], y_pub=SWAPPED[:200])


# -- rows in files behind an encoder ---------------------------------------------------------


@pytest.fixture
def people(tmp_path):
    """A file of numbers and words, with labels and ids of persons."""
    frame = FRAME.assign(word=np.where(ONE, "yes", "no"), label=ONE, person=np.arange(2000) // 2)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",")
    return tmp_path


KINDS = {**BOUNDS, "word": ["yes", "no"]}


@pytest.mark.parametrize(
    ("file", "form"), [("x.csv", {}), ("commas.csv", {"separator": ";", "decimal": ","})]
)
def test_files_behind_an_encoder(people, file, form):
    files = open_rows(people / file, label="label", exclude=["person"], **form)
    model = private_pipeline(TableEncoder(KINDS), head()).fit(files)
    frame = FRAME.assign(word=np.where(ONE, "yes", "no"))
    assert model.score(frame, ONE) > 0.98
    np.testing.assert_allclose(model.predict_proba(files), model.predict_proba(frame), rtol=0, atol=1e-9)


def test_files_with_persons_and_public_rows_behind_an_encoder(people):
    files = open_rows(people / "x.csv", label="label", group="person")
    public = FRAME.assign(word=np.where(ONE, "yes", "no"))[:100]
    model = private_pipeline(TableEncoder(), head()).fit(files, X_pub=public, y_pub=ONE[:100])
    assert model.privacy_.unit == "person" and model.privacy_.n_private == 1000


def test_arrays_in_files_have_no_names(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, y=ONE)
    with pytest.raises(
        ValueError, match=r"x.npz holds an array, whose columns have no names; pass the array"
    ):
        private_pipeline(TableEncoder(BOUNDS), head()).fit(open_rows(tmp_path / "x.npz"))


# -- exports of column transformers -----------------------------------------------------------

CHOICES = {
    "a slice": slice(0, 2),
    "the last ones": slice(-2, None),
    "every other": slice(0, 3, 2),
    "places": [0, 2],
    "one from the end": [-1],
    "flags": [True, False, True],
    "an array of flags": np.array([False, True, True]),
    "a function": lambda rows: [1],
    "none": [],
    "names": ["p", "r"],
    "a slice of names": slice("p", "q"),
    "an index": pd.Index(["q"]),
    "a selector": make_column_selector(pattern="p|q"),
}


@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
@pytest.mark.parametrize("kind", CHOICES)
def test_columns_may_be_chosen_in_any_way_for_onnx(kind, remainder):
    runtime = pytest.importorskip("onnxruntime")
    if kind == "none" and remainder == "drop":
        return
    rows = FRAME if "name" in kind or kind in ("an index", "a selector") else X
    columns = ColumnTransformer([("s", StandardScaler(), CHOICES[kind])], remainder=remainder)
    model = private_pipeline(PublicOnly(columns), head())
    model.fit(rows[200:], ONE[200:], X_pub=rows[:200], y_pub=ONE[:200])
    session = runtime.InferenceSession(
        model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    feeds = {"X": X} if names == ["X"] else {name: FRAME[[name.split("/")[-1]]].to_numpy() for name in names}
    found = next(each for each in session.run(None, feeds) if np.ndim(each) == 2)
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-9)


# -- one sentence each ------------------------------------------------------------------------


def test_frames_without_rows():
    with pytest.raises(
        ValueError, match=r"^X has 0 sample\(s\) while a minimum of 2 is required; pass more rows\.$"
    ):
        private_pipeline(TableEncoder(BOUNDS), head()).fit(FRAME[:0], ONE[:0])
    model = private_pipeline(TableEncoder(BOUNDS), head()).fit(FRAME, ONE)
    with pytest.raises(
        ValueError, match=r"^X has 0 sample\(s\) while a minimum of 1 is required; pass more rows\.$"
    ):
        model.predict(FRAME[:0])


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("number", [1.0]),
        ("date", ["2020-01-01"]),
        (3, [[1.0, 2.0, 3.0]]),
        ("category", ["a"]),
        ("text", ["a b"]),
    ],
)
def test_columns_of_any_kind_without_rows(kind, cells):
    encoder = TableEncoder({"v": kind}, max_categories=1).fit(
        pd.DataFrame({"v": cells}), X_pub=pd.DataFrame({"v": cells})
    )
    width = len(encoder.get_feature_names_out())
    assert encoder.transform(pd.DataFrame({"v": pd.Series([], dtype=object)})).shape == (0, width)


class WantsGroups(StandardScaler):
    def fit(self, X, y, groups):
        return super().fit(X)


@pytest.mark.parametrize(
    "step",
    [RFECV(LogisticRegression(), cv=GroupKFold(2)), WantsGroups()],
    ids=lambda each: type(each).__name__,
)
def test_a_public_step_that_wants_groups_is_refused(step):
    model = private_pipeline(PublicOnly(step), head())
    with pytest.raises(ValueError, match=rf"^{type(step).__name__} wants groups, and PublicOnly passes rows"):
        model.fit(X[200:], ONE[200:], X_pub=X[:200], y_pub=ONE[:200])


STARTS = {
    "a fitted head": LogisticRegression().fit(X[:200], ONE[:200]),
    "a head that is not fitted": LogisticRegression(),
    "another classifier": SGDClassifier(),
    "a regression": Ridge().fit(X[:200], X[:200, 0]),
    "a pipeline": make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:200], ONE[:200]),
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_head_of_scikit_learn_is_no_start(kind):
    with pytest.raises(
        ValueError, match=r"^(?s:init=.*is not a valid start of MixedDPLogisticRegression; pass the public)"
    ):
        head(init=STARTS[kind]).fit(X, ONE)


@pytest.mark.parametrize("n_values", [2, 3, 5, 12])
def test_rows_of_few_values_repeat_and_nothing_is_said(n_values):
    """Whether private rows repeat is private, and narrow tables have few rows that differ."""
    rows = RNG.integers(0, n_values, (3000, 2)).astype(float)
    with warnings.catch_warnings(action="error"):
        head().fit(rows, (rows[:, 0] > 0).astype(int))


# -- names of the frame in additive models --------------------------------------------------------

DAYS = "2020-01-0" + pd.Series(1 + np.arange(2000) % 7).astype(str)
MIXED = FRAME.assign(city=np.where(X[:, 2] > 0.5, "Bonn", "Ulm"), day=DAYS)
COLUMNS = {**BOUNDS, "city": ["Bonn", "Ulm"], "day": ("2020-01-01", "2020-01-08")}
#: The encoded columns are p, q, r, two of the city, and five of the day.
LINEAR = {
    ("p",): [0],
    ("city",): [3, 4],
    ("day",): [5, 6, 7, 8, 9],
    ("p", "city"): [0, 3, 4],
    (1, "r"): [1, 2],
}


@pytest.mark.parametrize("names", LINEAR, ids=str)
@pytest.mark.parametrize("kind", [AdditiveDPClassifier, AdditiveDPRegressor])
def test_linear_columns_have_the_names_of_the_frame(kind, names):
    model = kind(linear=list(names), epsilon=20.0, delta=1e-4)
    if kind is AdditiveDPClassifier:
        model.set_params(classes=[0, 1])
    else:
        model.set_params(target_scale=1.0, target_center=0.0)
    encoder = TableEncoder(COLUMNS, indicators=False)
    with warnings.catch_warnings(action="ignore"):
        fitted = private_pipeline(encoder, model).fit(MIXED, ONE)[-1]
    assert all(len(fitted.knots_[place]) == 2 for place in LINEAR[names])
    curved = {0, 1, 2} - {*LINEAR[names]}
    assert all(len(fitted.knots_[place]) > 2 for place in curved)


PAIRS = {
    (("p", "q"),): [(0, 1)],
    (("p", "city"),): [(0, 3), (0, 4)],
    (("city", "q"), ("p", "r")): [(3, 1), (4, 1), (0, 2)],
    ((0, "q"),): [(0, 1)],
}


@pytest.mark.parametrize("names", PAIRS, ids=str)
def test_pairs_have_the_names_of_the_frame(names):
    model = AdditiveDPClassifier(classes=[0, 1], interactions=[*names], epsilon=20.0, delta=1e-4)
    with warnings.catch_warnings(action="ignore"):
        fitted = private_pipeline(TableEncoder(COLUMNS, indicators=False), model).fit(MIXED, ONE)[-1]
    assert [tuple(map(int, pair)) for pair in fitted.interactions_] == PAIRS[names]


@pytest.mark.parametrize(
    "options",
    [
        {"linear": ["town"]},
        {"linear": ["city=Bonn "]},
        {"interactions": [("p", "town")]},
        {"interactions": [("city", "city")]},
    ],
    ids=str,
)
def test_names_that_the_frame_lacks_are_refused(options):
    model = private_pipeline(TableEncoder(COLUMNS), AdditiveDPClassifier(classes=[0, 1], **NEAR, **options))
    with pytest.raises(ValueError, match=r"of X, which has \['p', 'q', 'r', 'city', 'day'\]"):
        model.fit(MIXED, ONE)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_a_linear_number_has_the_unit_of_public_rows(unit):
    """A number in another unit has the same effect; it hid all others, or had next to none."""
    rows = FRAME.assign(p=300 + 50 * FRAME["p"]) * [unit, 1, 1]
    areas = []
    for options in ({"linear": ["p"]}, {}):
        model = AdditiveDPClassifier(**NEAR, **options)
        areas.append(model.fit(rows[300:], ONE[300:], X_pub=rows[:300], y_pub=ONE[:300]).score(rows, ONE))
    assert areas[0] > areas[1] - 0.02 > 0.93
