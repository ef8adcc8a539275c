"""What public cells tell of a column: its kind, and advice on odd cells, codes of numbers and row numbers."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import time
from functools import partial
from typing import Any

import numpy as np

from ._one_cell import SPELT, amount_of, days_of, is_missing, number_of, quantity_of, real_of, text_of

#: Most cells in which a format of dates is looked for.
_LOOKED_AT = 100
#: Formats of dates that are tried.
_DAYS = (
    *(f"%d{sign}%m{sign}%Y" for sign in "/.-"),
    *(f"%m{sign}%d{sign}%Y" for sign in "/-"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%Y/%m/%d", "%Y.%m.%d", "%y/%m/%d", "%y-%m-%d"),
    *("%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    *("%a, %d %b %Y", "%A, %B %d, %Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%Y-%m", "%m/%Y", "%Y/%m"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S", " %H:%M:%S %z")
_FORMATS = (
    *(day + moment for moment in _TIMES for day in _DAYS),
    *("%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z", "%d/%b/%Y:%H:%M:%S %z", "%B %d, %Y, %H:%M"),
)
_SIGNS = {form: set(re.sub("%.", "", form)) for form in _FORMATS}
#: Names of columns that number or name rows, alone or after other words.
_NAMES_OF_ROWS = re.compile(
    r"(^|[\W_])(id|ids|uid|uuid|guid|index|idx|rownames?|rownum|rows?|nr|no|num|number|key|serial)$"
    r"|^unnamed: ?\d+$|(?-i:[a-z]I[Dd]$)",
    re.IGNORECASE,
)


def kind_of(cells: Iterable[Any]) -> str | None:
    """The kind of all cells that are not missing; None if all are missing."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not present:
        return None
    if all(quantity_of(cell) == quantity_of(cell) for cell in present):
        return "number"
    days = [days_of(cell) for cell in present]
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
        plain = (is_missing(cell) or isinstance(real_of(cell), SPELT) for cell in cells)
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


def remedy_for_odd_cells(name: str, cells: Sequence[Any]) -> str:
    """Advice if most cells of a category are numbers or dates; empty if they are not."""
    present = [cell for cell in cells if not is_missing(cell)]
    what = f"most public cells of the column {name!r} are"
    ways = {"number": quantity_of, "date": days_of, "amount": amount_of}
    read = {kind: _share_read(present, way) for kind, way in ways.items()}
    kind = max(read, key=lambda each: read[each])  # the first of equal ones
    if read[kind] >= 0.5:
        others = "written with signs" if kind == "amount" else "while others are texts"
        return (
            f"{what} {'dates' if kind == 'date' else 'numbers'} {others}, which makes categories of all; "
            f"declare columns={{{name!r}: {kind!r}}}, by which cells of other kinds count as missing, or "
            "declare 'category'."
        )
    texts = [cell for cell in present if isinstance(cell, str)][:_LOOKED_AT]
    with_digits = [text for text in texts if any(map(str.isdigit, text))]
    if not texts or len(with_digits) < 0.5 * len(texts):
        return ""
    some = with_digits[:3]
    signs = set().union(*some)  # formats without them are not tried: each is slow
    forms_of_some = [
        form
        for form, own in _SIGNS.items()
        if own <= signs and _share_read(some, partial(days_of, form=form))
    ]
    shares = {form: _share_read(texts, partial(days_of, form=form)) for form in forms_of_some}
    best = [form for form, share in shares.items() if share == max(shares.values()) >= 0.5]
    if not best:
        return ""
    forms = " or ".join(f"columns={{{name!r}: {form!r}}}" for form in best[:2])
    return f"{what} dates that are not ISO 8601; declare their format by {forms}, or declare 'category'."


def _share_read(cells: Sequence[Any], read: Callable[[Any], float]) -> float:
    """The share of cells that can be read."""
    values = [read(cell) for cell in cells]
    return sum(value == value for value in values) / max(len(values), 1)


def merged_codes(cells: Sequence[Any]) -> int:
    """How many codes spell the same number as another one, so that they share a category."""
    codes: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        value = number_of(cell)
        if value == value and (isinstance(cell, str) or abs(value) >= 2**53):
            codes[str(text_of(cell))].add(str(cell).strip().lower())
    return sum(len(spelt) - 1 for spelt in codes.values())


def is_row_number(name: str, cells: Sequence[Any]) -> bool:
    """Whether a column counts or names rows: whole numbers, all different, and one more piece of evidence."""
    # That sign is the name of the column, an order by size, or a range in which numbers that are drawn by
    # chance would repeat: of n draws from r numbers, about n^2 / (2 r) pairs are equal. Numbers such as
    # incomes are all different too, but come from a wide range.
    values = np.array([number_of(cell) for cell in cells if not is_missing(cell)], dtype=np.float64)
    n = len(values)
    if n < 10 or not np.all(np.isfinite(values)) or np.any(values % 1) or len(np.unique(values)) < n:
        return False
    steps, span = np.diff(values), float(np.ptp(values)) + 1
    ordered = bool(np.all(steps > 0) or np.all(steps < 0))
    return ordered or n**2 / (2 * span) >= 5 or bool(_NAMES_OF_ROWS.search(name))
