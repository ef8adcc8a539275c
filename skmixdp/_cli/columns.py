"""Encode tables of numbers and text as rows of numbers, by public rows or declared facts."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._utils.validation import as_float
from .messages import InputError

_FORM = 'like {"numbers": {"age": [0, 120]}, "categories": {"city": ["Bonn", "Ulm"]}}'

#: Up to this number of distinct texts count as categories in a table of any length.
_MANY = 50


@dataclass(frozen=True)
class ColumnEncoder:
    """A map of tables to rows of numbers, which treats each row by itself.

    ``numbers`` has for each column what is subtracted, what it is then divided by, and the lowest and highest
    result; ``categories`` has the values of each column of text, which become columns of zeros and ones.
    ``origin`` names the source of these facts in messages.
    """

    numbers: dict[str, list[float]]
    categories: dict[str, list[str]]
    origin: str

    @classmethod
    def of_public(cls, frame: pd.DataFrame, where: str) -> "ColumnEncoder":
        """An encoder with means, deviations and categories of a public table."""
        numbers, categories = {}, {}
        for name in frame.columns:
            column = frame[name]
            if not _is_number(column):
                categories[name] = sorted(set(_texts(column)) - {None})
                if len(categories[name]) > max(_MANY, len(frame) / 2):
                    raise InputError(
                        f"{where} has another text in nearly every row of the column {name!r}, as names of "
                        "rows are; leave it aside with --id, or remove it."
                    )
                continue
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            values = values[~np.isnan(values)]
            if not np.isfinite(values).all():
                raise InputError(f"{where} has infinite values in the column {name!r}; remove their rows.")
            center = float(values.mean()) if len(values) else 0.0
            scale = float(values.std()) if len(values) else 0.0
            numbers[name] = [center, scale if scale > 0 else 1.0, -np.inf, np.inf]
        return cls(numbers, categories, where)

    @classmethod
    def declared(cls, path: Path) -> "ColumnEncoder":
        """An encoder with the bounds and categories that a JSON file declares."""
        where = f"--encode {path}"
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "no JSON"
            raise InputError(f"{where} cannot be read ({reason}); write it {_FORM}.") from None
        parts = {"numbers", "categories"}
        if not isinstance(given, dict) or not given or set(given) - parts:
            raise InputError(f"{where} must have the keys numbers and categories; write it {_FORM}.")
        numbers, categories = given.get("numbers", {}), given.get("categories", {})
        if not all(isinstance(part, dict) for part in (numbers, categories)) or not {**numbers, **categories}:
            raise InputError(f"{where} must map columns to bounds and to values; write it {_FORM}.")
        if twice := sorted(set(numbers) & set(categories)):
            raise InputError(f"{where} names {twice[0]!r} under numbers and categories; keep one of them.")
        entries = {name: _bounds(value, name, where) for name, value in numbers.items()}
        return cls(entries, {name: _values(value, name, where) for name, value in categories.items()}, where)

    @property
    def columns(self) -> list[str]:
        """The columns that a table must have."""
        return [*self.numbers, *self.categories]

    def __call__(self, frame: pd.DataFrame, where: str) -> pd.DataFrame:
        """Rows of numbers; missing numbers become 0, and unknown or missing text becomes zeros."""
        rows: dict[str, Any] = {}
        for name, (center, scale, low, high) in self.numbers.items():
            column = frame[name]
            if not _is_number(column):
                raise InputError(
                    f"{where} holds text in the column {name!r}, which has numbers in {self.origin}; write "
                    "numbers there, and leave cells without one empty."
                )
            values = (column.to_numpy(dtype=np.float64, na_value=np.nan) - center) / scale
            values = np.where(np.isnan(values), 0.0, np.clip(values, low, high))
            if not np.isfinite(values).all():
                raise InputError(f"{where} has infinite values in the column {name!r}; remove their rows.")
            rows[name] = values
        for name, known in self.categories.items():
            texts = _texts(frame[name])
            rows |= {f"{name}={value}": (texts == value).astype(np.float64) for value in known}
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The encoder as JSON, with None for infinite bounds; ``order`` keeps the order of the columns."""
        entries = asdict(self) | {"order": self.columns}
        entries["numbers"] = {
            name: [value if np.isfinite(value) else None for value in values]
            for name, values in self.numbers.items()
        }
        return entries

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "ColumnEncoder":
        """The inverse of :meth:`to_dict`."""
        numbers = {
            name: [center, scale, -np.inf if low is None else low, np.inf if high is None else high]
            for name, (center, scale, low, high) in entries["numbers"].items()
        }
        categories = entries["categories"]
        order = entries["order"]
        return cls(
            {name: numbers[name] for name in order if name in numbers},
            {name: categories[name] for name in order if name in categories},
            entries["origin"],
        )


def _is_number(column: "pd.Series[Any]") -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.dtype.kind != "c"


def _texts(column: "pd.Series[Any]") -> NDArray[np.object_]:
    """Entries as text; None where they are missing."""
    return np.array([None if pd.isna(entry) else _text(entry) for entry in column.tolist()], dtype=object)


def _text(entry: Any) -> str:
    """An entry as text, spelt alike whether or not other rows made the reader take its column for text."""
    text = str(entry)
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def _bounds(value: Any, name: str, where: str) -> list[float]:
    pair = value if isinstance(value, list) and len(value) == 2 else [None, None]
    low, high = (as_float(bound) for bound in pair)
    if low is None or high is None or not -np.inf < low < high < np.inf:
        raise InputError(f"{where} must give {name!r} two bounds, the lower one first; write it {_FORM}.")
    return [(low + high) / 2, (high - low) / 2, -1.0, 1.0]


def _values(value: Any, name: str, where: str) -> list[str]:
    listed = value if isinstance(value, list) else []
    texts = [_text(one) for one in listed if isinstance(one, (str, int, float))]
    if not texts or len(texts) < len(listed) or len(set(texts)) < len(texts):
        raise InputError(f"{where} must give {name!r} a list of distinct values; write it {_FORM}.")
    return texts
