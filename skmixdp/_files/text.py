"""Tables as text: each line is a row, and each line and cell is read independently.

A reader that guesses lets one cell decide how all others are read. One comma too many makes the first cells
row names, one word turns a column of numbers into text, and one quote that is not closed swallows the lines
after it. Here the first line and a :class:`TextForm` say how a line is read. A line that does not hold one
cell for each name is refused, whatever the other lines hold.
"""

import codecs
import csv
import gzip
import io
import lzma
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.frames import MISSING

#: Longest line in characters. A line is read at once, so that a longer one could fill the memory.
_LONGEST_LINE = 2**24
#: Bytes that a packed file may hold for each of its own, and that any file may hold. More would fill the
#: memory, or take hours, although the file is small.
_EXPANSION, _LEAST_BYTES = 1000, 2**30

_TRUTH = {"true": 1.0, "false": 0.0}

#: Separators that are tried for public files.
SEPARATORS = (",", ";", "\t", "|")
_NAMED = {"tab": "\t", "\\t": "\t"}

#: First bytes of a file that state its encoding; those of UTF-32 start like those of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: Encodings in which a character can change the meaning of later ones.
_SHIFTING = ("iso2022", "hz", "utf-7", "idna", "punycode", "unicode", "raw-unicode", "undefined")

#: Numbers with a decimal comma, and with points between groups of three digits.
_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
#: The minus sign of typesetting.
_MINUS = "\u2212"
#: Numbers that commas may part into thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
#: Spellings of plain numbers; ``01`` is not one, since it may be a code.
NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
#: How dates with letters begin.
_DATE = re.compile(
    r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d|\d{8}T|"
    r"(\d{1,2}[-/., ]*)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/., ]*\d",
    re.IGNORECASE,
)


class FileError(ValueError):
    """A file that cannot be read; the message is one sentence that names it and the remedy."""


def most_bytes(path: Path) -> int:
    """How many bytes a file may hold when it is unpacked."""
    return max(_LEAST_BYTES, _EXPANSION * path.stat().st_size)


def too_large(where: str, what: str) -> FileError:
    """The error for a file that would fill the memory; ``what`` is a clause on its content."""
    return FileError(f"{where} is too large: {what}; check that it is the right file.")


def check_expansion(n_bytes: int, path: Path, where: str) -> None:
    """Refuse a file that holds far more than its own bytes."""
    if n_bytes > most_bytes(path):
        raise too_large(
            where,
            f"it holds more than {_EXPANSION} times its own bytes, so save it without compression and "
            "dictionaries",
        )


@dataclass(frozen=True)
class TextForm:
    """How a table is written as text; None stands for what :func:`open_rows` says."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.separator is not None:
            separator = _NAMED.get(self.separator, self.separator)
            if len(separator) != 1 or separator.isalnum() or separator in '"\r\n\0.+-_':
                raise ValueError(
                    f"separator={self.separator!r} must be one character between cells, such as ';', or "
                    "'tab'."
                )
            object.__setattr__(self, "separator", separator)
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r} must be '.' or ','.")
        if self.encoding is not None:
            try:
                "".encode(self.encoding)  # raises an error for an unknown encoding
                name = codecs.lookup(self.encoding).name
            except (LookupError, ValueError):
                name = _SHIFTING[0]
            if name.startswith(_SHIFTING):
                raise ValueError(
                    f"encoding={self.encoding!r} must name an encoding, such as 'utf-8', 'latin-1', 'cp1252' "
                    "or 'utf-16', in which each character stands for itself."
                )

    def of(self, path: Path) -> "TextForm":
        """The form of a file, with defaults for all settings; a byte-order mark determines the encoding."""
        tabs = has_tabs(path)
        return replace(
            self,
            separator=self.separator or ("\t" if tabs else ";" if self.decimal == "," else ","),
            decimal=self.decimal or ".",
        )


def has_tabs(path: Path) -> bool:
    """Whether the ending of a file's name says that tabs separate cells."""
    return path.name.lower().removesuffix(".gz").removesuffix(".xz").endswith(".tsv")


def lines(path: Path, form: TextForm, where: str) -> Iterator[str]:
    """The lines of a file, which end with a line feed, with or without a carriage return."""
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    opener, encoding = openers.get(path.suffix.lower(), lambda file, mode: file), form.encoding
    if encoding is None:
        with path.open("rb") as packed, opener(packed, "rb") as file:
            start = file.read(4)
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    most, n_read = most_bytes(path), 0
    try:
        with (
            path.open("rb") as packed,
            opener(packed, "rb") as raw,
            io.TextIOWrapper(raw, encoding=encoding, newline="\n") as file,
        ):
            for i, line in enumerate(iter(partial(file.readline, _LONGEST_LINE + 1), "")):
                if len(line) > _LONGEST_LINE:
                    raise too_large(where, f"it has a line of more than {_LONGEST_LINE:,} characters")
                n_read += len(line)
                if n_read > most:
                    check_expansion(n_read, path, where)
                text = line.removesuffix("\n").removesuffix("\r")
                yield text.removeprefix("\ufeff") if i == 0 else text
    except UnicodeError:
        raise FileError(
            f"{where} is not text in {encoding}; name its encoding, often latin-1 or cp1252, by encoding "
            "(--encoding)."
        ) from None


def cells_of(line: str, separator: str, where: str) -> list[str]:
    """The cells of a line. Double quotes may enclose a cell; within them, two quotes stand for one."""
    if "\0" in line or "\r" in line:
        raise FileError(
            f"{where} has null characters, as UTF-16 text without a mark does, or carriage returns within "
            "lines; name its encoding by encoding (--encoding), or save it with line feeds as line ends."
        )
    if '"' not in line:
        return line.split(separator)
    try:
        (cells,) = csv.reader([line], delimiter=separator, strict=True)
    except csv.Error:
        raise FileError(
            f"{where} has a line with a quote that is not closed in its cell; a row is one line, so replace "
            "line breaks in cells by spaces, double the quotes that belong to a quoted cell, or save the "
            "table as .parquet."
        ) from None
    return cells


def is_row(line: str, width: int) -> bool:
    """Whether a line is a row. Blank lines are rows only in tables of one column: empty cells."""
    return width == 1 or bool(line.strip(" "))


def header_of(path: Path, form: TextForm, where: str) -> list[str]:
    """The names of the columns: those of the form, or the first line that is not blank.

    That line is refused if a name reads like a cell, since the names of features are published.
    """
    for line in lines(path, form, where):
        if is_row(line, 0):
            break
    else:
        raise FileError(f"{where} is empty; check that it is the right file.")
    assert form.separator is not None
    names = cells_of(line, form.separator, where)
    if len(names) == 1 and any(mark in line for mark in SEPARATORS if mark != form.separator):
        raise FileError(
            f"{where} has one name in its first line, in which its cells seem to be separated otherwise; "
            "name the character by separator (--separator)."
        )
    if form.names is not None:
        if form.names and len(form.names) != len(names):
            raise FileError(
                f"{where} has {len(names)} cells in its first line and names has {len(form.names)}; name "
                "each column."
            )
        return list(form.names) or [f"c{place}" for place in range(1, len(names) + 1)]
    if any(not name.strip() for name in names):
        raise FileError(
            f"{where} has a column without a name, often the row numbers saved with a table; remove it, or "
            "name it if it is a feature."
        )
    if any(map(_reads_like_a_cell, names)):
        raise FileError(
            f"{where} has a first line that reads like a row, with a number, a date or a sign of a missing "
            "value among its names; put a line of names with letters above it, or name the columns by names "
            "(--no-header)."
        )
    if len(set(names)) < len(names):
        raise FileError(f"{where} has columns of the same name; give each column its own name.")
    return names


def _reads_like_a_cell(name: str) -> bool:
    text = name.strip()
    is_number = number_of(text) is not None or number_of(with_point(text)) is not None
    return is_number or not any(map(str.isalpha, text)) or _DATE.match(text) is not None


def rows_of(path: Path, form: TextForm, where: str, width: int) -> Iterator[list[str]]:
    """The cells of each row, without the line of names; a line with another number of cells is refused."""
    assert form.separator is not None
    for line in row_lines(path, form, where, width):
        cells = cells_of(line, form.separator, where)
        if len(cells) != width:
            raise FileError(
                f"{where} has a line with more or fewer cells than its first line, which has {width} names; "
                "give each line one cell for each name, put cells that hold the separator in double quotes, "
                "and name another separator by separator (--separator)."
            )
        yield cells


def row_lines(path: Path, form: TextForm, where: str, width: int) -> Iterator[str]:
    """The lines of rows, without the line of names, which is the first that is not blank."""
    is_after = form.names is not None
    for line in lines(path, form, where):
        if is_after and is_row(line, width):
            yield line
        is_after = is_after or is_row(line, 0)


def number_of(cell: str) -> float | None:
    """The number in a cell, with truth values as 0 and 1; NaN if it is empty, None for other texts."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        if _MINUS in cell:
            return number_of(cell.replace(_MINUS, "-"))
        text = cell.strip()
        return math.nan if text in MISSING else _TRUTH.get(text.lower())


def label_of(cell: str, decimal: str | None = None) -> Any:
    """A label: a whole number, another number, a truth value, or a text, such as ``01``."""
    text = with_point(cell).strip() if decimal == "," else cell.strip()
    if NUMBER.fullmatch(text):
        value = float(text)
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return text.lower() == "true" if text.lower() in _TRUTH else cell


def with_point(cell: str) -> str:
    """A cell with a decimal point instead of a comma, and without points between groups of digits."""
    text = cell.strip().replace(_MINUS, "-")
    if _GROUPS.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    return text.replace(",", ".") if _COMMA.fullmatch(text) else cell


def numbers_of(cells: Sequence[str], decimal: str | None) -> tuple[NDArray[np.float64], bool]:
    """The numbers in cells, with NaN for other cells, and whether all other cells are empty."""
    if decimal == ",":  # a point must separate groups of three digits
        pairs = ((with_point(cell), cell) for cell in cells)
        values = [None if text is cell and "." in cell else number_of(text) for text, cell in pairs]
    else:
        values = list(map(number_of, cells))
    return np.array(values, dtype=np.float64), None not in values


def guessed(path: Path, form: TextForm, where: str) -> TextForm:
    """The form of a PUBLIC file. Settings that ``form`` leaves open are guessed from all of its lines."""
    if form.encoding is None:
        for encoding in (None, "cp1252", "latin-1"):  # any bytes are text in the last one
            form = replace(form, encoding=encoding)
            with suppress(FileError):
                for _ in lines(path, form, where):
                    pass
                break
    rows = [line for line in lines(path, form, where) if is_row(line, 0)]
    if form.separator is None and form.of(path).separator != "\t" and rows:
        widths = {mark: _widths(rows, mark, where) for mark in SEPARATORS if mark != form.decimal}
        best = max(widths, key=lambda mark: widths[mark])
        form = replace(form, separator=best if widths[best][1] > 1 else None)
    separator = form.of(path).separator
    if form.decimal is None and separator is not None:
        cells = [cell.strip() for line in rows[1:] for cell in _try_cells(line, separator, where)]
        # Where commas separate cells, a quoted cell may have one between thousands, not as decimal mark.
        cells = [cell for cell in cells if separator != "," or not _THOUSANDS.fullmatch(cell)]
        commas = sum(
            bool(_COMMA.fullmatch(cell) or ("," in cell and _GROUPS.fullmatch(cell))) for cell in cells
        )
        points = sum(bool(_POINT.fullmatch(cell)) for cell in cells)
        form = replace(form, decimal="," if commas > points else ".")
    return form


def _widths(rows: Sequence[str], separator: str, where: str) -> tuple[int, int]:
    """The common number of cells of all lines, 0 if they differ or have one, and that of the first line."""
    widths = [len(_try_cells(line, separator, where)) for line in rows]
    common = widths[0] if len(set(widths)) == 1 and widths[0] > 1 else 0
    return common, widths[0]


def _try_cells(line: str, separator: str, where: str) -> list[str]:
    """The cells of a line; none if the line is refused."""
    try:
        return cells_of(line, separator, where)
    except FileError:
        return []
