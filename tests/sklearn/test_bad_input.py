"""Bad input is refused in one sentence, before any noise is drawn; doubtful input is warned of.

Every refusal names the parameter, leaves no fitted attribute behind and shows no private row.
"""

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

NAN, INF = math.nan, math.inf


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


@pytest.mark.parametrize(
    ("parameter", "allowed"),
    [
        ({"center": 1}, "True or False"),
        ({"whiten": "yes"}, "True, False or 'auto'"),
        ({"geometry": None}, "True, False or 'auto'"),
        ({"norm": "yes"}, "'auto', 'unit', 'clip' or None"),
    ],
)
def test_parameter_of_rows_outside_its_range(refuse, parameter, allowed):
    ((name, value),) = parameter.items()
    refuse(f"{name}={value!r} of RowMapping must be {allowed}", {"rows": RowMapping(**parameter)})


def test_parameters_of_rows_need_an_object():
    clf = MixedDPLogisticRegression()
    with pytest.raises(ValueError, match=r"^rows__norm needs an object, but rows='auto' is a name; pass"):
        clf.set_params(rows__norm="clip")
    clf.set_params(rows=RowMapping(), rows__norm="clip")
    assert clf.get_params()["rows__norm"] == "clip" and clone(clf).rows.norm == "clip"


def test_an_algorithm_is_an_object(refuse):
    refuse(r"^algorithm=AdaMix is a class; pass an object, such as AdaMix\(\)", {"algorithm": AdaMix})


def test_random_state_of_the_new_numpy_kind(refuse):
    refuse("random_state=.* must be None", {"random_state": np.random.default_rng(0)})


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (AdaMix(quantile=2), "quantile=2 of AdaMix must be a number above 0 and below 1"),
        (AdaMix(clip_floor=0), "clip_floor=0 of AdaMix must be a positive finite number"),
        (AdaMix(n_components=0), "n_components=0 of AdaMix must be a whole number of at least 1"),
        (AdaMix(center="x"), "center='x' of AdaMix must be 'zero' or 'public'"),
        (NoisyGD(radius=0), "radius=0 of NoisyGD must be a positive finite number"),
        (NoisyGD(schedule="decaying"), "schedule='decaying' .* radius"),
    ],
    ids=repr,
)
def test_algorithm_parameter_outside_its_range(refuse, algorithm, sentence):
    refuse(sentence, {"algorithm": algorithm})


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


class TestBudget:
    def test_all_three(self, refuse):
        refuse(
            "epsilon=1, noise_multiplier=20 and n_steps=5 cannot all be given.*pass epsilon=None",
            {"epsilon": 1, "noise_multiplier": 20, "n_steps": 5},
        )

    @pytest.mark.parametrize("given", [{}, {"n_steps": 5}, {"noise_multiplier": 3.0}], ids=str)
    def test_no_epsilon_and_not_both_others(self, refuse, given):
        refuse("epsilon=None needs both noise_multiplier .* and n_steps", {"epsilon": None, **given})

    def test_too_small_for_one_step(self, refuse):
        refuse(
            r"epsilon=0\.1, delta=1e-05 is too small for one step at noise_multiplier=20; use",
            {"epsilon": 0.1, "delta": 1e-5, "noise_multiplier": 20},
        )

    def test_the_named_noise_multiplier_pays_for_one_step(self, rows):
        clf = MixedDPLogisticRegression(epsilon=0.1, delta=1e-5, noise_multiplier=20)
        with pytest.raises(ValueError, match="is too small") as caught:
            clf.fit(*rows)
        enough = float(re.search(r"noise_multiplier >= ([\d.]+\d)", str(caught.value)).group(1))
        clf.set_params(noise_multiplier=enough).fit(*rows)
        assert clf.n_iter_ == 1 and clf.privacy_.epsilon <= 0.1

    @pytest.mark.parametrize(
        "budget", [{"epsilon": 1000}, {"epsilon": None, "n_steps": 10, "noise_multiplier": 0.1}]
    )
    @pytest.mark.filterwarnings("default:epsilon=.* guarantees next to nothing:UserWarning")
    def test_an_epsilon_that_guarantees_next_to_nothing_warns_and_is_in_the_report(self, fit, budget):
        with pytest.warns(UserWarning, match=r"^epsilon=.* guarantees next to nothing, .*; use a smaller"):
            clf = fit(budget)
        assert any(warning.startswith("epsilon is above 10") for warning in clf.privacy_.warnings)

    def test_delta_not_below_one_over_n(self, fit):
        with pytest.warns(UserWarning, match=r"delta=0\.05 is not below 1/n .*smaller delta"):
            clf = fit({"delta": 0.05})
        assert any("delta" in warning for warning in clf.privacy_.warnings)


class TestRows:
    @pytest.mark.parametrize("value", [NAN, INF, -INF])
    @pytest.mark.parametrize("name", ["X", "X_pub"])
    def test_not_finite(self, refuse, rows, name, value):
        bad = getattr(rows, name).copy()
        bad[3, 1] = value
        refuse(rf"\b{name}\b .*(NaN|infinity)", **{name: bad})

    @pytest.mark.parametrize("name", ["X", "X_pub"])
    @pytest.mark.parametrize(
        "change",
        [lambda X: X[:, 0], lambda X: X[None], lambda X: X + 1j, lambda X: X.astype(str).astype(object)],
    )
    def test_not_a_real_table(self, refuse, rows, name, change):
        message = refuse(rf"\b{name}\b", **{name: change(getattr(rows, name))})
        assert str(rows.X[0, 0])[:6] not in message

    @pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
    def test_containers_that_are_not_supported(self, refuse, rows):
        refuse(r"X is a numpy.matrix, .*; pass numpy.asarray\(X\)", X=np.asmatrix(rows.X), error=TypeError)
        sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(rows.X))
        refuse(r"X is a data frame of sparse columns; pass X.sparse.to_dense\(\)", X=sparse, error=TypeError)

    def test_widths_that_differ(self, refuse, rows):
        refuse("X_pub has 4 features and X has 5; pass public rows", X_pub=rows.X_pub[:, :4])
        tables = (rows.X_pub, rows.X_pub[:, :4])
        refuse("X_pub has 4 features and X has 5", X_pub=tables, y_pub=(rows.y_pub,) * 2)

    @pytest.mark.parametrize("n", [0, 1])
    def test_fewer_than_two_private_rows(self, refuse, rows, n):
        refuse(r"\bX\b.*\b2\b", X=rows.X[:n], y=rows.y[:n])

    def test_no_columns(self, refuse, rows):
        refuse(r"\bX\b", X=rows.X[:, :0], X_pub=rows.X_pub[:, :0])

    @pytest.mark.parametrize("name", ["X_pub", "y_pub"])
    def test_public_rows_need_both(self, refuse, name):
        refuse(f"{name}=None must be given too; public rows need both", **{name: None})

    def test_lengths_that_differ(self, refuse, rows):
        refuse(r"\by\b.*59.*\bX\b.*60|\bX\b.*60.*\by\b.*59", y=rows.y[:-1])
        refuse(r"y_pub\b.*59.*X_pub\b.*60|X_pub\b.*60.*y_pub\b.*59", y_pub=rows.y_pub[:-1])

    def test_sources_that_differ_in_number(self, refuse, rows):
        refuse("X_pub has 2 sources and y_pub 1", X_pub=(rows.X_pub, rows.X_pub))

    def test_no_public_rows_in_one_of_several_sources(self, refuse, rows):
        sources = (rows.X_pub, rows.X_pub[:0]), (rows.y_pub, rows.y_pub[:0])
        refuse("X_pub has 0 sample", X_pub=sources[0], y_pub=sources[1])

    def test_sample_weight(self, refuse, rows):
        for weights in (np.ones(59), np.ones((60, 1)), 1.0):
            refuse("sample_weight has shape .* 60 rows; pass a flat array", sample_weight=weights)
        for entry in (-1.0, np.nan, np.inf):
            weights = np.where(np.arange(60) == 7, entry, 1.0)
            refuse("sample_weight must hold finite numbers of at least 0", sample_weight=weights)
        refuse("sample_weight must hold real numbers", sample_weight=["Smith"] * 60)
        refuse("sample_weight is zero for all rows", sample_weight=np.zeros(60))

    def test_an_argument_that_nobody_knows(self, refuse, rows):
        refuse("does not accept weights; leave it out", error=TypeError, weights=np.ones(60))

    @pytest.mark.parametrize("weights", [{"unknown": 1.0}, {99: 1.0}])
    def test_a_class_weight_for_no_class(self, refuse, weights):
        refuse("class_weight has a weight for .*, which is not one of the classes", {"class_weight": weights})

    @pytest.mark.parametrize("parameter", [{"logit_adjustment": 1.0}, {"class_weight": "balanced"}])
    def test_counts_that_cannot_be_had(self, refuse, parameter):
        name = next(iter(parameter))
        for others, obstacle in (
            ({"n_steps": 5}, "leaves no budget that could be divided"),
            ({"batch_size": 10}, "batch_size=10 excludes releases over all rows"),
            ({"epsilon": 0.01}, "60 rows of .* classes are too few for this budget"),
        ):
            refuse(f"{name}=.* needs noisy class counts, but .*{obstacle}", {**parameter, **others})


class TestLabels:
    def test_unknown_private_label(self, refuse, rows):
        y = np.where(rows.y == 2, 9, rows.y)
        refuse(r"^y holds a label that is not one of the classes \[0, 1, 2\]", y=y)

    def test_unknown_public_label(self, refuse, rows):
        refuse(r"^y_pub\[\d+\] = 2 is not one of the classes \[0, 1\]", {"classes": [0, 1]}, y=rows.y % 2)

    def test_labels_of_another_kind(self, refuse, rows):
        sentence = "holds {} and {} holds {}; write all labels in one way, as numbers or as text"
        refuse(f"^y {sentence.format('numbers', 'classes', 'text')}", {"classes": ["a", "b"]})
        refuse(f"^y {sentence.format('text', 'y_pub', 'numbers')}", y=rows.y.astype(str))
        refuse(f"^y {sentence.format('numbers', 'y_pub', 'text')}", y_pub=rows.y_pub.astype(str))
        words = rows.y_pub.astype(str)
        refuse(f"^y {sentence.format('numbers', 'y_pub', 'text')}", y_pub=words.astype(object))
        refuse(f"^y_pub {sentence.format('text', 'classes', 'numbers')}", {"classes": [0, 1, 2]}, y_pub=words)

    def test_public_rows_without_one_of_the_classes(self, fit, rows):
        kept = rows.y_pub != 1
        with pytest.warns(UserWarning, match=r"no public row has a label in \[1\]"):
            clf = fit({"classes": [0, 1, 2]}, X_pub=rows.X_pub[kept], y_pub=rows.y_pub[kept])
        assert np.all(np.isfinite(clf.coef_))

    def test_one_class(self, refuse, rows):
        refuse("at least two classes", {"classes": [1]}, y=np.ones(60, int), y_pub=np.ones(60, int))
        refuse("at least two classes", y_pub=np.zeros(60, int))
        with pytest.warns(PrivacyLeakWarning):
            refuse("at least two classes", y=np.zeros(60, int), X_pub=None, y_pub=None)

    @pytest.mark.parametrize(
        "classes", [[], 3, "abc", [[0, 1], [1, 2]], [0, 1, 2, None], [0.0, 1.0, 2.0, NAN]]
    )
    def test_classes_that_are_no_list_of_labels(self, refuse, classes):
        refuse("classes", {"classes": classes})

    def test_measured_values_are_no_labels(self, refuse, rows):
        refuse(r"\by\b", y=rows.y + 0.5)
        refuse(r"\by_pub\b", y_pub=rows.y_pub + 0.5)

    def test_missing_labels(self, refuse, rows):
        refuse(r"\by\b.*NaN", y=np.where(rows.y == 2, NAN, rows.y))
        refuse(r"\by_pub\b.*(NaN|nan)", y_pub=np.where(rows.y_pub == 2, NAN, rows.y_pub))
        refuse(r"\by\b", y=None)

    def test_labels_in_a_table(self, refuse, rows):
        refuse(r"\by\b", y=np.column_stack([rows.y, rows.y]))
        refuse(r"\by_pub\b", y_pub=np.column_stack([rows.y_pub, rows.y_pub]))


class TestCombinations:
    def test_unknown_scale_leaves_no_automatic_step(self, refuse):
        hint = r"needs rows of a known scale; pass rows=RowMapping\(norm='unit'\), public rows, or"
        none = {"X_pub": None, "y_pub": None}
        refuse(f"learning_rate='auto' {hint}", {"rows": RowMapping(norm=None), "classes": [0, 1, 2]}, **none)

    @pytest.mark.parametrize(
        ("parameters", "sentence"),
        [
            ({"rows": RowMapping(norm=None)}, "learning_rate='auto' needs rows of a known scale"),
            ({"rows": RowMapping(geometry=False, whiten=True)}, r"whiten=True\) needs public rows"),
            ({"rows": RowMapping(whiten=True, norm="clip")}, r"whiten=True\) needs public rows"),
            (
                {"rows": RowMapping(geometry=True, center=False)},
                r"geometry=True\) cannot be combined with the given center",
            ),
        ],
    )
    @pytest.mark.parametrize("counting", [{"class_weight": "balanced"}, {}])
    def test_class_counts_come_after_every_other_check(self, refuse, parameters, sentence, counting):
        known = {"epsilon": 100.0, "classes": [0, 1, 2]}
        refuse(sentence, known | counting | parameters, X_pub=None, y_pub=None)

    def test_class_counts_come_after_the_lengths_of_rows(self, refuse, rows):
        rows.X[3] = 1e31
        parameters = {
            "class_weight": "balanced",
            "epsilon": 100.0,
            "rows": RowMapping(norm=None),
            "learning_rate": 1.0,
        }
        refuse("X holds a row that is too large for float32 products", parameters)

    def test_lipschitz_clip_needs_a_known_length(self, refuse):
        algorithm = NoisyGD(clip="lipschitz")
        refuse("clip='lipschitz' .*norm='unit'", {"algorithm": algorithm, "rows": RowMapping(norm=None)})

    def test_decaying_steps_are_the_only_step_size(self, refuse):
        algorithm = NoisyGD(schedule="decaying", radius=1.0)
        refuse(r"learning_rate=0\.1 .*schedule='decaying'", {"algorithm": algorithm, "learning_rate": 0.1})
        refuse(r"l2=0 .*schedule='decaying'", {"algorithm": algorithm, "l2": 0})

    @pytest.mark.parametrize("init", [np.ones(3), np.full((3, 5), NAN), np.ones((2, 5)), None, 3], ids=repr)
    def test_start_of_another_shape(self, refuse, init):
        refuse(r"init.* must be a finite array of shape \(3, 5\)", {"init": init})
