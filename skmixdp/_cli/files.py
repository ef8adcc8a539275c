"""Read files as data frames or arrays.

``where`` is how a file is called in messages: its flag and its path. Nothing here unpickles.
"""

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.formats import ArrayFile, TableFile, TextFile, format_of, opened, reading
from .._files.text import TextForm, guessed
from .._utils.process import warn
from .._utils.validation import reason_of
from ..estimators import Typical
from .arguments import Parser
from .messages import InputError

Array = NDArray[Any]

#: How a file for ``--encode`` is written.
_FORM = (
    'like {"numbers": {"age": [0, 120]}, "categories": {"city": ["Bonn", "Ulm"]}, "kinds": {"born": "date"}}'
)
#: The flag for what is known of columns.
SCALE_FLAG = {
    "--scale FILE.json": 'what is known of columns, from prior knowledge: {"age": [45, 15]} for a typical '
    "value and the usual distance from it"
}
_PARTS = ("numbers", "categories", "kinds")


def add_text_to(parser: Parser, otherwise: str) -> None:
    """Declare the arguments for the form of tables that are text."""
    texts = {
        "--separator C": "character between cells, or the word tab",
        "--decimal .|,": "decimal mark",
        "--encoding NAME": "encoding, such as latin-1 or utf-16",
        "--no-header": "no line of names: columns are c1, c2, ...",
    }
    parser.add("tables as text (.csv, .tsv)", texts, about=otherwise)


def text_form(args: argparse.Namespace) -> TextForm:
    """The form of text tables, as far as the arguments state it."""
    return TextForm(args.separator, args.decimal, args.encoding, () if args.no_header else None)


def guessed_form(path: Path, form: TextForm, where: str) -> TextForm:
    """The form of a text table by its content. The table is PUBLIC, or has no guarantee."""
    if not issubclass(format_of(path, where), TextFile):
        return form
    with reading(where):
        spelling = guessed(path, form, where)
    if spelling.encoding != form.encoding:
        warn(
            f"{where} is not written in UTF-8, and is read as {spelling.encoding}; name its encoding by "
            "--encoding."
        )
    return spelling


def is_table(path: Path, where: str) -> bool:
    """Whether the file holds named columns."""
    return issubclass(format_of(path, where), TableFile)


def is_text(path: Path, where: str) -> bool:
    """Whether all cells of the file are texts, so that they have no types."""
    return issubclass(format_of(path, where), TextFile)


def read_table(
    path: Path, where: str, form: TextForm | None = None, wanted: Collection[str | None] = ()
) -> pd.DataFrame:
    """The data frame of a table, without columns of a pandas index, except those that are ``wanted``."""
    file = opened(path, where, form)
    assert isinstance(file, TableFile)
    frame = file.frame().drop(columns=[name for name in file.index if name not in wanted])
    if len(frame) == 0:
        raise InputError(f"{where} has columns and no rows; check that it is the right file.")
    return frame


def read_arrays(path: Path, where: str, names: Sequence[str] = ("X",)) -> dict[str, Array]:
    """The named arrays of a NumPy file. Each file has ``X``."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, ArrayFile)
    return {name: file.read(name) for name in names if name in file.headers}


def read_json(path: Path, where: str, form: str) -> Any:
    """What a JSON file holds; ``form`` says in messages how it is written."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{where} cannot be read ({reason_of(error, 'no JSON')}); {form}.") from None


def shape_of(path: Path, where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the rows in a NumPy file, from its header."""
    file = format_of(path, where)(path, where)
    assert isinstance(file, ArrayFile)
    return file.headers["X"]


def declared_columns(path: Path) -> dict[str, Any]:
    """What ``--encode FILE.json`` declares: bounds, categories and kinds of columns, for their encoder."""
    where = f"--encode {path}"
    parts = read_json(path, where, f"write it {_FORM}")
    if not isinstance(parts, dict) or not parts or set(parts) - set(_PARTS):
        raise InputError(
            f"{where} must have the keys {', '.join(_PARTS)}, or some of them; write it {_FORM}."
        )
    if not all(isinstance(part, dict) for part in parts.values()) or not any(parts.values()):
        raise InputError(f"{where} must map columns to bounds, to values and to kinds; write it {_FORM}.")
    columns: dict[str, Any] = {}
    for part in _PARTS:
        for name, value in parts.get(part, {}).items():
            if name in columns:
                raise InputError(f"{where} names {name!r} twice; keep one of both.")
            is_pair = part == "numbers" and isinstance(value, list)
            columns[name] = tuple(value) if is_pair else value
    return columns


def read_scales(path: Path) -> dict[str, Any]:
    """What ``--scale FILE.json`` declares: a typical value and the usual distance of columns."""
    form = 'write it like {"age": [45, 15]}'
    scales = read_json(path, f"--scale {path}", form)
    pairs = scales.values() if isinstance(scales, dict) else ()
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"--scale {path} must map columns to a typical value and a spread; {form}.")
    return {name: Typical(*pair) for name, pair in scales.items()}
