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

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import cosdg, sindg
from sklearn.feature_extraction.text import HashingVectorizer

from .._utils.frames import dtype_of, names_of_list
from .._utils.templates import html_table
from .._utils.validation import FLAG, POSITIVE, Allowed, Kind, Number, check_params
from ..privacy.report import FINITE, TEXT, TEXTS

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

_TRUTH = {"true": 1.0, "false": 0.0}
#: How NumPy writes missing numbers and dates in an array of texts, which one cell that is a text made so.
_MISSING = frozenset(("", "nan", "+nan", "-nan", "nat"))
#: A number without marks, or with marks before some groups of its digits.
_AMOUNT = re.compile(r"([+-]?)((?:\d+|(?=[.,]\d))(?:[.,]\d*)*)([eE][+-]?\d+)?")
#: Groups of digits between thousands: of three digits, or two before commas as in India.
_THOUSANDS = {",": re.compile(r"\d{1,3}(,\d{2,3})*,\d{3}"), ".": re.compile(r"\d{1,3}(\.\d{3})+")}
#: A space or an apostrophe between thousands.
_BETWEEN = re.compile(r"(?<=\d)['\u2019\s](?=\d{3}(?!\d))")
#: Signs that are written for a minus.
_MINUS = str.maketrans(dict.fromkeys("\u2212\u2013\ufe63\uff0d", "-"))
#: A time of the day, as in ISO 8601 or with AM and PM, also after a number of days.
_TIME = re.compile(
    r"([+-])?(?:(\d+) days?,? \+?)?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?(?: ?([ap])\.?m\.?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
#: A duration as in ISO 8601.
_DURATION = re.compile(
    r"([+-])?P(?=.)"
    + "".join(rf"(?:([\d.,]+){unit})?" for unit in "YMWD")
    + r"(?:T(?=.)"
    + "".join(rf"(?:([\d.,]+){unit})?" for unit in "HMS")
    + ")?"
)
#: Seconds of the parts of a duration. Years and months have the average length.
_SECONDS = (365.2425 * 86400, 365.2425 / 12 * 86400, 7 * 86400, 86400, 3600, 60, 1)
_CURRENCY = re.compile(r"^[A-Z]{3}|[A-Z]{3}$")
_START = datetime(1970, 1, 1)
#: Units of ``datetime64`` up to a day. Months and years have no fixed length.
_UNITS = tuple((unit, 1) for unit in ("D", "h", "m", "s", "ms", "us", "ns"))
#: First moment in UTC, chosen so that local years stay within Python's range.
_FIRST = datetime(1, 1, 3)
#: Moments are before this one, for the same reason.
_LAST = datetime(9999, 12, 30)
_DAY = 86_400_000_000  # in microseconds
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
        each = [*zip(fields(self), astuple(self), strict=True)][1:]
        shown = {field.name: value for field, value in each if value != field.default}
        shown.pop("shares", None)  # one for each category
        if len(self.categories) > _FEW:
            first = ", ".join(map(repr, self.categories[:_FEW]))
            return [f"{len(self.categories)} categories ({first}, ...)", *_said(shown, "categories")]
        return _said(shown)

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
    def square(self) -> float:
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
            block = self._hashed(texts)
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
                rows[place] = _list_of(cell, self.length)
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
        found: list[int] = []
        missing = np.zeros(len(block), dtype=bool)
        for row, cell in enumerate(listed(cells)):
            # A text that equals a category is not parsed; others may spell one.
            place = places.get(cell, -1) if type(cell) is str else -1
            if place < 0:
                text = text_of(cell)
                missing[row] = text is None
                place = places.get(text, -1)  # others go to the last column, which is dropped
            found.append(place)
        block[np.arange(len(block)), found] = 1.0
        return self._with_unknown(block[:, :-1], missing)

    def _with_unknown(self, block: Array, missing: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
        """Zeros and ones with the entries of rows of no category, and which cells are missing."""
        # Missing cells with a column of their own are one more category.
        unknown = ~block.any(axis=1) & ~(missing & self.indicator)
        block[unknown] = self.of_unknown
        return block, missing

    def _hashed(self, texts: list[str | None]) -> Array:
        if not texts:
            return np.zeros((0, self.n_hashed))
        hashing = HashingVectorizer(n_features=self.n_hashed, token_pattern=r"(?u)\b\w+\b")
        return np.asarray(hashing.transform(text or "" for text in texts).toarray(), dtype=np.float64)


class TableColumns(dict[str, TableColumn]):
    """The columns of a table by name, which a notebook shows as a table."""

    def __repr__(self) -> str:
        lines = (f"{name!r}: {column!r}" for name, column in self.items())
        return "{" + ",\n ".join(lines) + "}"

    def _repr_html_(self) -> str:
        rows = (
            (name, column.kind, len(column.names(name)), ", ".join(column._facts()))
            for name, column in self.items()
        )
        return html_table(("column", "kind", "encoded as", "what is known"), rows)


def _said(facts: dict[str, Any], *without: str) -> list[str]:
    """Facts as text; numbers with 4 digits."""
    return [
        f"{name}={value:.4g}" if type(value) is float else f"{name}={value!r}"
        for name, value in facts.items()
        if name not in without
    ]


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
        by_place, found = getattr(cells, "iloc", cells), []
    for place in range(len(cells)):
        try:
            found.append(by_place[place])
        except Exception:
            found.append(None)
    return found


def _held_by_python(cells: "polars.Series") -> "polars.Series":
    """Which days, moments or durations of a column of polars Python can hold; polars panics at others."""
    kind: Any = cells.dtype
    if str(kind) == "Date":
        return cells.is_between(date.min, date.max)
    if kind.to_python() is timedelta:
        ends = [timedelta.min, timedelta.max]
    elif kind.time_zone:  # Python must hold the local moment too
        ends = [_FIRST - _START, _LAST - _START]
    else:
        ends = [datetime.min - _START, datetime.max - _START]
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
    inside = (whole >= np.datetime64(_FIRST, "D")) & (whole < np.datetime64(_LAST, "D"))
    return np.where(inside, whole.astype(np.int64) + parts / _DAY, np.nan)


# -- cells -----------------------------------------------------------------------------------


def number_of(cell: Any) -> float:
    """The number that a cell holds or spells, with truth values as 0 and 1; NaN for any other."""
    try:
        if type(cell) is not str:
            cell = _real(cell)
            if isinstance(cell, timedelta):
                return cell.total_seconds()
            if isinstance(cell, (Real, Decimal, np.bool_)):
                return float(cell)
            if not isinstance(cell, str):
                return math.nan
        # Python reads 1_12 as a number, and readers of files do not.
        return math.nan if "_" in cell else float(cell)
    except OverflowError:  # an integer beyond the range of floats
        return math.inf if cell > 0 else -math.inf
    except ValueError:
        if not isinstance(cell, str):
            return math.nan
        if "\u2212" in cell:  # the minus sign of typesetting
            return number_of(cell.replace("\u2212", "-"))
        return _TRUTH.get(cell.strip().lower(), math.nan)
    except Exception:  # a cell may be of any class
        return math.nan


def quantity_of(cell: object) -> float:
    """A number as in :func:`number_of`, or the seconds of a time of the day or a duration; NaN for others."""
    value = number_of(cell)
    if value == value:
        return value
    if isinstance(cell, time):
        return 3600.0 * cell.hour + 60 * cell.minute + cell.second + cell.microsecond / 10**6
    if not isinstance(cell, str):
        return math.nan
    text = cell.strip()
    if match := _DURATION.fullmatch(text):
        sign, *parts = match.groups()
        values = [number_of((part or "0").replace(",", ".")) for part in parts]
        total = sum(count * seconds for count, seconds in zip(values, _SECONDS, strict=True))
        return -total if sign == "-" else total
    match = _TIME.fullmatch(text)
    if match is None:
        return math.nan
    sign, days, hours, minutes, seconds, half = match.groups()
    hour = int(hours)
    if half:
        hour = hour % 12 + 12 * (half in "pP") if 1 <= hour <= 12 else 24
    if int(minutes) >= 60 or float(seconds or 0) >= 61 or hour > 24 - bool(half):
        return math.nan
    total = 3600.0 * hour + 60 * int(minutes) + float(seconds or 0)
    if days:  # a sign is that of the days alone
        return total + 86400 * int(f"{sign or ''}{days}")
    return -total if sign == "-" else total


def amount_of(cell: Any, *, comma: bool = False) -> float:
    """A number as in :func:`number_of`, also with marks of thousands, currency or percent: ``$1,234.50``.

    The last group of digits tells the decimal mark. Three digits after the only mark tell nothing: they are
    thousands after a comma, or with ``comma`` after a point.
    """
    value = number_of(cell)
    if not isinstance(cell, str) or (value == value and not (comma and "." in cell)):
        return value
    text = _BETWEEN.sub("", cell)
    if re.search(r"\d\s+\d", text):
        return math.nan
    text = "".join(sign for sign in text if not sign.isspace() and unicodedata.category(sign) != "Sc")
    text = text.translate(_MINUS)
    in_brackets = text[:1] + text[-1:] == "()"  # brackets mean a minus sign in accounting
    text = _CURRENCY.sub("", text[1:-1] if in_brackets else text)
    digits = text.removesuffix("%")
    if digits.endswith("-") and digits[:1].isdigit():  # a minus sign behind, as in accounts
        digits = f"-{digits[:-1]}"
    match = _AMOUNT.fullmatch(digits)
    if match is None:
        return math.nan
    sign, body, power = match.groups()
    value = number_of(f"{sign}{_with_point(body, comma)}{power or ''}")
    return (-value if in_brackets else value) / (100 if text.endswith("%") else 1)


def _with_point(body: str, comma: bool) -> str:
    """Digits with a decimal point as the only mark; no number if their marks are in no order."""
    marks = re.findall("[.,]", body)
    if not marks:
        return body
    first, last = marks[0], marks[-1]
    whole, part = body.rsplit(last, 1)
    if first == last:
        groups = len(part) == 3 and re.fullmatch(r"[1-9]\d{0,2}", whole)
        if len(marks) == 1 and (not groups or last == (",." if comma else ".,")[0]):
            return f"{whole}.{part}"
        return body.replace(first, "") if _THOUSANDS[first].fullmatch(body) else "?"
    return f"{whole.replace(first, '')}.{part}" if _THOUSANDS[first].fullmatch(whole) else "?"


def days_of(cell: object, form: str = "") -> float:
    """Days since 1970, in UTC, of a date, a moment or a text, ISO 8601 or of this format; NaN for others."""
    moment = _moment_of(cell, form)
    if moment is None:
        return math.nan
    past = moment - _START
    return past.days + (10**6 * past.seconds + past.microseconds) / _DAY


def _moment_of(cell: Any, form: str = "") -> datetime | None:
    """A date, a moment or a text as a moment in UTC; None for others and for years out of Python's range."""
    try:
        cell = _real(cell)
        if isinstance(cell, pd.Timestamp):
            cell = cell.to_pydatetime(warn=False)
        elif isinstance(cell, date) and not isinstance(cell, datetime):
            cell = datetime.combine(cell, time())
        elif not isinstance(cell, datetime):
            text = cell if isinstance(cell, str) else ""
            if (value := number_of(cell)) == value:
                # A text that was read as a number has lost its leading zeros.
                text = str(int(value)).zfill(len(_START.strftime(form)) if form else 8)
                if not value.is_integer():
                    return None
            cell = datetime.strptime(text.strip(), form) if form else datetime.fromisoformat(text)
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC).replace(tzinfo=None)
        return cell if _FIRST <= cell < _LAST else None
    except Exception:  # NaT, another text, a year that datetime does not have, or any class of cells
        return None


def text_of(cell: object) -> str | None:
    """A cell as text, spelt alike whatever the type of its column; None if it is missing."""
    if is_missing(cell):
        return None
    value = number_of(cell)
    if value == value:
        return str(int(value)) if value.is_integer() else repr(value)
    try:
        cell = _real(cell)
        if isinstance(cell, date) or (isinstance(cell, str) and cell[:1].isdigit()):
            moment = _moment_of(cell)
            if moment is not None:
                return str(moment.date() if moment.time() == time() else moment)
        if isinstance(cell, list):
            cell = [text_of(one) for one in cell]
        return str(cell).encode("utf-8", "replace").decode()
    except Exception:
        return None


def _list_of(cell: object, length: int) -> Any:
    """The numbers of a list of this length, NaN for those that are missing; NaN for another cell."""
    try:
        if isinstance(cell, (list, tuple, np.ndarray)) and len(cell) == length:
            numbers = np.asarray(cell)
            if numbers.shape == (length,) and numbers.dtype.kind in "biuf":
                return numbers.astype(np.float64)
            return [number_of(one) for one in cell]
    except Exception:  # of a class that has no length
        pass
    return math.nan


def is_missing(cell: object) -> bool:
    """Whether a cell is empty; True also for objects that cannot be looked at."""
    if type(cell) is float:
        return cell != cell
    try:
        if isinstance(cell, str):
            return cell.strip().lower() in _MISSING
        return pd.isna(_real(cell)) is True
    except Exception:  # of a class whose objects cannot be compared
        return True


def _real(cell: object) -> Any:
    """A cell of few types: real numbers, Python's durations, pandas' moments, lists, or any other object."""
    # Another cell may have changed the type of a column, and with it how the same value is spelt: a list as
    # [1, 2], or [1 2]. A number with an imaginary part is missing.
    if type(cell) in _PLAIN:
        return cell
    if isinstance(cell, (complex, np.complexfloating)):
        cell = cell.real if cell.imag == 0 else None
    if isinstance(cell, (np.timedelta64, pd.Timedelta)):
        return pd.Timedelta(cell).to_pytimedelta()
    if isinstance(cell, pd.Interval) and isinstance(cell.left, Real):
        return pd.Interval(float(cell.left), float(cell.right), cell.closed)
    if isinstance(cell, np.datetime64):
        return pd.Timestamp(cell)
    if isinstance(cell, (tuple, np.ndarray)):
        return [_real(one) for one in cell]
    return cell


#: Classes of cells that every library spells alike.
_SPELT = (str, Real, Decimal, np.bool_, np.timedelta64, np.datetime64, timedelta, date)

#: Classes of cells that are read unchanged.
_PLAIN = frozenset((str, float, int, bool, datetime, date, type(None)))


# -- public cells ----------------------------------------------------------------------------


def kind_of(cells: Iterable[Any]) -> str | None:
    """The kind of all cells that are not missing; None if all are missing."""
    known = [cell for cell in cells if not is_missing(cell)]
    if not known:
        return None
    if all(quantity_of(cell) == quantity_of(cell) for cell in known):
        return "number"
    days = [days_of(cell) for cell in known]
    if any(map(math.isnan, days)):
        return "category"
    return "datetime" if any(day % 1 for day in days) else "date"


def form_of(kind: str, cells: Sequence[Any]) -> str:
    """How public cells are spelt, if it is not plain: a comma, ``"seconds"`` or ``"objects"``; else empty."""
    if kind in ("number", "category", "text") and any(isinstance(cell, time) for cell in cells):
        return "seconds"
    if kind == "number" and any(number_of(cell) != quantity_of(cell) == quantity_of(cell) for cell in cells):
        return "seconds"
    if kind in ("number", "category", "text"):
        plain = (is_missing(cell) or isinstance(_real(cell), _SPELT) for cell in cells)
        return "" if all(plain) else "objects"
    return "," if kind == "amount" and _has_decimal_commas(cells) else ""


def _has_decimal_commas(cells: Sequence[Any]) -> bool:
    """Whether more cells have a decimal comma than a point; those that may have either do not count."""
    votes = 0
    for cell in cells:
        marks = re.findall("[.,]", cell) if isinstance(cell, str) else []
        if marks and amount_of(cell) == amount_of(cell, comma=True):
            between = len(marks) > 1 and marks[0] == marks[-1]
            votes += 1 if (marks[-1] == ",") != between else -1
    return votes > 0
