"""The transformers before a head as objects of scikit-learn and functions of NumPy and pandas alone."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from ...preprocessing import TableColumn
from ...preprocessing._cells import FARTHEST, number_of
from .sklearn_makers import normalizer, projection, scaler


def plain_step(step: Any, path: str) -> Any:
    """A fitted transformer without classes of this library; ``path`` names it in messages."""
    kind = type(step).__name__
    if kind in _RULES:
        return _RULES[kind](step)
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


def _encoder(step: Any) -> ColumnTransformer:
    """An encoder of tables whose cells have the types of their kinds.

    It is fitted to one made-up row, and the numbers are set afterwards.
    """
    columns = {name: column for name, column in step.columns_.items() if column.kind != "drop"}
    odd = [name for name, column in columns.items() if column.kind in ("list", "amount") or column.format]
    if odd:
        raise TypeError(
            f"to_sklearn has no form of lists, amounts and formats of dates, as of the column {odd[0]!r}; "
            "save the pipeline with save, or convert the column before the model."
        )
    parts = []
    for place, (name, column) in enumerate(columns.items()):
        parts.append((str(place), _column(column), [name]))
        if column.indicator:
            parts.append((f"{place} is missing", FunctionTransformer(pd.isna), [name]))
    plain = ColumnTransformer(parts, sparse_threshold=0)
    made_up = {"date": pd.Timestamp(0), "datetime": pd.Timestamp(0), "text": "a"}
    row = {
        name: [column.categories[0] if column.kind == "category" else made_up.get(column.kind, 0.0)]
        for name, column in columns.items()
    }
    absent = {name: [0.0] for name in step.columns_ if name not in columns}
    plain.fit(pd.DataFrame(row | absent)[[*step.columns_]])
    return plain


def _column(column: TableColumn) -> Any:
    """A transformer of one column."""
    if column.kind == "text":
        fill = FunctionTransformer(pd.DataFrame.fillna, kw_args={"value": ""})
        words = HashingVectorizer(n_features=column.n_hashed, token_pattern=r"(?u)\b\w+\b")
        return Pipeline([("fill", fill), ("flat", FunctionTransformer(np.ravel)), ("words", words)])
    if column.kind == "category":
        known: list[Any] = [number_of(value) for value in column.categories]
        read = [("objects", FunctionTransformer(np.asarray, kw_args={"dtype": object}))]
        if np.isnan(known).any():
            read = [*_respelt(column.categories), *read]
            known = [*column.categories]
        else:  # a missing value turns a column of integers into real numbers
            read = [("numbers", _double()), *read]
        categories = [np.array(known, dtype=object)]
        encode = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
        return Pipeline([*read, ("encode", encode)])
    if column.kind == "boolean":
        return Pipeline([("read", _double()), ("number", _scaled(0.5, 0.5, 1.0))])
    if column.kind == "number":
        return Pipeline([("read", _double()), ("number", _scaled(column.center, column.scale, column.cut))])
    frame: Any = pd.DataFrame  # its methods work on any frame
    start = FunctionTransformer(frame.sub, kw_args={"other": pd.Timestamp(0)})
    days = FunctionTransformer(frame.div, kw_args={"other": pd.Timedelta(days=1)})
    number = _scaled(column.center, column.scale, column.cut)
    parts = [("days", Pipeline([("read", _double()), ("number", number)]))]
    for name, length in column.periods:
        operations = ((frame.div, length), (frame.mod, 1.0), (frame.mul, 2 * math.pi))
        angle = [
            (operation.__name__, FunctionTransformer(operation, kw_args={"other": value}))
            for operation, value in operations
        ]
        parts += [
            (f"{name} {wave.__name__}", Pipeline([*angle, ("wave", FunctionTransformer(wave)), _fill()]))
            for wave in (np.sin, np.cos)
        ]
    return Pipeline([("start", start), ("days", days), ("all", FeatureUnion(parts))])


def _respelt(categories: Sequence[str]) -> list[tuple[str, FunctionTransformer]]:
    """Steps that spell numbers and truth values as the categories do; none if no category is a number."""
    spelt: list[tuple[Any, str]] = []
    for category in categories:
        number = number_of(category)
        if math.isnan(number):
            continue
        cells: list[Any] = [number, f"{number:.1f}", f"{number:.0f}", f"0{number:.0f}"]
        if number in (0, 1):
            word = str(bool(number))
            cells += [bool(number), word, word.lower(), word.upper()]
        spelt += [(cell, category) for cell in cells if cell != category and number_of(cell) == number]
    if not spelt:
        return []
    frame: Any = pd.DataFrame
    options = {"to_replace": [cell for cell, _ in spelt], "value": [word for _, word in spelt]}
    return [
        ("cells", FunctionTransformer(frame.astype, kw_args={"dtype": object})),
        ("spelt", FunctionTransformer(frame.replace, kw_args=options)),
    ]


def _double() -> FunctionTransformer:
    return FunctionTransformer(np.asarray, kw_args={"dtype": np.float64})


def _fill() -> tuple[str, SimpleImputer]:
    return "fill", SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)


def _scaled(center: float, scale: float, cut: float) -> Pipeline:
    """``(x - center) / scale``, cut at ``cut``, and 0 for missing numbers."""
    whole = FunctionTransformer(np.clip, kw_args={"a_min": -FARTHEST, "a_max": FARTHEST})
    ends = FunctionTransformer(np.clip, kw_args={"a_min": -cut, "a_max": cut})
    linear = scaler(1, mean=np.array([center]), scale=np.array([scale]))
    return Pipeline([("whole", whole), ("linear", FrozenEstimator(linear)), ("cut", ends), _fill()])


#: How each class of this library is expressed.
_RULES: dict[str, Callable[[Any], Any]] = {
    "NoisyScaler": lambda step: scaler(step.n_features_in_, mean=step.mean_, scale=step.scale_),
    "PublicCenterer": lambda step: scaler(step.n_features_in_, mean=step.mean_),
    "PublicWhitener": lambda step: Pipeline(
        [("center", scaler(step.n_features_in_, mean=step.mean_)), ("project", projection(step.components_))]
    ),
    "RowNormalizer": lambda step: normalizer(step.norm, step.n_features_in_),
    "TableEncoder": _encoder,
}
