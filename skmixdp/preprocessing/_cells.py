"""Columns of tables as rows of numbers, each cell by itself.

What a cell becomes depends on the cell and on fixed facts about its column. It does not depend on the type of
the column: one odd cell turns a column of integers into one of real or complex numbers, text or objects. So
the same number counts the same as an integer, a real number, a complex number without an imaginary part, or
a text that spells it. No cell raises an error or a warning: what cannot be read counts as missing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer

Array = NDArray[np.float64]

#: Numbers are cut here: heads look for the spreads of columns below.
FARTHEST = 1e15

_TRUTH = {"true": 1.0, "false": 0.0}
_START = datetime(1970, 1, 1)
#: Names and lengths in days of what dates repeat by; the last one is for moments within days.
_PERIODS = (("year", 365.2425), ("week", 7.0), ("day", 1.0))


@dataclass(frozen=True)
class TableColumn:
    """How a :class:`~skmixdp.preprocessing.TableEncoder` encodes one column.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "datetime", "category", "text", "drop"}
        What its cells are.
    center, scale, cut : float
        Numbers and days become ``(x - center) / scale``, cut at ``-cut`` and ``cut``.
    categories : tuple of str
        The known values of a category, as texts.
    n_hashed : int
        The number of columns into which words are hashed.
    indicator : bool
        Whether a last column says where a cell is missing.
    """

    kind: str
    center: float = 0.0
    scale: float = 1.0
    cut: float = FARTHEST
    categories: tuple[str, ...] = ()
    n_hashed: int = 0
    indicator: bool = False

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns of the column with this name."""
        names = {
            "number": [name],
            "boolean": [name],
            "category": [f"{name}={value}" for value in self.categories],
            "text": [f"{name}#{place}" for place in range(self.n_hashed)],
        }.get(self.kind, [])
        if self.kind in ("date", "datetime"):
            waves = (f"{name} {period} {wave}" for period, _ in self.periods for wave in ("sin", "cos"))
            names = [name, *waves]
        return [*names, f"{name} is missing"] if self.indicator else names

    @property
    def periods(self) -> tuple[tuple[str, float], ...]:
        """Names and lengths in days of what a date repeats by."""
        return _PERIODS if self.kind == "datetime" else _PERIODS[:-1]

    @np.errstate(all="ignore")  # the user's settings could tell of tiny or huge cells
    def encode(self, cells: Sequence[Any]) -> Array:
        """Encoded cells, (n, width), all finite."""
        values, missing = self.read(cells)
        if self.kind == "drop":
            return np.zeros((len(missing), 0))
        if self.kind == "category":
            block = self._one_hot(values)
        elif self.kind == "text":
            block = self._hashed(values)
        else:
            scaled = (np.clip(values, -FARTHEST, FARTHEST) - self.center) / self.scale
            # Added to 0.0, a zero has no sign: complex numbers lose it.
            block = np.where(missing, 0.0, 0.0 + np.clip(scaled, -self.cut, self.cut))[:, None]
            if self.kind in ("date", "datetime"):
                block = np.hstack([block, self._waves(values)])
        return np.hstack([block, missing[:, None]]) if self.indicator else block

    def read(self, cells: Sequence[Any]) -> tuple[Any, NDArray[np.bool_]]:
        """Texts or numbers of the cells (n,), and which cells are missing."""
        if self.kind in ("category", "text"):
            texts = [text_of(cell) for cell in _objects(cells)]
            return texts, np.array([text is None for text in texts], dtype=bool)
        values = values_of(self.kind, cells)
        return values, np.isnan(values)

    def _one_hot(self, texts: list[str | None]) -> Array:
        places = {value: place for place, value in enumerate(self.categories)}
        block = np.zeros((len(texts), len(places) + 1))
        block[np.arange(len(texts)), [places.get(text, -1) for text in texts]] = 1.0  # type: ignore[arg-type]
        return block[:, :-1]  # the last one is for all others

    def _hashed(self, texts: list[str | None]) -> Array:
        if not texts:
            return np.zeros((0, self.n_hashed))
        hashing = HashingVectorizer(n_features=self.n_hashed, token_pattern=r"(?u)\b\w+\b")
        return np.asarray(hashing.transform(text or "" for text in texts).toarray(), dtype=np.float64)

    def _waves(self, days: Array) -> Array:
        """Sine and cosine of days, in each period; one by one, so that no other row rounds them otherwise."""
        lengths = [length for _, length in self.periods]
        waves = [
            [0.0] * (2 * len(lengths))
            if math.isnan(day)
            else [
                wave(2 * math.pi * (day / length - math.floor(day / length)))
                for length in lengths
                for wave in (math.sin, math.cos)
            ]
            for day in days.tolist()
        ]
        return np.array(waves, dtype=np.float64).reshape(len(days), 2 * len(lengths))


def values_of(kind: str, cells: Sequence[Any]) -> Array:
    """Numbers, truth values as -1 and 1, or days since 1970; NaN for cells that hold none of the kind."""
    if isinstance(cells, np.ndarray) and kind == "number":
        return cells.astype(np.float64)
    read = {"number": number_of, "boolean": _truth_of}.get(kind, days_of)
    return np.array([read(cell) for cell in _objects(cells)], dtype=np.float64)


def _objects(cells: Sequence[Any]) -> Sequence[Any]:
    """Cells as objects of Python, whose texts do not depend on a type of NumPy."""
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def kind_of(cells: Iterable[Any]) -> str | None:
    """The kind that all cells have which are not missing; None if all are missing."""
    known = [cell for cell in cells if not is_missing(cell)]
    if not known:
        return None
    if all(text_of(cell) in ("True", "False") for cell in known):
        return "boolean"
    if not np.isnan(values_of("number", known)).any():
        return "number"
    days = values_of("date", known)
    if np.isnan(days).any():
        return "category"
    return "datetime" if np.any(days % 1) else "date"


def number_of(cell: Any) -> float:
    """The number that a cell holds or spells, with truth values as 0 and 1; NaN for any other."""
    try:
        cell = _real(cell)
        if isinstance(cell, (Real, Decimal, np.bool_)):
            return float(cell)
        if isinstance(cell, timedelta):
            return cell.total_seconds()
        text = cell.strip().lower() if isinstance(cell, str) else ""
        return _TRUTH[text] if text in _TRUTH else float(text)
    except Exception:  # of any class that a cell may have
        return math.nan


def _truth_of(cell: Any) -> float:
    """1 for true, -1 for false, and NaN for all that is neither."""
    value = number_of(cell)
    return 2 * value - 1 if value in (0.0, 1.0) else math.nan


def days_of(cell: Any) -> float:
    """Days since 1970, in UTC, of a date, a moment or an ISO 8601 text; NaN for any other cell."""
    try:
        cell = _real(cell)
        if isinstance(cell, pd.Timestamp):
            cell = cell.to_pydatetime(warn=False)
        elif not isinstance(cell, datetime):
            text = text_of(cell) or ""
            cell = datetime.combine(cell, time()) if isinstance(cell, date) else datetime.fromisoformat(text)
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC).replace(tzinfo=None)
        return float((cell - _START) / timedelta(days=1))
    except Exception:  # NaT, another text, a year that datetime does not have, or any class of cells
        return math.nan


def text_of(cell: Any) -> str | None:
    """A cell as text, spelt alike whatever the type of its column; None if it is missing."""
    if is_missing(cell):
        return None
    try:
        text = str(_real(cell)).encode("utf-8", "replace").decode()
    except Exception:
        return None
    if text.strip().lower() in _TRUTH:
        return text.strip().capitalize()
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty; True also for objects that cannot be looked at."""
    try:
        return pd.isna(_real(cell)) is True or (isinstance(cell, str) and not cell.strip())
    except Exception:  # of a class whose objects cannot be compared
        return True


def _real(cell: Any) -> Any:
    """The real part of a complex number, or None if it has an imaginary one; other cells as they are.

    Numbers and durations become Python's, moments of NumPy become pandas', and ends of intervals real.
    Another cell may have changed the type of a column, and with it how the same value is spelt: 0.1 in single
    precision, or 0.10000000149011612; a day as ``1 days 00:00:00``, or ``1 day, 0:00:00``.
    """
    if isinstance(cell, (complex, np.complexfloating)):
        cell = cell.real if cell.imag == 0 else None
    if isinstance(cell, (np.timedelta64, pd.Timedelta)):
        return pd.Timedelta(cell).to_pytimedelta()
    if isinstance(cell, pd.Interval) and isinstance(cell.left, Real):
        return pd.Interval(float(cell.left), float(cell.right), cell.closed)
    if isinstance(cell, np.datetime64):
        return pd.Timestamp(cell)
    return float(cell) if isinstance(cell, np.floating) else cell
