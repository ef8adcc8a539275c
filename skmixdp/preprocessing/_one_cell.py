"""What one cell is: a number, a quantity with its unit, an amount of money, a day, or a text.

No cell raises an error: what cannot be read is NaN or None.
"""

import math
import re
import unicodedata
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

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
START = datetime(1970, 1, 1)
#: First moment in UTC, chosen so that local years stay within Python's range.
FIRST = datetime(1, 1, 3)
#: Moments are before this one, for the same reason.
LAST = datetime(9999, 12, 30)
MICROSECONDS_A_DAY = 86_400_000_000  # in microseconds


def number_of(cell: Any) -> float:
    """The number that a cell holds or spells, with truth values as 0 and 1; NaN for any other."""
    try:
        if type(cell) is not str:
            cell = real_of(cell)
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
    past = moment - START
    return past.days + (10**6 * past.seconds + past.microseconds) / MICROSECONDS_A_DAY


def _moment_of(cell: Any, form: str = "") -> datetime | None:
    """A date, a moment or a text as a moment in UTC; None for others and for years out of Python's range."""
    try:
        cell = real_of(cell)
        if isinstance(cell, pd.Timestamp):
            cell = cell.to_pydatetime(warn=False)
        elif isinstance(cell, date) and not isinstance(cell, datetime):
            cell = datetime.combine(cell, time())
        elif not isinstance(cell, datetime):
            text = cell if isinstance(cell, str) else ""
            if (value := number_of(cell)) == value:
                # A text that was read as a number has lost its leading zeros.
                text = str(int(value)).zfill(len(START.strftime(form)) if form else 8)
                if not value.is_integer():
                    return None
            cell = datetime.strptime(text.strip(), form) if form else datetime.fromisoformat(text)
        if cell.tzinfo is not None:
            cell = cell.astimezone(UTC).replace(tzinfo=None)
        return cell if FIRST <= cell < LAST else None
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
        cell = real_of(cell)
        if isinstance(cell, date) or (isinstance(cell, str) and cell[:1].isdigit()):
            moment = _moment_of(cell)
            if moment is not None:
                return str(moment.date() if moment.time() == time() else moment)
        if isinstance(cell, list):
            cell = [text_of(entry) for entry in cell]
        return str(cell).encode("utf-8", "replace").decode()
    except Exception:
        return None


def list_of(cell: object, length: int) -> Any:
    """The numbers of a list of this length, NaN for those that are missing; NaN for another cell."""
    try:
        if isinstance(cell, (list, tuple, np.ndarray)) and len(cell) == length:
            numbers = np.asarray(cell)
            if numbers.shape == (length,) and numbers.dtype.kind in "biuf":
                return numbers.astype(np.float64)
            return [number_of(entry) for entry in cell]
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
        return pd.isna(real_of(cell)) is True
    except Exception:  # of a class whose objects cannot be compared
        return True


def real_of(cell: object) -> Any:
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
        return [real_of(entry) for entry in cell]
    return cell


#: Classes of cells that every library spells alike.
SPELT = (str, Real, Decimal, np.bool_, np.timedelta64, np.datetime64, timedelta, date)

#: Classes of cells that are read unchanged.
_PLAIN = frozenset((str, float, int, bool, datetime, date, type(None)))
