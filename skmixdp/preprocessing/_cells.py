"""Columns of tables as rows of numbers, each cell by itself.

What a cell becomes depends on the cell and on fixed facts about its column. It does not depend on the type of
the column: one odd cell turns a column of truth values into one of integers, one of integers into one of real
or complex numbers, text or objects. So the same value counts the same as a truth value, an integer, a real
number, a complex number without an imaginary part, or a text that spells it, and the same moment counts the
same as a date, a moment of any unit and zone, or an ISO 8601 text. No cell raises an error or a warning: what
cannot be read counts as missing.

Columns of plain numbers and moments are read as a whole. The type of a column alone chooses how, and the
result has the same bits as if its cells were read one by one.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import cosdg, sindg
from sklearn.feature_extraction.text import HashingVectorizer

from .._utils.documents import Section, as_html
from .._utils.frames import dtype_of, names_of_list
from .._utils.validation import FLAG, POSITIVE, Allowed, Kind, Number, check_params
from ..privacy.report import FINITE, TEXT, TEXTS
from ._one_cell import (
    FIRST,
    LAST,
    MICROSECONDS_A_DAY,
    START,
    amount_of,
    days_of,
    list_of,
    number_of,
    quantity_of,
    text_of,
)

if TYPE_CHECKING:
    import polars

Array = NDArray[np.float64]

#: Most columns into which words are hashed.
MOST_HASHED = 2**20

#: Most categories that are shown.
_FEW = 3

#: Words that declare the kind of a column.
KINDS = ("number", "boolean", "date", "datetime", "category", "text", "drop", "amount", "decimal comma")

_SHARES = Kind(
    "a tuple of positive shares", lambda value: isinstance(value, tuple) and all(map(POSITIVE.admits, value))
)
_NUMBER_OF_COLUMNS = Number("a count", 0, MOST_HASHED, "both", whole=True)

#: Allowed values of the fields of an encoded column.
_FIELDS: dict[str, tuple[Allowed, ...]] = {
    "kind": (*KINDS[:-1], "list"),
    "center": (FINITE,),
    "scale": (POSITIVE,),
    "cut": (POSITIVE,),
    "categories": (TEXTS,),
    "shares": (_SHARES,),
    "n_hashed": (_NUMBER_OF_COLUMNS,),
    "indicator": (FLAG,),
    "format": (TEXT,),
    "length": (_NUMBER_OF_COLUMNS,),
}

#: Magnitude at which numbers are cut: heads look for the spread of columns below it.
FARTHEST = 9e18

#: Units of ``datetime64`` up to a day. Months and years have no fixed length.
_UNITS = tuple((unit, 1) for unit in ("D", "h", "m", "s", "ms", "us", "ns"))

#: Periods of dates by name, in days. The day is a period of moments alone.
_PERIODS = (("year", 365.2425), ("week", 7.0), ("day", 1.0))


@dataclass(frozen=True, repr=False)
class TableColumn:
    """How a :class:`~skmixdp.preprocessing.TableEncoder` encodes one column.

    Attributes
    ----------
    kind : {"number", "amount", "boolean", "date", "datetime", "category", "text", "list", "drop"}
        What its cells are.
    center, scale, cut : float
        Numbers and days become ``(x - center) / scale``, cut at ``-cut`` and ``cut``.
    categories : tuple of str
        The known values of a category, as texts.
    shares : tuple of float
        The share of each category in public rows; empty if all count the same.
    n_hashed : int
        The number of columns into which words are hashed.
    indicator : bool
        Whether a last column says where a cell is missing.
    format : str
        How texts spell dates, as in :meth:`datetime.datetime.strptime`; empty for ISO 8601. Of
        others, a comma if amounts have decimal commas, ``"seconds"`` if public cells are times of the
        day or spelt durations, and ``"objects"`` if they are lists or others that are no plain cells.
    length : int
        The number of entries of each list.
    """

    kind: str
    center: float = 0.0
    scale: float = 1.0
    cut: float = FARTHEST
    categories: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    n_hashed: int = 0
    indicator: bool = False
    format: str = ""
    length: int = 0

    def check_fields(self) -> None:
        """Refuse values that no encoder has, such as those of a forged file."""
        check_params(self, _FIELDS)
        if len(self.shares) not in (0, len(self.categories)):
            raise ValueError(
                f"shares={self.shares!r} must be one for each of {len(self.categories)} categories, or none."
            )

    def __repr__(self) -> str:
        return f"TableColumn({', '.join([repr(self.kind), *self._facts()])})"

    def _facts(self) -> list[str]:
        """What was declared or learned, without what is as always, and with at most 3 categories."""
        shown = []
        for field, value in [*zip(fields(self), astuple(self), strict=True)][1:]:
            text = f"{field.name}={value:.4g}" if type(value) is float else f"{field.name}={value!r}"
            if field.name == "categories" and len(value) > _FEW:
                text = f"{len(value)} categories ({', '.join(map(repr, value[:_FEW]))}, ...)"
            if value != field.default and field.name != "shares":  # of which each category has one
                shown.append(text)
        return shown

    def names(self, name: str) -> list[str]:
        """Names of the encoded columns of the column with this name."""
        names = {
            "category": [f"{name}={value}" for value in self.categories],
            "text": [f"{name}#{place}" for place in range(self.n_hashed)],
            "list": names_of_list(name, self.length),
            "drop": [],
        }.get(self.kind, [name])
        names += [f"{name} {period} {wave}" for period, _ in self.periods for wave in ("sin", "cos")]
        return [*names, f"{name} is missing"] if self.indicator else names

    def are_numbers(self) -> list[bool]:
        """Which of the encoded columns hold numbers or days, and not two values, waves or hashed words."""
        first = self.kind in ("number", "amount", "date", "datetime")
        return [first and place == 0 for place in range(len(self.names("")))]

    @property
    def sum_of_squares(self) -> float:
        """About the sum of the squares of the encoded columns that are no numbers."""
        words = self.kind in ("boolean", "category", "text")
        return float(self.length if self.kind == "list" else words + len(self.periods))

    @property
    def of_unknown(self) -> Array:
        """Entries (n_categories,) of an unknown category: what known ones have on average.

        The entries of each row sum to 1, since a head never learns what another sum means.
        """
        count = len(self.categories)
        return np.array(self.shares) if self.shares else np.full(count, 1 / max(count, 1))

    @property
    def periods(self) -> tuple[tuple[str, float], ...]:
        """Periods of a date by name, in days; empty for other kinds."""
        return {"date": _PERIODS[:-1], "datetime": _PERIODS}.get(self.kind, ())

    @np.errstate(all="ignore")  # a warning or error of NumPy could reveal tiny or huge cells
    def encode(self, cells: Any) -> Array:
        """Encoded cells, (n, width), all finite."""
        if self.kind == "drop":
            return np.zeros((len(cells), 0))
        if self.kind == "category":
            block, missing = self._one_hot(cells)
        elif self.kind == "text":
            texts, missing = self.read(cells)
            hashing = HashingVectorizer(n_features=self.n_hashed, token_pattern=r"(?u)\b\w+\b")
            words = [text or "" for text in texts]
            block = hashing.transform(words).toarray() if words else np.zeros((0, self.n_hashed))
        else:
            values, missing = self.read(cells)
            scaled = (np.clip(values, -FARTHEST, FARTHEST) - self.center) / self.scale
            # Adding 0.0 removes the sign of a zero, which complex numbers lose too.
            block = np.where(np.isnan(values), 0.0, 0.0 + np.clip(scaled, -self.cut, self.cut))
            block = block.reshape(len(missing), max(self.length, 1))
            for _, length in self.periods:
                turns = values / length
                degrees = 360.0 * (turns - np.floor(turns))
                # Computed one by one, since a sine of NumPy may depend on its place in an array.
                waves = np.column_stack([sindg(degrees), cosdg(degrees)])
                block = np.hstack([block, np.where(missing[:, None], 0.0, waves)])
        return np.hstack([block, missing[:, None]]) if self.indicator else block

    def read(self, cells: Any) -> tuple[Any, Any]:
        """The cells (n,), or entries of lists (n, length), and which cells are missing.

        Cells are texts, numbers, truth values as -1 and 1, or days since 1970; NaN for those of another kind.
        """
        if self.kind in ("category", "text"):
            texts = [text_of(cell) for cell in listed(cells)]
            return texts, np.array([text is None for text in texts], dtype=bool)
        if self.kind == "list":
            rows = np.full((len(cells), self.length), np.nan)
            for place, cell in enumerate(listed(cells)):
                rows[place] = list_of(cell, self.length)
            return rows, np.isnan(rows).all(axis=1)
        if self.kind in ("date", "datetime"):
            values = _days_of_moments(cells)
            if values is None:
                values = np.array([days_of(cell, self.format) for cell in listed(cells)], dtype=np.float64)
        elif (values := _plain_numbers(cells)) is None:
            number = partial(amount_of, comma=bool(self.format)) if self.kind == "amount" else quantity_of
            values = np.array([number(cell) for cell in listed(cells)], dtype=np.float64)
        if self.kind == "boolean":
            values = np.where((values == 0) | (values == 1), 2 * values - 1, np.nan)
        return values, np.isnan(values)

    def _one_hot(self, cells: Any) -> tuple[Array, NDArray[np.bool_]]:
        """Entries (n, n_categories), and which cells are missing."""
        block = np.zeros((len(cells), len(self.categories) + 1))
        values = _plain_numbers(cells)
        if values is not None:
            for place, category in enumerate(self.categories):
                block[:, place] = values == number_of(category)
            return self._with_unknown(block[:, :-1], np.isnan(values))
        places = {text_of(value): place for place, value in enumerate(self.categories)}
        places_of_cells: list[int] = []
        missing = np.zeros(len(block), dtype=bool)
        for row, cell in enumerate(listed(cells)):
            # A text that equals a category is not parsed; others may spell one.
            place = places.get(cell, -1) if type(cell) is str else -1
            if place < 0:
                text = text_of(cell)
                missing[row] = text is None
                place = places.get(text, -1)  # others go to the last column, which is dropped
            places_of_cells.append(place)
        block[np.arange(len(block)), places_of_cells] = 1.0
        return self._with_unknown(block[:, :-1], missing)

    def _with_unknown(self, block: Array, missing: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Zeros and ones with the entries of rows of no category, and which cells are missing."""
        # Missing cells with a column of their own are one more category.
        unknown = ~block.any(axis=1) & ~(missing & self.indicator)
        block[unknown] = self.of_unknown
        return block, missing


class TableColumns(dict[str, TableColumn]):
    """The columns of a table by name, which a notebook shows as a table."""

    @property
    def owners(self) -> list[str]:
        """The name of the column behind each encoded column."""
        return [name for name, column in self.items() for _ in column.names(name)]

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which encoded columns are numbers."""
        return np.array([flag for column in self.values() for flag in column.are_numbers()], bool)

    def __repr__(self) -> str:
        lines = (f"{name!r}: {column!r}" for name, column in self.items())
        return "{" + ",\n ".join(lines) + "}"

    def _repr_html_(self) -> str:
        rows = [
            (name, column.kind, len(column.names(name)), ", ".join(column._facts()))
            for name, column in self.items()
        ]
        return as_html("", [Section(rows=rows, columns=("column", "kind", "encoded as", "what is known"))])


# -- columns ---------------------------------------------------------------------------------


def listed(cells: Any) -> Sequence[Any]:
    """The cells of a column as objects of Python; None for those that Python cannot hold."""
    if isinstance(cells, list):
        return cells
    kind = dtype_of(cells)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "mM":
        if np.datetime_data(cells.dtype)[0] in ("ns", "ps", "fs", "as"):
            cells = cells.astype(f"{cells.dtype.kind}8[us]")  # the finest unit of Python
    elif str(kind).startswith(("Date", "Duration(")):  # of polars
        cells = cells.set(~_held_by_python(cells), None)
    elif str(kind).startswith(("List", "Array(")) and hasattr(cells, "to_arrow"):
        return [None if cell is None else cell.to_numpy() for cell in cells]
    try:
        return list((getattr(cells, "to_list", None) or cells.tolist)())
    except Exception:
        by_place, entries = getattr(cells, "iloc", cells), []
    for place in range(len(cells)):
        try:
            entries.append(by_place[place])
        except Exception:
            entries.append(None)
    return entries


def _held_by_python(cells: "polars.Series") -> "polars.Series":
    """Which days, moments or durations of a column of polars Python can hold; polars panics at others."""
    kind: Any = cells.dtype
    if str(kind) == "Date":
        return cells.is_between(date.min, date.max)
    if kind.to_python() is timedelta:
        ends = [timedelta.min, timedelta.max]
    elif kind.time_zone:  # Python must hold the local moment too
        ends = [FIRST - START, LAST - START]
    else:
        ends = [datetime.min - START, datetime.max - START]
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.time_unit]
    low, high = (end // timedelta(seconds=1) * per_second for end in ends)
    return cells.to_physical().is_between(max(low, -(2**63)), min(high + per_second - 1, 2**63 - 1))


def _plain_numbers(cells: Any) -> Array | None:
    """Numbers of a column of plain numbers or truth values, by its type; None for another column."""
    kind: Any = dtype_of(cells)
    if isinstance(kind, np.dtype):
        return np.asarray(cells).astype(np.float64) if kind.kind in "biuf" else None
    if isinstance(kind, pd.api.extensions.ExtensionDtype):
        plain = kind.kind in "biuf"
        return cells.to_numpy(dtype=np.float64, na_value=np.nan) if plain else None
    if hasattr(kind, "is_integer") and (kind.is_integer() or kind.is_float() or str(kind) == "Boolean"):
        return np.asarray(cells.to_numpy()).astype(np.float64)  # of polars
    return None


def _days_of_moments(cells: Any) -> Array | None:
    """Days since 1970 in UTC of a column of moments, by its type; None for another column."""
    kind = dtype_of(cells)
    arrow = str(kind) if isinstance(kind, pd.ArrowDtype) else ""
    if isinstance(kind, pd.DatetimeTZDtype) or (arrow.startswith("timestamp") and "tz=" in arrow):
        values = cells.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    elif arrow.startswith("timestamp"):
        values = cells.to_numpy()
    elif isinstance(kind, np.dtype) and kind.kind == "M":
        values = np.asarray(cells)
    elif str(kind).startswith(("Date", "Datetime(")) and hasattr(cells, "to_numpy"):
        values = np.asarray(cells.to_numpy())  # of polars, in UTC
    else:
        return None
    if values.dtype.kind != "M" or np.datetime_data(values.dtype) not in _UNITS:
        return None
    whole = values.astype("M8[D]")
    parts = (values - whole).astype("m8[us]").astype(np.int64)
    inside = (whole >= np.datetime64(FIRST, "D")) & (whole < np.datetime64(LAST, "D"))
    return np.where(inside, whole.astype(np.int64) + parts / MICROSECONDS_A_DAY, np.nan)
