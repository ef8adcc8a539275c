"""The transformers before a head, by scikit-learn, NumPy, pandas and Python alone.

Cells of tables are read as texts that begin with the names of their classes. Each rule is a regular
expression: what it finds becomes the text of a number or a date, or stays as it is. What stays is an error
when it is converted, so that no cell is read in another way than by the encoder.
"""

import copy
import math
import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from ..preprocessing import TableColumn
from ..preprocessing._one_cell import days_of, number_of
from .operations import (
    OWN,
    Affine,
    Array,
    Change,
    Cut,
    Marked,
    Operation,
    Operations,
    Project,
    ShortRows,
    Squared,
    Take,
    UnitRows,
    of_categories,
    of_numbers,
)

#: A step of a pipeline.
Step = tuple[str, Any]
#: A regular expression, and its replacement.
_Rule = tuple[str, str]

_OF_NUMBERS = r"(?:str_?|float\d*|u?int\d*|bool_?|Decimal)"
_SPELT = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)"
#: A boolean that is true, or a text that spells it.
_TRUE = r"(?i)^(?:str_?|bool_?) \s*true\s*\Z"
#: A boolean that is false, or a text that spells it.
_FALSE = r"(?i)^(?:str_?|bool_?) \s*false\s*\Z"
_NONE = r"(?:NoneType|NAType|NaTType) .*"
_MISSING = rf"(?si)^(?:{_NONE}|\w+ \s*(?:[+-]?nan|nat)?\s*)\Z"

#: How spelt times and durations begin. No number is made of them here, so that their rows fail.
_TIMES = r"\s*[+-]?(?:P[\dT]|\d+ days?|\d{1,2}:\d\d)"

_NUMBERS: tuple[_Rule, ...] = (
    ("\u2212", "-"),
    (r"^complex\d* 0j\Z", "float 0"),
    (r"^complex\d* \((.*)\+0j\)\Z", r"float \1"),
    (rf"(?i)^{_OF_NUMBERS} \s*({_SPELT})\s*\Z", r"\1"),
    (_TRUE, "1"),
    (_FALSE, "0"),
    (rf"(?s)^(?:{_NONE}|str_? (?!{_TIMES}).*|Decimal .*|(?:Timestamp|datetime|date|datetime64) .*)\Z", "nan"),
)
_WORDS: tuple[_Rule, ...] = (
    (_MISSING, "str "),
    (r"(?s)^(?!str_? ).*", "str  "),  # a text that is no category
    (r"^str_? ", ""),
)
_DAYS: tuple[_Rule, ...] = (
    (
        r"^(?:str_?|Timestamp|datetime|date|datetime64) ((?!0001|9999)\d{4}-\d\d-\d\d"
        r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?)\Z",
        r"\1",
    ),
    (r"^(?:str_?|float\d*|u?int\d*) ((?!0001|9999)\d{4})(\d\d)(\d\d)(?:\.0*)?\Z", r"\1-\2-\3"),
    (
        rf"(?s)^(?:{_NONE}|datetime64 NaT|bool_? .*|(?:str_?|float\d*|int\d*|Decimal) (?![\s+.]*\d).*)\Z",
        "NaT",
    ),
)
#: Integers are spelt as by the encoder. Texts of other numbers, dates and times stay.
_TEXTS: tuple[_Rule, ...] = (
    (_MISSING, "text "),
    (rf"^{_OF_NUMBERS} \s*\+?(-?)0*([0-9]{{1,15}})(?:\.0*)?\s*\Z", r"text \1\2"),
    (_TRUE, "text 1"),
    (_FALSE, "text 0"),
    (
        rf"(?i)^str_? (?!\s*{_SPELT}\s*\Z)"
        r"(?!(?!\d{4}-\d\d-\d\d\Z)\d{4}-?(?:W\d\d|\d\d)-?\d{0,2}(?:.[\d:.,]+(?:[+-][\d:.]+|Z)?)?\Z)",
        "text ",
    ),
)


def function(call: object, **options: object) -> FunctionTransformer:
    """A function of NumPy, pandas or Python with options."""
    return FunctionTransformer(call, kw_args=options)


def steps_of(operations: Operations, d: int) -> list[Step]:
    """Operations on rows (n, d) as steps of a pipeline."""
    return [(name, _step_of(operation, d)) for name, operation in operations]


def projection(components: Array) -> TruncatedSVD:
    """``x @ components.T``, as a TruncatedSVD with fitted attributes."""
    step = TruncatedSVD(n_components=len(components))
    step.components_ = np.array(components, order="C")
    step.n_features_in_ = components.shape[1]
    return step


def _step_of(operation: Operation, d: int) -> Any:
    match operation:
        case Affine(center, scale):
            return _scaler(center, scale)
        case Cut(low, high):
            return function(np.clip, a_min=low, a_max=high)
        case Marked():
            filled = function(np.nan_to_num, nan=0.0, posinf=np.inf, neginf=-np.inf)
            return FeatureUnion([("known", filled), ("missing", FunctionTransformer(np.isnan))])
        case Take(places):
            return function(np.take, indices=places, axis=1)
        case Squared(start):
            first = function(np.delete, obj=slice(start, None), axis=1)
            last = [("last", function(np.delete, obj=slice(start), axis=1)), ("square", function(np.square))]
            return FeatureUnion([("first", first), ("squares", Pipeline(last))])
        case UnitRows(norm):
            step = Normalizer(norm)
            step.n_features_in_ = d
            return step
        case ShortRows(bound):
            return _shortened(bound, d)
        case Project(components):
            return projection(components)
        case Change(factors, rest):
            return projection((rest * np.eye(d) + np.linalg.multi_dot([np.eye(d), *factors])).T)


def _scaler(mean: Array | None, scale: Array | None) -> StandardScaler:
    step = StandardScaler(with_mean=mean is not None, with_std=scale is not None)
    step.mean_ = None if mean is None else mean.copy()
    step.scale_ = None if scale is None else np.array(scale)
    step.var_ = None if scale is None else scale**2
    step.n_samples_seen_ = 1
    step.n_features_in_ = max(np.size(each) for each in (mean, scale) if each is not None)
    return step


def _shortened(bound: float, d: int) -> Pipeline:
    """Append ``sqrt(max(bound^2 - |x|^2, 0))``, normalise the longer row, and drop the last column."""
    missing = Pipeline(
        [
            ("length", function(np.linalg.norm, axis=1, keepdims=True)),
            ("square", FunctionTransformer(np.square)),
            ("missing", _scaler(np.array([bound**2]), np.array([-1.0]))),
            ("positive", function(np.clip, a_min=0.0, a_max=None)),
            ("root", FunctionTransformer(np.sqrt)),
        ]
    )
    longer = FeatureUnion([("row", FunctionTransformer()), ("missing", missing)])
    unit = _step_of(UnitRows("l2"), d + 1)
    return Pipeline([("longer", longer), ("unit", unit), ("row", function(np.delete, obj=-1, axis=1))])


def plain_step(step: Any, path: str) -> Any:
    """A fitted transformer without classes of this library; ``path`` names it in messages."""
    kind = type(step).__name__
    if kind in OWN:
        return Pipeline(steps_of(OWN[kind](step), step.n_features_in_))
    if kind == "TableEncoder":
        return _encoder(step)
    if kind == "PublicOnly":
        return plain_step(step.transformer_, path)
    parts = [step, *step.get_params().values()] if hasattr(step, "get_params") else []
    own = [part for part in parts if type(part).__module__.partition(".")[0] == "skmixdp"]
    if own:
        raise TypeError(
            f"to_sklearn has no form of a {type(own[0]).__name__}, in the step {path!r}; save the pipeline "
            "with save, or transform rows before the model."
        )
    return copy.deepcopy(step)


def _encoder(step: Any) -> Pipeline:
    """An encoder of tables. It is fitted to a made-up row, and then gets its numbers."""
    columns = {name: column for name, column in step.columns_.items() if column.kind != "drop"}
    for name, column in columns.items():
        if column.kind in ("list", "amount") or column.format:
            raise TypeError(
                "to_sklearn has no form of lists, amounts, times and formats of dates, as of the column "
                f"{name!r}; save the pipeline with save, or convert the column before the model."
            )
        if any(math.isnan(number_of(each)) and not math.isnan(days_of(each)) for each in column.categories):
            raise TypeError(
                f"to_sklearn has no form of categories that are dates, as of the column {name!r}; save the "
                "pipeline with save, or put a letter in front of them."
            )
    encode = ColumnTransformer(
        [(str(place), _column(column), name) for place, (name, column) in enumerate(columns.items())],
        sparse_threshold=0,
    )
    # Columns of arrays are named x0, x1 and so on, and names may be numbers.
    numbered = {place: f"x{place}" for place in range(len(step.columns_))}
    arrays = numbered if [*numbered.values()] == [*step.columns_] else {}
    plain = Pipeline(
        [
            ("frame", FunctionTransformer(pd.DataFrame)),
            ("places", function(pd.DataFrame.rename, columns=arrays)),
            ("names", function(pd.DataFrame.rename, columns=str)),
            ("columns", encode),
        ]
    )
    made_up = {name: "a" if columns[name].kind == "text" else None for name in columns}
    return plain.fit(pd.DataFrame([[made_up.get(name) for name in step.columns_]], columns=[*step.columns_]))


def _column(column: TableColumn) -> Any:
    """A transformer of one column, a series."""
    if column.kind == "text":
        return _of_texts(column)
    if column.kind == "category":
        return _of_categories(column)
    if column.kind == "boolean":  # 1 minus 0; missing values are neither
        rows = np.array([[-1.0, 1.0], [-1.0, -1.0]])[: 1 + column.indicator]
        offset = Affine(np.array([0.0, -1.0])[: len(rows)])
        value = _frozen([("value", Project(rows)), ("offset", offset)], len(rows))
        return Pipeline([*_edited(*_NUMBERS), _DOUBLE, _FINITE, _one_hot([0.0, 1.0]), *value])
    read = _numbers_and_durations()
    if column.periods:
        read = [
            *_edited(*_DAYS),
            ("moments", function(pd.to_datetime, utc=True, format="ISO8601")),
            ("start", function(pd.Series.sub, other=pd.Timestamp(0, tz="UTC"))),
            ("days", function(pd.Series.div, other=pd.Timedelta(days=1))),
        ]
    parts: list[Step] = [("value", Pipeline([_DOUBLE, *_frozen(of_numbers(column), 1), _fill()]))]
    for name, length in column.periods:
        series: Any = pd.Series  # its methods work on any series
        operations = ((series.div, length), (series.mod, 1.0), (series.mul, 2 * math.pi))
        angle = [(each.__name__, function(each, other=value)) for each, value in operations]
        parts += [
            (
                f"{name} {wave.__name__}",
                Pipeline([*angle, ("wave", FunctionTransformer(wave)), _DOUBLE, _fill()]),
            )
            for wave in (np.sin, np.cos)
        ]
    if column.indicator:
        parts.append(("missing", Pipeline([_DOUBLE, ("missing", FunctionTransformer(np.isnan))])))
    return Pipeline([*read, ("all", FeatureUnion(parts))])


def _of_texts(column: TableColumn) -> FeatureUnion:
    words = HashingVectorizer(n_features=column.n_hashed, token_pattern=r"(?u)\b\w+\b")
    parts: list[Step] = [
        ("words", Pipeline([*_edited(*_TEXTS, (r"^text ", "")), ("words", words)])),
        ("others", _checked(*_TEXTS, (r"(?s)^text .*", "0"))),
    ]
    if column.indicator:
        parts.append(("missing", Pipeline([*_edited((_MISSING, "1"), (r"(?s)^\w+ .*", "0")), _DOUBLE])))
    return FeatureUnion(parts)


def _of_categories(column: TableColumn) -> Pipeline:
    """Numbers and other texts are encoded separately, and then sorted."""
    values = [number_of(category) for category in column.categories]
    numbers = sorted({value for value in values if value == value})
    texts = [category for category, value in zip(column.categories, values, strict=True) if value != value]
    parts: list[Step] = [("others", _checked(*_NUMBERS))]
    if numbers:
        categories = np.nan_to_num(numbers).tolist()
        parts = [("numbers", Pipeline([*_edited(*_NUMBERS), _DOUBLE, _FINITE, _one_hot(categories)]))]
    column_of_texts = ("column", function(np.expand_dims, axis=1))
    parts.append(("texts", Pipeline([*_edited(*_WORDS), column_of_texts, _one_hot([*texts, ""])])))
    order = [
        numbers.index(value) if value == value else len(numbers) + texts.index(category)
        for category, value in zip(column.categories, values, strict=True)
    ]
    order += [len(numbers) + len(texts)] if column.indicator else []
    filled = _frozen(of_categories(column), len(order))
    ordered = function(np.take, indices=order, axis=1)
    return Pipeline([("found", FeatureUnion(parts)), ("order", ordered), *filled])


def _edited(*rules: _Rule) -> list[Step]:
    """Cells as texts that begin with the names of their classes, changed by regular expressions."""
    texts = [(f"rule {place}", partial(re.sub, *rule)) for place, rule in enumerate(rules)]
    steps: list[Step] = [("objects", function(pd.Series.astype, dtype=object))]
    called = [("texts", "{0.__class__.__name__} {0}".format), *texts]
    return steps + [(name, function(pd.Series.apply, func=call)) for name, call in called]


def _numbers_and_durations() -> list[Step]:
    """A series of numbers, with durations in seconds."""
    durations = [
        *_edited((r"(?s)^(?![Tt]imedelta ).*", "timedelta NaT"), (r"^[Tt]imedelta ", "")),
        ("durations", FunctionTransformer(pd.to_timedelta)),
        ("seconds", function(pd.Series.div, other=pd.Timedelta(seconds=1))),
        _DOUBLE,
    ]
    numbers = [*_edited((r"^[Tt]imedelta .*", "str "), *_NUMBERS), _DOUBLE]
    both = FeatureUnion([("numbers", Pipeline(numbers)), ("durations", Pipeline(durations))])
    return [("both", both), ("known", function(np.fmax.reduce, axis=1))]


def _checked(*rules: _Rule) -> Pipeline:
    """A transformer to no columns, which raises an error if a text is no number after the rules."""
    return Pipeline([*_edited(*rules), _DOUBLE, ("nothing", function(np.take, indices=np.arange(0), axis=1))])


#: Converts a series of numbers, or of texts of numbers, to a column of float64.
_DOUBLE: Step = (
    "double",
    Pipeline(
        [("numbers", function(np.asarray, dtype=np.float64)), ("column", function(np.expand_dims, axis=1))]
    ),
)


#: Replaces infinite numbers by the largest ones.
_FINITE: Step = ("finite", function(np.nan_to_num, nan=math.nan))


def _one_hot(categories: list[Any]) -> Step:
    values = np.array(categories, dtype=object if categories[-1] == "" else np.float64)
    return "known", OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False)


def _frozen(operations: Operations, d: int) -> list[Step]:
    """Steps that keep their numbers when the pipeline is fitted to the made-up row."""
    return [(name, FrozenEstimator(step)) for name, step in steps_of(operations, d)]


def _fill() -> Step:
    return "fill", SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
