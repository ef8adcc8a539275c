"""Warnings and messages that people needed and did not get, or got without reason."""

import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MultiLabelBinarizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
)

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, fit_many
from skmixdp.algorithms import PAZO
from skmixdp.model_selection import PrivateSearchCV, WithPublicRows
from skmixdp.preprocessing import check_pipeline
from skmixdp.privacy import PrivacyLedger

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = (X[:, 0] > 0).astype(int)
G = np.arange(200) // 2


def head(**parameters):
    return MixedDPLogisticRegression(**{"delta": 1e-4, "classes": [0, 1], "random_state": 0} | parameters)


def search(**parameters):
    return PrivateSearchCV(head(random_state=None), {"l2": [0.0, 0.1]}, **parameters)


# -- an epsilon that guarantees next to nothing ----------------------------------------------

LITTLE = {"epsilon": None, "noise_multiplier": 0.1, "n_steps": 3}
EPSILONS = {
    "noise and steps": lambda: head(**LITTLE).fit(X, Y),
    "noise, steps and batches": lambda: head(**LITTLE, batch_size=100).fit(X, Y),
    "the noise of a score": lambda: head().fit(X, Y).private_score(X, Y, noise_multiplier=0.1),
    "a data set": lambda: PrivacyLedger(":memory:").add_dataset("patients", epsilon=100, delta=1e-5),
}


@pytest.mark.parametrize("name", EPSILONS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.filterwarnings("default:epsilon=.* guarantees next to nothing:UserWarning")
def test_whoever_spends_a_huge_epsilon_is_warned(name):
    with pytest.warns(UserWarning, match=r"^epsilon=[\d.e+]+ guarantees next to nothing, .* use a smaller"):
        EPSILONS[name]()


@pytest.mark.filterwarnings("error:epsilon=.* guarantees next to nothing:UserWarning")
def test_an_epsilon_of_ten_is_no_reason_to_warn():
    fitted = head(epsilon=10.0).fit(X, Y)
    fitted.private_score(X, Y, epsilon=10.0)
    PrivacyLedger(":memory:").add_dataset("patients", epsilon=10.0, delta=1e-3)


@pytest.mark.parametrize("delta", [0.1, 0.002])
def test_whoever_gives_a_data_set_a_huge_delta_is_warned(delta):
    with pytest.warns(UserWarning, match=f"delta={delta} allows to publish a row outright"):
        PrivacyLedger(":memory:").add_dataset("patients", epsilon=1.0, delta=delta)


# -- arguments of fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [*product(["first order", "losses"], ["groups", "X_unlabeled"]), ("losses", "sample_weight")],
)
def test_whoever_passes_what_an_estimator_has_not_is_told_who_has_it(kind, name):
    torch = pytest.importorskip("torch")
    import skmixdp

    given = {"first order": "FirstOrderDPModuleClassifier", "losses": "ZerothOrderDPModuleClassifier"}
    estimator = getattr(skmixdp, given[kind])(torch.nn.Linear(3, 2), learning_rate=0.1)
    with pytest.raises(TypeError, match=f"does not accept {name}; leave it out, or use MixedDPLogistic"):
        estimator.fit(X, Y, **{name: G})
    with pytest.raises(TypeError, match="does not accept epochs; leave it out, or pass") as caught:
        estimator.fit(X, Y, epochs=3)
    assert name not in str(caught.value)


ORDER = {
    "a classifier": lambda w: head().fit(X, Y, w),
    "a regression": lambda w: MixedDPRidge().fit(X, Y, w),
    "losses": lambda w: MixedDPLogisticRegression(PAZO("m")).fit(X, Y, w),
    "a search": lambda w: search().fit(X, Y, w),
    "several fits": lambda w: fit_many([head()], X, Y, w),
}


@pytest.mark.parametrize("weights", [np.ones(200), pd.Series(np.ones(200)), [1.0] * 200], ids=type)
@pytest.mark.parametrize("name", ORDER)
def test_whoever_passes_weights_in_the_order_of_scikit_learn_is_told_the_name(name, weights):
    with pytest.raises(ValueError, match=r"as if weights were the third .* pass them as sample_weight="):
        ORDER[name](weights)


CELLS = {
    "dates": pd.date_range("2020", periods=200),
    "dates of a zone": pd.date_range("2020", periods=200, tz="UTC"),
    "dates of Python": [*pd.date_range("2020", periods=200).date],
    "durations": pd.to_timedelta(range(200), unit="h"),
    "periods": pd.period_range("2020", periods=200),
    "intervals": pd.interval_range(0, 200),
    "dictionaries": [{"a": 1}] * 200,
    "sets": [{1}] * 200,
    "text": ["a", "b"] * 100,
    "categories": pd.Categorical(["a", "b"] * 100),
}


@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("estimator", ["head", "module"])
def test_whoever_passes_a_table_is_told_which_column_is_no_number(estimator, cells):
    table = pd.DataFrame({"age": X[:, 0]})
    table["when"] = CELLS[cells]
    if estimator == "head":
        model = head()
    else:
        torch = pytest.importorskip("torch")
        from skmixdp import FirstOrderDPModuleClassifier

        model = FirstOrderDPModuleClassifier(torch.nn.Linear(2, 2), learning_rate=0.1, classes=[0, 1])
    with pytest.raises((ValueError, TypeError), match=r"X holds .* in the columns \['when'\].*TableEncoder"):
        model.fit(table, Y)


# -- steps that learn nothing ----------------------------------------------------------------

NUMBERS = np.where(RNG.random((40, 3)) < 0.2, np.nan, RNG.standard_normal((40, 3)))
OTHERS = np.where(RNG.random((40, 3)) < 0.4, np.nan, 5 * RNG.standard_normal((40, 3)))
WORDS, OTHER_WORDS = ["red car", "blue car"], ["green tree", "red red"]
COUNTS, OTHER_COUNTS = RNG.poisson(1.0, (40, 3)), RNG.poisson(3.0, (40, 3))
FULL, OTHER_FULL = np.nan_to_num(NUMBERS), np.nan_to_num(OTHERS)
KNOWN = LogisticRegression().fit(X, Y)

ZEROS = {"strategy": "constant", "fill_value": 0}
IGNORED, CODED = {"handle_unknown": "ignore"}, {"handle_unknown": "use_encoded_value", "unknown_value": -1}

FIXED = {
    "fill zeros": (SimpleImputer(**ZEROS, keep_empty_features=True), NUMBERS, OTHERS),
    "mark all columns": (MissingIndicator(features="all"), NUMBERS, OTHERS),
    "declared knots": (SplineTransformer(knots=np.array([[-9.0] * 3, [9.0] * 3])), FULL, OTHER_FULL),
    "a vocabulary": (CountVectorizer(vocabulary=["car", "red"]), WORDS, OTHER_WORDS),
    "a vocabulary, scaled": (TfidfVectorizer(vocabulary=["car", "red"], use_idf=False), WORDS, OTHER_WORDS),
    "shares of words": (TfidfTransformer(use_idf=False), COUNTS, OTHER_COUNTS),
    "neither centred nor scaled": (RobustScaler(with_centering=False, with_scaling=False), FULL, OTHER_FULL),
    "declared categories": (OneHotEncoder(categories=[[0, 1, 2]] * 3, **IGNORED), COUNTS, OTHER_COUNTS),
    "declared order": (OrdinalEncoder(categories=[[0, 1]] * 3, **CODED), COUNTS, OTHER_COUNTS),
    "random features": (RBFSampler(gamma=0.5, random_state=0), FULL, OTHER_FULL),
    "declared labels": (MultiLabelBinarizer(classes=[0, 1, 2]), [[0], [1, 2]], [[2], [2]]),
    "columns of a known model": (SelectFromModel(KNOWN, prefit=True), FULL, OTHER_FULL),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_step_that_learns_nothing_is_no_leak(name):
    step, rows, others = FIXED[name]
    assert not check_pipeline(make_pipeline(step, head()), public_rows=False).of_kind("leak")
    first, second = (pickle.dumps(vars(step.fit(data))) for data in (rows, others))
    assert first == second


LEARNING = {
    "a constant without a value": SimpleImputer(strategy="constant", keep_empty_features=True),
    "a constant that drops columns": SimpleImputer(**ZEROS),
    "a constant with an indicator": SimpleImputer(**ZEROS, keep_empty_features=True, add_indicator=True),
    "a mean": SimpleImputer(keep_empty_features=True),
    "columns that miss something": MissingIndicator(),
    "quantiles as knots": SplineTransformer(knots="quantile"),
    "uniform knots": SplineTransformer(),
    "words": CountVectorizer(),
    "how rare words are": TfidfVectorizer(vocabulary=["car"]),
    "how rare columns are": TfidfTransformer(),
    "medians": RobustScaler(with_scaling=False),
    "quartiles": RobustScaler(with_centering=False),
    "labels": MultiLabelBinarizer(),
    "a model to choose columns": SelectFromModel(LogisticRegression()),
    "a function of the rows": SelectFromModel(KNOWN, prefit=True, max_features=len),
    "categories that are rare": OneHotEncoder(categories=[[0, 1]], min_frequency=2),
}


@pytest.mark.parametrize("name", LEARNING)
def test_a_step_that_learns_still_is_a_leak(name):
    assert check_pipeline(make_pipeline(LEARNING[name], head()), public_rows=False).of_kind("leak")


def test_members_of_a_stack_that_are_not_fitted_are_no_leak():
    stack = StackingClassifier([("known", KNOWN)], head(), cv="prefit")
    assert not check_pipeline(stack).of_kind("leak")
    assert check_pipeline(stack.set_params(final_estimator=LogisticRegression())).of_kind("leak")


# -- public targets in the units of the private ones -----------------------------------------

ROWS = RNG.standard_normal((1000, 3))
PRICES = np.exp(5 + ROWS @ [1.0, 0.5, 0.0])
RIDGE = MixedDPRidge(delta=1e-4, random_state=0)


def with_public(model=RIDGE):
    return WithPublicRows(model, ROWS[:100], PRICES[:100])


def leaking_logarithms(model):
    return TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)


QUANTILES = QuantileTransformer(n_quantiles=50)
OTHER_UNITS = {
    "logs": lambda: leaking_logarithms(with_public()),
    "logs in a pipeline": lambda: leaking_logarithms(make_pipeline(Normalizer(), with_public())),
    "logs of a vote": lambda: leaking_logarithms(VotingRegressor([("one", with_public())])),
    "powers": lambda: TransformedTargetRegressor(with_public(), transformer=PowerTransformer()),
    "quantiles": lambda: TransformedTargetRegressor(with_public(), transformer=QUANTILES),
}


@pytest.mark.parametrize("model", OTHER_UNITS)
@pytest.mark.filterwarnings("ignore")
def test_public_targets_in_other_units_are_refused(model):
    with pytest.raises(ValueError, match=r"WithPublicRows.*; fit its regressor to transformed"):
        OTHER_UNITS[model]().fit(ROWS[100:], PRICES[100:])


# -- no coin toss without a word -------------------------------------------------------------

MANY = RNG.standard_normal((6000, 5))
SLOPES = np.array([2.0, -1.0, 0.5, 0.0, 0.0])
CLASSES = (RNG.random(6000) < 1 / (1 + np.exp(-MANY @ SLOPES))).astype(int)


def many(rows, known=None, **parameters):
    """Accuracy on the last 1,000 rows, of a fit of the others but 50, which ``known`` stands for."""
    public = {} if known is None else {"X_pub": known, "y_pub": CLASSES[:50]}
    fitted = head(**parameters).fit(rows[50:5000], CLASSES[50:5000], **public)
    return fitted.score(rows[5000:], CLASSES[5000:])


def one_column(change, column=0):
    def changed(rows):
        rows = rows.copy()
        rows[:, column] = change(rows[:, column])
        return rows

    return changed


UNITS = {
    "cm for m": lambda rows: 100 * rows,
    "m for cm": lambda rows: rows / 100,
    "a tenth": lambda rows: rows / 10,
    "m for km": lambda rows: 1000 * rows,
    "shifted up": lambda rows: rows + 100,
    "shifted down": lambda rows: rows - 100,
    "shifted far": lambda rows: rows + 1000,
    "one column in cm": one_column(lambda x: 100 * x),
    "one column in m": one_column(lambda x: x / 100),
    "one column in mm": one_column(lambda x: 1000 * x),
    "a weak column in cm": one_column(lambda x: 100 * x, 1),
    "one column shifted": one_column(lambda x: x + 100),
    "one column shifted a little": one_column(lambda x: x + 3),
    "one column of another date": one_column(lambda x: x + 2_459_000),
    "several units": lambda rows: rows * np.array([100, 1, 0.01, 1, 10]),
    "one column constant": one_column(np.zeros_like),
    "one column infinite in single precision": one_column(lambda x: 1e60 * x),
}


@pytest.mark.covering
@pytest.mark.parametrize("n_public", [20, 50, 200])
@pytest.mark.parametrize("unit", UNITS)
def test_public_rows_in_other_units_are_left_out(unit, n_public):
    public = {"X_pub": UNITS[unit](MANY[:n_public]), "y_pub": CLASSES[:n_public]}
    with pytest.warns(UserWarning, match="so the fit left them out"):
        model = head(random_state=0).fit(MANY[200:5000], CLASSES[200:5000], **public)
    assert model.score(MANY[5000:], CLASSES[5000:]) > 0.77
    assert model.privacy_.n_public == 0


@pytest.mark.parametrize(
    "changed", [lambda rows: rows[:, [1, 0, 2, 3, 4]], np.negative], ids=["swapped columns", "signs"]
)
def test_public_rows_of_another_meaning_are_left_out(changed):
    public = {"X_pub": changed(MANY[:200]), "y_pub": CLASSES[:200]}
    with pytest.warns(UserWarning, match="classifies far fewer private rows .*, so the fit left them out"):
        model = head(random_state=0).fit(MANY[200:5000], CLASSES[200:5000], **public)
    assert model.score(MANY[5000:], CLASSES[5000:]) > 0.77


@pytest.mark.filterwarnings("error:.*so the fit left them out")
@pytest.mark.parametrize("changed", [lambda rows: 100 * rows, np.negative], ids=["units", "signs"])
def test_a_warning_that_is_an_error_loses_no_fit(changed):
    """What the warning says is known after the charge, so the fit ends first."""
    public = {"X_pub": changed(MANY[:200]), "y_pub": CLASSES[:200]}
    one, *several = (head(random_state=0) for _ in range(3))
    with pytest.raises(UserWarning, match="so the fit left them out"):
        one.fit(MANY[200:5000], CLASSES[200:5000], **public)
    with pytest.raises(UserWarning, match="so the fit left them out"):
        fit_many(several, MANY[200:5000], CLASSES[200:5000], **public)
    for model in (one, *several):
        assert model.score(MANY[5000:], CLASSES[5000:]) > 0.77


NUMBERS = MANY @ SLOPES + RNG.standard_normal(6000)


TARGETS = [lambda y: 100 * y, lambda y: y / 100, lambda y: 10 * y, lambda y: y + 100, lambda y: -y]


@pytest.mark.parametrize(
    ("of_rows", "of_targets"),
    [*((unit, np.asarray) for unit in UNITS.values()), *((np.asarray, unit) for unit in TARGETS)],
)
def test_a_regression_leaves_out_public_rows_in_other_units(of_rows, of_targets):
    """What is left out tells no scale either."""
    model, public = MixedDPRidge(random_state=0), (of_rows(MANY[:50]), of_targets(NUMBERS[:50]))
    with pytest.warns(UserWarning, match="the fit left them out"):
        model.fit(MANY[200:5000], NUMBERS[200:5000], *public)
    assert model.score(MANY[5000:], NUMBERS[5000:]) > 0.78  # least squares: 0.82


KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "long tails": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "infinite variance": lambda rng, n: rng.standard_cauchy(n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, np.exp(rng.normal(size=n))),
    "rare ones": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "ones and zeros": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "counts": lambda rng, n: rng.poisson(1.0, n).astype(float),
    "two clusters": lambda rng, n: rng.choice([-1.0, 1.0], n) + 0.01 * rng.normal(size=n),
    "years": lambda rng, n: rng.integers(1990, 2025, n).astype(float),
    "constant": lambda rng, n: np.full(n, 7.0),
}


@pytest.mark.covering
@pytest.mark.parametrize("n_public", [10, 12, 20, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_any_kind_in_the_same_units_are_kept(kind, n_public):
    rng = np.random.default_rng(n_public)
    rows = np.stack([KINDS[kind](rng, 2000) for _ in range(8)], axis=1)
    y = (rng.random(2000) < 0.5).astype(int)
    for seed in range(2):
        with warnings.catch_warnings(record=True, action="always") as said:
            model = head(random_state=seed).fit(rows[60:], y[60:], X_pub=rows[:n_public], y_pub=y[:n_public])
        assert "check of units" in dict(model.privacy_.shares)
        assert not any("another unit" in str(warning.message) for warning in said)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3])
@pytest.mark.filterwarnings("default:this budget leaves more noise:UserWarning")
def test_whose_budget_tells_nothing_is_warned(epsilon):
    with pytest.warns(UserWarning, match="this budget leaves more noise than 4950 rows can show through"):
        many(MANY, epsilon=epsilon)


@pytest.mark.filterwarnings("error:this budget leaves more noise:UserWarning")
def test_a_small_budget_that_still_learns_is_no_reason_to_warn():
    assert many(MANY, epsilon=0.05) > 0.7
