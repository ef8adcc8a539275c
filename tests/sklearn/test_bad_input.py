"""Bad input is refused in one sentence, before any noise is drawn; doubtful input is warned of."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.privacy import PrivacyLedger
from tests.catalog import ALGORITHMS
from tests.conftest import make_problem
from tests.fuzz.limits import check_message
from tests.parameters import table_of, wrong
from tests.secrets import changed
from tests.sklearn.conftest import draw_rows

NAN, INF = math.nan, math.inf
X, Y, X_PUB, Y_PUB = *draw_rows(60, seed=1), *draw_rows(60, seed=2)
ROWS = {"X": X, "X_pub": X_PUB}
NONE = {"X_pub": None, "y_pub": None}
DECAYING = NoisyGD(schedule="decaying", radius=1.0)


BAD_PARAMETERS = [
    ("epsilon", [0, -1, NAN, INF, "a", True], "epsilon={} must be a positive"),
    ("delta", [0, 1, -1, 2, NAN, "a", None], "delta={} must be a number strictly between 0 and 1"),
    ("n_steps", [0, -1, 1.5, "a", True], "n_steps={} must be a whole number"),
    ("noise_multiplier", [0, -1, NAN, INF, "a", True], "noise_multiplier={} must be a positive"),
    ("learning_rate", [0], "learning_rate={} must be a positive finite number or 'auto'"),
    ("l2", [-1], "l2={} must be a non-negative finite number or 'auto'"),
    ("public_l2", [0], "public_l2={} must be a positive finite number up to 1e100 or 'auto'"),
    ("init", ["random"], "init={} must be 'public' or 'zeros'"),
    ("dtype", [np.float32], "dtype={} must be 'float32' or 'float64'"),
    ("neighboring", ["swap", None, 1], "neighboring={} must be one of 'add_or_remove_one', 'zero_out'"),
    ("random_state", [-1, 1.5, "a", True], "random_state={} must be None"),
    ("fit_intercept", [1], "fit_intercept={} must be True or False"),
    ("rows", ["yes", RowMapping, None], "rows={} must be 'auto' or an object such as skmixdp.RowMapping"),
    ("scale", ["yes"], "scale={} must be True, False, 'auto' or a dict"),
    ("verbose", [-1], "verbose={} must be"),
    ("algorithm", ["sgd", None, 3], "algorithm={} must be .*'adamix'.* or an object"),
    ("class_weight", ["equal", [1.0, 2.0], 3], "class_weight={} must be .*'balanced'"),
    ("logit_adjustment", [-0.5, NAN, "none", None], "logit_adjustment={} must be .*'auto'"),
]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        pytest.param(name, value, sentence, id=f"{name}={value!r}")
        for name, values, sentence in BAD_PARAMETERS
        for value in values
    ],
)
def test_parameter_outside_its_range(refuse, name, value, sentence):
    refuse(sentence.format(re.escape(repr(value))), {name: value})


REFUSED = [
    *(
        (f"{name}={value!r} of RowMapping must be {allowed}", {"rows": RowMapping(**{name: value})}, {})
        for name, value, allowed in (
            ("center", 1, "True or False"),
            ("whiten", "yes", "True, False or 'auto'"),
            ("geometry", None, "True, False or 'auto'"),
            ("norm", "yes", "'auto', 'unit', 'clip' or None"),
        )
    ),
    *(
        (sentence, {"algorithm": algorithm}, {})
        for algorithm, sentence in (
            (AdaMix, r"^algorithm=AdaMix is a class; pass an object, such as AdaMix\(\)"),
            (AdaMix(quantile=2), "quantile=2 of AdaMix must be a number above 0 and below 1"),
            (AdaMix(clip_floor=0), "clip_floor=0 of AdaMix must be a positive finite number"),
            (AdaMix(n_components=0), "n_components=0 of AdaMix must be a whole number of at least 1"),
            (AdaMix(center="x"), "center='x' of AdaMix must be 'zero' or 'public'"),
            (NoisyGD(radius=0), "radius=0 of NoisyGD must be a positive finite number"),
            (NoisyGD(schedule="decaying"), "schedule='decaying' .* radius"),
        )
    ),
    ("random_state=.* must be None", {"random_state": np.random.default_rng(0)}, {}),
    # Budgets.
    (
        "epsilon=1, noise_multiplier=20 and n_steps=5 cannot all be given.*pass epsilon=None",
        {"epsilon": 1, "noise_multiplier": 20, "n_steps": 5},
        {},
    ),
    *(
        ("epsilon=None needs both noise_multiplier .* and n_steps", {"epsilon": None, **terms}, {})
        for terms in ({}, {"n_steps": 5}, {"noise_multiplier": 3.0})
    ),
    (
        r"epsilon=0\.1, delta=1e-05 is too small for one step at noise_multiplier=20; use",
        {"epsilon": 0.1, "delta": 1e-5, "noise_multiplier": 20},
        {},
    ),
    ("batch_size=61", {"batch_size": 61}, {}),
    # Rows.
    *(
        (rf"\b{name}\b .*(NaN|infinity)", {}, {name: changed(ROWS[name], (3, 1), value)})
        for name in ("X", "X_pub")
        for value in (NAN, INF, -INF)
    ),
    (
        r"X is a data frame of sparse columns; pass X.sparse.to_dense\(\)",
        {},
        {"X": pd.DataFrame.sparse.from_spmatrix(sp.csr_array(X)), "error": TypeError},
    ),
    ("X_pub has 4 features and X has 5; pass public rows", {}, {"X_pub": X_PUB[:, :4]}),
    ("X_pub has 4 features and X has 5", {}, {"X_pub": (X_PUB, X_PUB[:, :4]), "y_pub": (Y_PUB,) * 2}),
    (r"\bX\b.*\b2\b", {}, {"X": X[:0], "y": Y[:0]}),
    (r"\bX\b.*\b2\b", {}, {"X": X[:1], "y": Y[:1]}),
    (r"\bX\b", {}, {"X": X[:, :0], "X_pub": X_PUB[:, :0]}),
    ("X_pub=None must be given too; public rows need both", {}, {"X_pub": None}),
    ("y_pub=None must be given too; public rows need both", {}, {"y_pub": None}),
    (r"\by\b.*59.*\bX\b.*60|\bX\b.*60.*\by\b.*59", {}, {"y": Y[:-1]}),
    (r"y_pub\b.*59.*X_pub\b.*60|X_pub\b.*60.*y_pub\b.*59", {}, {"y_pub": Y_PUB[:-1]}),
    ("X_pub has 2 sources and y_pub 1", {}, {"X_pub": (X_PUB, X_PUB)}),
    ("X_pub has 0 sample", {}, {"X_pub": (X_PUB, X_PUB[:0]), "y_pub": (Y_PUB, Y_PUB[:0])}),
    ("does not accept weights; leave it out", {}, {"error": TypeError, "weights": np.ones(60)}),
    *(
        (sentence, {}, {"sample_weight": weights})
        for sentence, *several in (
            ("has shape .* 60 rows; pass a flat array", np.ones(59), np.ones((60, 1)), 1.0),
            (
                "must hold finite numbers of at least 0",
                *(changed(np.ones(60), 7, entry) for entry in (-1.0, NAN, INF)),
            ),
            ("must hold real numbers", ["Smith"] * 60),
            ("is zero for all rows", np.zeros(60)),
        )
        for weights in several
    ),
    # Labels.
    *(
        ("class_weight has a weight for .*, which is not one of the classes", {"class_weight": weights}, {})
        for weights in ({"unknown": 1.0}, {99: 1.0})
    ),
    *(
        (f"{name}=.* needs noisy class counts, but .*{obstacle}", {name: value, **others}, {})
        for name, value in (("logit_adjustment", 1.0), ("class_weight", "balanced"))
        for others, obstacle in (
            ({"n_steps": 5}, "leaves no budget that could be divided"),
            ({"batch_size": 10}, "batch_size=10 excludes releases over all rows"),
            ({"epsilon": 0.01}, "60 rows of .* classes are too few for this budget"),
        )
    ),
    (r"^y holds a label that is not one of the classes \[0, 1, 2\]", {}, {"y": np.where(Y == 2, 9, Y)}),
    (r"^y_pub\[\d+\] = 2 is not one of the classes \[0, 1\]", {"classes": [0, 1]}, {"y": Y % 2}),
    *(
        (
            f"^{first} holds {kind} and {second} holds {kind_2}; "
            "write all labels in one way, as numbers or as text",
            parameters,
            labels,
        )
        for first, kind, second, kind_2, parameters, labels in (
            ("y", "numbers", "classes", "text", {"classes": ["a", "b"]}, {}),
            ("y", "text", "y_pub", "numbers", {}, {"y": Y.astype(str)}),
            ("y", "numbers", "y_pub", "text", {}, {"y_pub": Y_PUB.astype(str)}),
            ("y", "numbers", "y_pub", "text", {}, {"y_pub": Y_PUB.astype(str).astype(object)}),
            ("y_pub", "text", "classes", "numbers", {"classes": [0, 1, 2]}, {"y_pub": Y_PUB.astype(str)}),
        )
    ),
    ("at least two classes", {"classes": [1]}, {"y": np.ones(60, int), "y_pub": np.ones(60, int)}),
    ("at least two classes", {}, {"y_pub": np.zeros(60, int)}),
    *(
        ("classes", {"classes": classes}, {})
        for classes in ([], 3, "abc", [[0, 1], [1, 2]], [0, 1, 2, None], [0.0, 1.0, 2.0, NAN])
    ),
    (r"\by\b", {}, {"y": Y + 0.5}),
    (r"\by_pub\b", {}, {"y_pub": Y_PUB + 0.5}),
    (r"\by\b.*NaN", {}, {"y": np.where(Y == 2, NAN, Y)}),
    (r"\by_pub\b.*(NaN|nan)", {}, {"y_pub": np.where(Y_PUB == 2, NAN, Y_PUB)}),
    (r"\by\b", {}, {"y": None}),
    (r"\by\b", {}, {"y": np.column_stack([Y, Y])}),
    (r"\by_pub\b", {}, {"y_pub": np.column_stack([Y_PUB, Y_PUB])}),
    # Combinations. What refuses class counts comes after every other check.
    *(
        (sentence, {"epsilon": 100.0, "classes": [0, 1, 2]} | counting | {"rows": RowMapping(**rows)}, NONE)
        for counting in ({"class_weight": "balanced"}, {})
        for rows, sentence in (
            (
                {"norm": None},
                r"^learning_rate='auto' needs rows of a known scale; pass rows=RowMapping\(norm='unit'\), "
                "public rows, or",
            ),
            ({"geometry": False, "whiten": True}, r"whiten=True\) needs public rows"),
            ({"whiten": True, "norm": "clip"}, r"whiten=True\) needs public rows"),
            (
                {"geometry": True, "center": False},
                r"geometry=True\) cannot be combined with the given center",
            ),
        )
    ),
    (
        "X holds a row that is too large for float32 products",
        {"class_weight": "balanced", "epsilon": 100.0, "learning_rate": 1.0, "rows": RowMapping(norm=None)},
        {"X": changed(X, 3, 1e31)},
    ),
    (
        "clip='lipschitz' .*norm='unit'",
        {"algorithm": NoisyGD(clip="lipschitz"), "rows": RowMapping(norm=None)},
        {},
    ),
    *(
        (rf"{name}={value} .*schedule='decaying'", {"algorithm": DECAYING, name: value}, {})
        for name, value in (("learning_rate", 0.1), ("l2", 0))
    ),
    *(
        (r"init.* must be a finite array of shape \(3, 5\)", {"init": init}, {})
        for init in (np.ones(3), np.full((3, 5), NAN), np.ones((2, 5)), None, 3)
    ),
]


@pytest.mark.parametrize(("sentence", "parameters", "changes"), REFUSED)
def test_what_is_refused(refuse, sentence, parameters, changes):
    refuse(sentence, parameters, **changes)


@pytest.mark.parametrize("name", ["X", "X_pub"])
@pytest.mark.parametrize(
    "change", [lambda X: X[:, 0], lambda X: X[None], lambda X: X + 1j, lambda X: X.astype(str).astype(object)]
)
def test_what_is_no_table_of_numbers(refuse, name, change):
    assert str(X[0, 0])[:6] not in refuse(rf"\b{name}\b", **{name: change(ROWS[name])})


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix(refuse):
    refuse(r"X is a numpy.matrix, .*; pass numpy.asarray\(X\)", X=np.asmatrix(X), error=TypeError)


def test_one_class_of_private_labels(refuse):
    with pytest.warns(PrivacyLeakWarning):
        refuse("at least two classes", y=np.zeros(60, int), **NONE)


def test_parameters_of_rows_need_an_object():
    clf = MixedDPLogisticRegression()
    with pytest.raises(ValueError, match=r"^rows__norm needs an object, but rows='auto' is a name; pass"):
        clf.set_params(rows__norm="clip")
    clf.set_params(rows=RowMapping(), rows__norm="clip")
    assert clf.get_params()["rows__norm"] == "clip" and clone(clf).rows.norm == "clip"


@pytest.mark.parametrize("head", [MixedDPLogisticRegression, MixedDPRidge])
def test_whatever_the_table_of_an_estimator_excludes_is_refused(rows, no_noise, head):
    ledger = PrivacyLedger(":memory:").add_dataset("d", epsilon=10.0, delta=1e-3)
    for name, rules in table_of(head).items():
        for value in wrong(rules):
            model = head(**{"delta": 1e-3, "ledger": ledger, name: value})
            with pytest.raises(ValueError, match=rf"^{name}=.* must be ") as caught:
                model.fit(*rows)
            check_message(str(caught.value), [name])
            assert not any(hasattr(model, fitted) for fitted in ("coef_", "privacy_", "n_iter_"))
    assert ledger.charges() == []


@pytest.mark.parametrize(
    "kind", dict.fromkeys(map(type, ALGORITHMS.values())), ids=lambda kind: kind.__name__
)
def test_whatever_the_table_of_an_algorithm_excludes_is_refused(kind):
    problem = make_problem(3)
    for name, rules in table_of(kind).items():
        for value in wrong(rules):
            with pytest.raises(ValueError, match=rf"^{name}=.* of {kind.__name__} must be ") as caught:
                problem.recipe(kind(**{name: value}))
            check_message(str(caught.value), [name])


def test_the_named_noise_multiplier_pays_for_one_step(rows):
    clf = MixedDPLogisticRegression(epsilon=0.1, delta=1e-5, noise_multiplier=20)
    with pytest.raises(ValueError, match="is too small") as caught:
        clf.fit(*rows)
    enough = float(re.search(r"noise_multiplier >= ([\d.]+\d)", str(caught.value)).group(1))
    clf.set_params(noise_multiplier=enough).fit(*rows)
    assert clf.n_iter_ == 1 and clf.privacy_.epsilon <= 0.1
