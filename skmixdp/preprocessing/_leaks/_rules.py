"""What scikit-learn's own classes learn from the rows that they are fitted on.

The rules use names of classes, so looking one up imports nothing. A class without a rule is assumed
to learn from the rows: a false alarm is harmless, a missed leak is not.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import get_tags

#: What to say of a splitter whose folds depend on group sizes, and the fix.
BY_SIZE = "folds to which persons are dealt by their numbers of rows, so that one person moves others"
BY_SIZE_FIX = "GroupKFold(shuffle=True)"

#: Splitters whose folds do not depend on group sizes, and folds that the user passes.
_BY_PERSONS = frozenset(
    {
        *("GroupKFold", "GroupShuffleSplit", "LeaveOneGroupOut", "LeavePGroupsOut"),
        *("PredefinedSplit", "_CVIterableWrapper"),
    }
)

#: What each transformer stores about its rows.
LEARNS = {
    "StandardScaler": "the mean and standard deviation of each column",
    "MinMaxScaler": "the smallest and largest entry of each column, which are entries of rows",
    "MaxAbsScaler": "the largest absolute entry of each column, which is an entry of a row",
    **dict.fromkeys(
        ("RobustScaler", "QuantileTransformer"), "quantiles of each column, which are entries of rows"
    ),
    "PowerTransformer": "a power, a mean and a standard deviation for each column",
    "KBinsDiscretizer": "edges of bins, computed from entries of rows",
    "SplineTransformer": "knots, computed from entries of rows",
    **dict.fromkeys(("OneHotEncoder", "OrdinalEncoder"), "which categories occur, even in a single row"),
    "TargetEncoder": "the mean label of each category",
    "SimpleImputer": "a statistic of each column",
    "KNNImputer": "the rows themselves",
    "IterativeImputer": "a model of each column",
    "MissingIndicator": "in which columns entries are missing",
    "PCA": "the mean and principal directions, which a single outlier can determine",
    "TruncatedSVD": "singular directions, which a single long row can determine",
    "Nystroem": "some of the rows themselves",
    "RBFSampler": "the variance of all entries, by gamma='scale'",
    "VarianceThreshold": "the variance of each column",
    **dict.fromkeys(
        ("SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe", "GenericUnivariateSelect"),
        "which columns to keep, from the labels",
    ),
    "CountVectorizer": "which words occur, even in a single row",
    "TfidfVectorizer": "which words occur, even in a single row, and how often",
    "TfidfTransformer": "in how many rows each word occurs",
}

#: What a class without a rule learns.
UNKNOWN = "whatever its fit stores"

_CHOOSES = "the scores of candidates on private rows, and the choice made by them"
_HONEST_SEARCH = "score on public rows, or use PrivateSearchCV, whose budget covers the scores"

#: What a meta-estimator learns in addition to what its parts learn, and the fix.
META_LEARNS = {
    "BaseSearchCV": (_CHOOSES, _HONEST_SEARCH),
    "RFECV": (_CHOOSES, _HONEST_SEARCH),
    "SequentialFeatureSelector": (_CHOOSES, "choose the columns on public rows: wrap it in PublicOnly"),
    "TunedThresholdClassifierCV": (
        "a threshold tuned on private rows",
        "FixedThresholdClassifier with a threshold of private_evaluation, or of public rows",
    ),
    "CalibratedClassifierCV": (
        "a calibration of the scores by private labels",
        "calibrate on public rows: CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X_pub, y_pub)",
    ),
    "BaseWeightBoosting": (
        "the weights of rows and of members, from errors on private rows without noise",
        "one estimator, or BaggingClassifier(WithPublicRows(...), bootstrap=False)",
    ),
    "OneVsOneClassifier": (
        "how many rows each class has, since a member is fitted to the rows of two classes",
        "the estimator by itself, which takes several classes or labels",
    ),
    "SelfTrainingClassifier": (
        "labels that it gives to private rows, and how often it fits because of them",
        "leave the rows without a label out",
    ),
}

#: Meta-estimators that fit their parts to folds or columns, and drop these fits.
DROPS_FITS = frozenset(
    {"BaseSearchCV", "ClassifierChain", "RegressorChain", "RFE", "StackingClassifier", "StackingRegressor"}
)

#: Meta-estimators that take the set of labels from ``y``.
READS_LABEL_SET = frozenset(
    {
        *("VotingClassifier", "StackingClassifier", "BaggingClassifier", "AdaBoostClassifier"),
        *("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier", "CalibratedClassifierCV"),
    }
)

#: Containers that learn nothing in addition to what their parts learn.
ONLY_PARTS = READS_LABEL_SET | {
    *("Pipeline", "FeatureUnion", "ColumnTransformer", "TransformedTargetRegressor", "RFE"),
    *("VotingRegressor", "StackingRegressor", "BaggingRegressor", "MultiOutputClassifier"),
    *("MultiOutputRegressor", "ClassifierChain", "RegressorChain", "FixedThresholdClassifier"),
    *("WithPublicRows", "SelectFromModel"),
}

#: Estimators that read the shape of the rows at most.
_READS_SHAPE = frozenset(
    {
        *("PolynomialFeatures", "PolynomialCountSketch", "SkewedChi2Sampler", "FrozenEstimator"),
        *("GaussianRandomProjection", "SparseRandomProjection"),
    }
)


def _categories_are_declared(encoder: Any) -> bool:
    counted = encoder.min_frequency is not None or encoder.max_categories is not None
    return not isinstance(encoder.categories, str) and not counted


#: Whether the parameters of a transformer fix all that it would learn. A StandardScaler that neither centres
#: nor scales is not listed: it still stores how many entries of each column are missing.
_FIXED: Mapping[str, Callable[[Any], bool]] = {
    "FunctionTransformer": lambda transformer: column_function(transformer) is None,
    "OneHotEncoder": _categories_are_declared,
    "OrdinalEncoder": _categories_are_declared,
    "RBFSampler": lambda sampler: sampler.gamma != "scale",
    "RobustScaler": lambda scaler: not (scaler.with_centering or scaler.with_scaling),
    # Without a value, the fill depends on the types of entries; empty columns are dropped unless kept.
    "SimpleImputer": lambda imputer: (
        imputer.strategy == "constant"
        and imputer.fill_value is not None
        and bool(imputer.keep_empty_features)
        and not imputer.add_indicator
    ),
    "MissingIndicator": lambda indicator: indicator.features == "all",
    "SplineTransformer": lambda splines: not isinstance(splines.knots, str),
    "CountVectorizer": lambda words: words.vocabulary is not None,
    "TfidfTransformer": lambda weights: not weights.use_idf,
    "TfidfVectorizer": lambda words: words.vocabulary is not None and not words.use_idf,
    "MultiLabelBinarizer": lambda labels: labels.classes is not None,
    # A function that chooses the number of columns sees the rows.
    "SelectFromModel": lambda selector: bool(selector.prefit) and not callable(selector.max_features),
}

#: Functions that mix rows, since they compute on whole columns.
_COLUMN_FUNCTIONS = frozenset(
    {"scale", "minmax_scale", "maxabs_scale", "robust_scale", "quantile_transform", "power_transform"}
)

#: Transformers that are fitted on public rows alone.
PUBLIC = frozenset({"PublicOnly", "PublicWhitener", "ScatteringFeatures", "TableEncoder"})


def kinds(estimator: Any) -> frozenset[str]:
    """Names of the class of an estimator and of its base classes."""
    return frozenset(kind.__name__ for kind in type(estimator).__mro__)


def steps_of(value: object) -> list[tuple[str, Any]]:
    """Names and steps of a pipeline of any library, or of one's own: what its attribute ``steps`` lists."""
    steps = getattr(value, "steps", None)
    if isinstance(steps, Mapping):
        steps = list(steps.items())
    if not isinstance(steps, (list, tuple)):
        return []
    pairs = [
        (str(step[0]), step[1])
        if isinstance(step, (list, tuple)) and len(step) in (2, 3)
        else (type(step).__name__.lower(), step)
        for step in steps
    ]
    return [(name, step) for name, step in pairs if is_step(step)]


def is_pipeline(value: object) -> bool:
    """Whether an object fits what ``steps`` lists, or the operations of a skrub learner or search."""
    return bool(steps_of(value) or kinds(value) & {"SkrubLearner", "_BaseParamSearch"})


def is_step(value: object) -> bool:
    """Whether a value can be fitted, or makes rows of others."""
    names = ("fit", "fit_transform", "fit_resample")
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in names)


def states_budget(estimator: BaseEstimator) -> bool:
    """Whether an estimator has a budget, with the parameters epsilon and delta."""
    get_params = getattr(estimator, "get_params", None)
    return get_params is not None and {"epsilon", "delta"} <= set(get_params(deep=False))


def holds_public_targets(estimator: BaseEstimator) -> bool:
    """Whether a part of an estimator is a ``WithPublicRows`` that has public rows."""
    parts = [estimator, *estimator.get_params().values()]
    return any("WithPublicRows" in kinds(part) and part.y_pub is not None for part in parts)


def drops_fits(estimator: BaseEstimator) -> bool:
    """Whether an estimator makes fits that are not part of its result."""
    names, cv = kinds(estimator), getattr(estimator, "cv", None)
    in_full = isinstance(cv, str) or (cv is None and names & {"ClassifierChain", "RegressorChain"})
    return bool(names & DROPS_FITS) and not in_full


def stratifies(estimator: BaseEstimator) -> bool:
    """Whether an estimator stratifies its folds by labels."""
    cv = getattr(estimator, "cv", ())
    by_default = cv is None or isinstance(cv, int)
    return "Stratified" in type(cv).__name__ or (by_default and is_classifier(estimator))


def deals_by_size(cv: Any, *, persons: bool = False) -> bool:
    """Whether folds depend on group sizes, which are private; folds of rows do if there are ``persons``."""
    if "GroupKFold" in kinds(cv):
        return not getattr(cv, "shuffle", False)
    deals = cv is None or isinstance(cv, int) or hasattr(cv, "split")
    return persons and deals and not kinds(cv) & _BY_PERSONS


def chooses_publicly(estimator: BaseEstimator) -> bool:
    """Whether an estimator is a search that scores on public rows alone."""
    return "BaseSearchCV" in kinds(estimator) and is_public_score(estimator.scoring)


def is_public_score(scoring: object) -> bool:
    """Whether a parameter ``scoring`` looks at public rows alone."""
    scoring = getattr(scoring, "_scorers", scoring)  # what scikit-learn makes of several metrics
    scorers = list(scoring.values()) if isinstance(scoring, Mapping) else [scoring]
    return all("PublicScorer" in kinds(scorer) for scorer in scorers)


def learns_nothing(estimator: BaseEstimator) -> bool:
    """Whether the fit of an estimator stores nothing that depends on the entries of rows."""
    kind = type(estimator).__name__
    if kind in _FIXED:
        return _FIXED[kind](estimator)
    if kind in _READS_SHAPE:
        return True
    # The tag means that an estimator needs no fit. Some predictors have it too, since they can predict from a
    # prior.
    with suppress(Exception):  # what is no estimator of scikit-learn may mix rows
        return hasattr(estimator, "transform") and not get_tags(estimator).requires_fit
    return False


def column_function(estimator: BaseEstimator) -> str | None:
    """Name of a function in a ``FunctionTransformer`` that is known to mix rows."""
    name = getattr(getattr(estimator, "func", None), "__name__", None)
    return name if name in _COLUMN_FUNCTIONS else None


def is_predictor(estimator: BaseEstimator) -> bool:
    """Whether an estimator is a classifier or a regressor."""
    try:
        return bool(is_classifier(estimator) or is_regressor(estimator))
    except Exception:  # an object with broken tags counts as any other
        return False
