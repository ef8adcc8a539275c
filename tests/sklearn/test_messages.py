"""Mistakes of a new user, and the one sentence that says what is wrong, where, and what to do."""

import re
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, ZerothOrderDPModuleClassifier, fit_many
from skmixdp.algorithms import PAZO
from skmixdp.datasets import open_rows
from skmixdp.inference import private_inference
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import NoisyScaler, PublicOnly, PublicWhitener, RowNormalizer
from tests.private_names import is_empty, suggestion

NEAR = {"delta": 1e-3}


@pytest.fixture
def head():
    return MixedDPLogisticRegression(**NEAR)


def refused(action, message, error=ValueError):
    """The action is refused in one sentence, which is returned."""
    with pytest.raises(error) as caught:
        action()
    said = str(caught.value)
    assert re.search(message, said), said
    assert "\n" not in said and ". " not in said and said[-1] in ".?", said
    assert len(said) < 340, said
    return said


CALLS = {
    "private_inference() got an unexpected keyword argument 'famly'": lambda: private_inference(
        np.eye(9), np.zeros(9), famly="logistic"
    ),
    "private_inference() missing 2 required positional arguments": lambda: private_inference(),
    "open_rows() got an unexpected keyword argument 'lable'": lambda: open_rows("rows.csv", lable="y"),
    "transform() missing 1 required positional argument: 'X'": lambda: NoisyScaler().transform(),
    "transform() takes 2 positional arguments but 3 were given": lambda: NoisyScaler().transform(1, 2),
    "predict_proba() got an unexpected keyword argument": lambda: MixedDPLogisticRegression().predict_proba(
        rows=np.eye(2)
    ),
}


@pytest.mark.parametrize("message", CALLS)
def test_a_call_with_wrong_arguments_names_them(message):
    """The texts are Python's. They have names of arguments, and no values."""
    with pytest.raises(TypeError, match=re.escape(message)):
        CALLS[message]()


class TestNamesOfArguments:
    @pytest.mark.covering
    @pytest.mark.parametrize(
        ("given", "meant"), [("Xpub", "X_pub"), ("x_pub", "X_pub"), ("ypub", "y_pub"), ("y_public", "y_pub")]
    )
    @pytest.mark.parametrize(
        "estimator",
        [
            MixedDPLogisticRegression(),
            MixedDPRidge(),
            MixedDPLogisticRegression(PAZO("m")),
            PrivateSearchCV(MixedDPLogisticRegression(), {"epsilon": [1.0]}),
        ],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_a_misspelt_name(self, rows, estimator, given, meant):
        name = type(estimator).__name__
        said = refused(lambda: estimator.fit(rows.X, rows.y, **{given: 0}), f"^fit of {name} does", TypeError)
        assert said.endswith(f"does not accept {given}; did you mean {meant}?")

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("sample_weights", "did you mean sample_weight"),
            ("epochs", "does not accept epochs; leave it out"),
            ("public_X", "pass it as one of X, y, X_pub, "),
        ],
    )
    def test_anything_else(self, rows, head, name, hint):
        refused(lambda: head.fit(rows.X, rows.y, **{name: rows.y}), hint, TypeError)

    def test_suggestions(self):
        known = ["resnet50", "resnet51", "vit_base"]
        assert suggestion("Resnet-50", known) == "did you mean resnet50"
        assert suggestion("resnet50", known, n=2) == "did you mean resnet50 or resnet51"
        assert suggestion("vit", known) == "did you mean vit_base"  # its beginning
        assert suggestion("zzz", known) == ""


class TestNamesOfParameters:
    CLOSEST: ClassVar = {"C": "l2", "max_iter": "n_steps", "eps": "epsilon", "warm_start": "init"}
    HINTS: ClassVar = {
        **{name: f"{ours} is what comes closest." for name, ours in CLOSEST.items()},
        "nsteps": "did you mean n_steps?",
        "Epsilon": "did you mean epsilon?",
        "n_jobs": "leave it out.",
        "solver": "leave it out.",
    }

    @pytest.mark.parametrize(("name", "hint"), HINTS.items())
    def test_of_other_libraries(self, name, hint):
        said = refused(lambda: MixedDPLogisticRegression(**{name: 1}), "has no parameter", TypeError)
        assert said == f"MixedDPLogisticRegression has no parameter {name!r}; {hint}"

    def test_an_equivalent_must_exist(self):
        refused(lambda: ZerothOrderDPModuleClassifier(None, C=1.0), "'C'; leave it out", TypeError)
        refused(lambda: MixedDPRidge(bounds_y=1.0), "'bounds_y'; target_scale is what", TypeError)
        refused(lambda: MixedDPLogisticRegression(bounds_y=1.0), "'bounds_y'; leave it out", TypeError)

    def test_subclasses_choose_their_own(self):
        class Renamed(MixedDPLogisticRegression):
            def __init__(self, budget=1.0, **others):
                super().__init__(epsilon=budget, **others)

        assert Renamed(budget=2.0, delta=1e-3).delta == 1e-3
        with pytest.raises(TypeError, match="unexpected keyword argument 'C'"):
            Renamed(C=1.0)

    @pytest.mark.parametrize(
        ("algorithm", "name", "kind"),
        [
            *((algorithm, "quantile", "AdaMix") for algorithm in ("auto", "adamix", "noisy-gd")),
            *(("adamix", "momentum", "AdaMix"), ("noisy-gd", "momentum", "NoisyGD")),
            ("noisy-gd", "clip", "NoisyGD"),
        ],
    )
    def test_of_the_algorithm(self, algorithm, name, kind):
        head = MixedDPLogisticRegression(algorithm)
        given = {f"algorithm__{name}": 0.5}
        said = refused(lambda: head.set_params(**given), f"'{algorithm}' is a name; pass")
        assert said.endswith(f"pass algorithm=skmixdp.algorithms.{kind}().")


class TestShapes:
    def test_one_row(self, rows, head):
        head.fit(*rows)
        hint = r"Reshape your data to a table, a single row by reshape\(1, -1\)"
        refused(lambda: head.predict(rows.X[0]), hint)

    def test_a_list_of_tables(self, rows, head):
        sources = [rows.X_pub, rows.X_pub], [rows.y_pub, rows.y_pub]
        refused(lambda: head.fit(rows.X, rows.y, *sources), "^X_pub is a list of tables; .*as a tuple")

    def test_one_estimator_is_not_a_list(self, rows, head):
        refused(lambda: fit_many(head, rows.X, rows.y), "^estimators must be a list of estimators", TypeError)


class TestLabels:
    def test_public_rows_without_some_classes(self, rows, head):
        X_pub, y_pub = np.concatenate([rows.X_pub] * 2), np.arange(120) % 8
        said = refused(
            lambda: head.fit(rows.X, np.arange(60) % 10, X_pub, y_pub),
            r"^y holds a label that is not one of the classes \[0, 1, 2, 3, 4, 5, 6, 7\] of y_pub, so the "
            r"public rows lack a class; list every class in classes=\[\.\.\.\]",
        )
        assert "9" not in said and "ensemble" not in said

    def test_labels_that_an_ensemble_numbered(self, rows, head):
        names = np.array(["ant", "bee", "cat"])
        for y, y_pub in ((rows.y, names[rows.y_pub]), (rows.y, rows.y_pub + 5)):
            refused(
                lambda y=y, y_pub=y_pub: head.fit(rows.X, y, rows.X_pub, y_pub),
                "^y is numbered from 0, but y_pub holds .*VotingClassifier and StackingClassifier renumber y",
            )

    def test_truth_values_are_numbers(self, rows, head):
        head.fit(rows.X, rows.y == 0, rows.X_pub, (rows.y_pub == 0).astype(int))
        assert head.classes_.tolist() == [0, 1]


class TestRowsOfText:
    @pytest.mark.parametrize("dtype", [object, "category", "string"])
    def test_columns_are_named(self, frames, head, dtype):
        X = frames.X.assign(city=pd.Series(["ulm", "bonn"] * 30).astype(dtype), age="x")
        hint = r"^X holds text in the columns \['city', 'age'\]; encode it as numbers"
        said = refused(lambda: head.fit(X, frames.y), hint)
        assert "PublicOnly(OneHotEncoder())" in said and "ulm" not in said and "omplex" not in said

    @pytest.mark.parametrize("change", [lambda X: X.astype(str), lambda X: X.astype(str).astype(object)])
    @pytest.mark.parametrize(
        "form", [np.asarray, np.ndarray.tolist, pd.DataFrame], ids=["array", "list", "frame"]
    )
    def test_numbers_that_are_stored_as_text(self, rows, head, change, form):
        X = form(change(rows.X))
        hint = "convert numbers that are stored as text by astype"
        refused(lambda: head.fit(X, rows.y), f"^X holds text.*{hint}")

    def test_everywhere(self, rows, head):
        text = rows.X.astype(str)
        head.fit(*rows)
        for action in (
            lambda: head.predict(text),
            lambda: head.fit(rows.X, rows.y, rows.X_pub.astype(str), rows.y_pub),
            lambda: RowNormalizer().transform(text),
            lambda: NoisyScaler(bounds=(-100, 100)).fit(text),
        ):
            refused(action, "^X(_pub)? holds text")

    def test_columns_of_numbers_in_odd_types_are_fine(self, frames, head):
        X = frames.X.assign(flag=[True, False] * 30, grade=pd.Categorical([1, 2, 3] * 20))
        X["a"] = X["a"].astype(object)
        X_pub = frames.X_pub.assign(flag=False, grade=1)
        assert head.fit(X, frames.y, X_pub, frames.y_pub).n_features_in_ == 7

    def test_complex_numbers_and_dates_are_something_else(self, rows, frames, head):
        refused(lambda: head.fit(rows.X + 1j, rows.y), r"^X holds complex numbers; pass real ones")
        dates = frames.X.assign(day=pd.Timestamp("2020-01-01"))
        refused(lambda: head.fit(dates, frames.y), r"^X holds dates or durations in the columns \['day'\]")
        moments = np.full((60, 2), np.datetime64("2020-01-01"))
        refused(lambda: head.fit(moments, frames.y), "^X holds dates or durations; encode them as numbers")


class TestNoPublicRows:
    @pytest.mark.parametrize(
        "empty",
        [
            lambda rows: (rows.X_pub[:0], rows.y_pub[:0]),
            lambda rows: ([], []),
            lambda rows: ((), ()),
            lambda rows: ((rows.X_pub[:0],), (rows.y_pub[:0],)),
            lambda rows: (pd.DataFrame(rows.X_pub[:0]), pd.Series(rows.y_pub[:0])),
            lambda rows: (rows.X_pub[:0], None),
        ],
        ids=["arrays", "lists", "tuples", "tuples of arrays", "frames", "rows alone"],
    )
    def test_empty_ones_are_none(self, rows, empty):
        X_pub, y_pub = empty(rows)
        head = MixedDPLogisticRegression(classes=[0, 1, 2], random_state=0, **NEAR)
        given = head.fit(rows.X, rows.y, X_pub, y_pub).coef_
        np.testing.assert_array_equal(given, head.fit(rows.X, rows.y).coef_)
        assert head.privacy_.n_public == 0

    def test_a_search(self, rows):
        head = MixedDPLogisticRegression(classes=[0, 1, 2])
        search = PrivateSearchCV(head, {"algorithm": ["noisy-gd"]}, delta=1e-3, strategy="grid")
        search.fit(rows.X, rows.y, X_pub=rows.X_pub[:0], y_pub=rows.y_pub[:0])
        assert search.best_estimator_.privacy_.n_public == 0

    @pytest.mark.parametrize("transformer", [PublicOnly(StandardScaler()), PublicWhitener()], ids=repr)
    def test_a_transformer_has_nothing_to_learn_from(self, rows, transformer):
        none = rows.X_pub[:0]
        refused(lambda: transformer.fit(rows.X, X_pub=none), "^an empty X_pub leaves nothing to fit")

    @pytest.mark.parametrize("value", [3, "", {}, np.float64(3.0)])
    def test_other_things_are_not_empty(self, value):
        assert not is_empty(value)


class TestColumnTransformer:
    """Its parts get some columns of X and all of X_pub, so that only the whole can be wrapped."""

    WHOLE = r"and wrap a whole ColumnTransformer: PublicOnly\(ColumnTransformer\(\.\.\.\)\)"

    def columns(self, names):
        return ColumnTransformer([("scale", PublicOnly(StandardScaler()), names)], remainder="passthrough")

    def test_without_routing(self, rows):
        columns = self.columns([0, 1])
        refused(lambda: columns.fit(rows.X), f"^X_pub=None leaves nothing to fit on.*{self.WHOLE}")

    def test_in_a_pipeline(self, routing, rows, head):
        pipe = make_pipeline(self.columns([0, 1]), head, transform_input=["X_pub"])
        hint = f"^X_pub has 5 features and X has 2.*{self.WHOLE}"
        refused(lambda: pipe.fit(rows.X, rows.y, **rows.bare), hint)

    def test_with_names(self, routing, frames):
        columns = self.columns(["a", "b"])
        refused(lambda: columns.fit(frames.X, X_pub=frames.X_pub), f"^X_pub has 5 features.*{self.WHOLE}")
        other, hint = frames.X_pub[["c", "d"]], rf"^X_pub has the columns \['c', 'd'\].*{self.WHOLE}"
        refused(lambda: columns.fit(frames.X, X_pub=other), hint)


@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, MixedDPRidge])
def test_warnings_of_a_fit_point_to_the_line_that_calls_it(kind):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.tile([0, 1], 30)
    with warnings.catch_warnings(record=True, action="always") as caught:
        kind(delta=0.5, random_state=0).fit(X, y)
    said = [str(each.message)[:12] for each in caught if each.filename == __file__]
    assert {"random_state", "delta=0.5 is"} <= set(said)
    assert {"classes were", "the scale of"} & set(said)
