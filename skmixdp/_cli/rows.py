"""Read rows and labels that an estimator takes from files.

``X`` is a data frame where the file has column names, so that the model keeps them, and an
array elsewhere. Labels are a 1-D array of numbers, truth values or text.
"""

import argparse
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.text import TextForm, number_of, numbers_of, with_point
from .._utils import frames
from .._utils.frames import MISSING, entries_of, is_frame, is_list, names_of_list, stacked_lists
from .._utils.process import warn
from .._utils.validation import check_table, listed, respelt
from ..preprocessing._one_cell import amount_of
from .files import is_table, is_text, read_arrays, read_table
from .labels import labels_of_array, labels_of_column
from .messages import InputError

Array = NDArray[Any]

#: Flags of all rows. Commands choose among them.
ROW_FLAGS = {
    "--private FILE": "private rows",
    "--public FILE": "public rows, with the same features",
    "--label-column NAME": "label column of the tables",
    "--labels FILE": "labels of the private rows (.npy, .csv)",
    "--public-labels FILE": "labels of the public rows (.npy, .csv)",
    "--id NAME": "column of the tables that names rows, to leave aside",
    "--group-column NAME": "column of the private table with ids of persons, all of whose rows are then "
    "protected together",
    "--encode public|FILE.json": "turn columns of tables into numbers, text and dates among them, by what "
    "public rows hold, by declared bounds, categories and kinds, or by both; the model then takes raw tables",
    "--exposure-column NAME": "for counts: column of the tables with the time or number at risk behind each",
}

#: Another remedy for columns that a model does not know.
FIX = ", and leave other columns aside with --label-column, --group-column and --id"


@dataclass(frozen=True, repr=False)
class FileRows:
    """Rows of a file that messages call ``where``, and how ``extract`` made them, if it did.

    Labels ``y`` that are ``spelt`` have no type. ``aside`` has columns that are no features, by their flags.
    """

    X: Any
    where: str
    y: Any = None
    spelt: bool = False
    report: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    names: tuple[str, list[Any]] | None = None
    aside: Mapping[str, Any] = field(default_factory=dict)


def named_columns(args: argparse.Namespace) -> dict[str, str]:
    """Columns that are no features, by the flags that name them."""
    values = {"--label-column": args.label_column, "--id": args.id, "--group-column": args.group_column}
    values |= {"--weight-column": args.weight_column, "--exposure-column": args.exposure_column}
    columns: dict[str, str] = {}
    for flag, name in values.items():
        if name in columns.values():
            first = next(named for named, column in columns.items() if column == name)
            raise InputError(f"{first} and {flag} both name the column {name!r}; name two columns.")
        if name is not None:
            columns[flag] = name
    return columns


def read_rows(
    path: Path,
    flag: str,
    columns: Mapping[str, str],
    form: TextForm,
    labels: tuple[str, Path | None] | None = None,
    *,
    optional: Collection[str] = (),
    raw: bool = False,
    public: Collection[str] | None = None,
    reference: str = "",
    targets: bool = False,
) -> FileRows:
    """Rows of a file, without the ``columns`` that flags name; a ``raw`` table is not converted.

    With ``labels``, a flag and its file, rows have labels from there or from the file itself. Without it,
    columns besides all ``public`` ones are left out. Messages name the ``public`` columns of ``reference``
    alone; None stands for all of the file.
    """
    where = f"{flag} {path}"
    inside, spelt = None, False
    if is_table(path, where):
        label = columns.get("--label-column")
        if labels is not None and (label is None) == (labels[1] is None):
            raise InputError(
                f"{where} is a table, whose labels come from either --label-column or {labels[0]}, "
                f"and {'neither was' if label is None else 'both were'} given; give one of them."
            )
        frame, spelt = read_table(path, where, form, columns.values()), is_text(path, where)
        aside = _take_named_columns(frame, columns, optional, where)
        if labels is not None and label is not None:
            column = f"the label column {label!r} of {where}"
            inside = labels_of_column(aside["--label-column"], column, spelt, targets, form.decimal)
        for number in aside.keys() & {"--weight-column", "--exposure-column"}:
            column = f"the column {columns[number]!r} of {where}"
            aside[number] = labels_of_column(aside[number], column, spelt, True, form.decimal)
        X = _features(frame, where, public, reference, form if spelt else None, raw, labels is None)
        names = (columns["--id"], aside["--id"].tolist()) if "--id" in aside else None
        rows = FileRows(X, where, names=names, aside=aside)
    else:
        if raw:
            raise InputError(f"{where} has no columns, and --encode and its models take tables; give one.")
        _take_named_columns(pd.DataFrame(), columns, {"--label-column", "--id", *optional}, where)
        wanted = ("X", "report", "encoder", *(("files",) if labels is None else ("y",)))
        arrays = read_arrays(path, where, wanted)
        if "y" in arrays:
            inside = labels_of_array(arrays["y"], f"array y of {where}", targets)
        made_by: dict[str, Any] = {name: _json(arrays.get(name)) for name in ("report", "encoder")}
        files = arrays.get("files")
        names = None if files is None or len(files) != len(arrays["X"]) else ("file", files.tolist())
        rows = FileRows(_check_finite(arrays["X"], where), where, names=names, **made_by)
    if labels is None:
        return rows
    y = read_labels(labels, where, inside, form, targets)
    if y is None:
        raise InputError(f"{where} holds no labels; give them in a .npy or .csv file with {labels[0]}.")
    if len(y) != len(rows.X):
        raise InputError(
            f"{where} has {len(rows.X)} rows and {len(y)} labels; give one label for each row (a CSV "
            "file starts with a line of names)."
        )
    return replace(rows, y=y, spelt=spelt if labels[1] is None else is_text(labels[1], labels[0]))


def _take_named_columns(
    frame: pd.DataFrame, columns: Mapping[str, str], optional: Collection[str], where: str
) -> dict[str, Any]:
    """The columns that flags name, which are taken out of the table."""
    n_columns, aside = frame.shape[1], {}
    for flag, name in columns.items():
        if name in frame.columns:
            aside[flag] = frame.pop(name)
        elif flag not in optional:
            remedy = f"name one of its {n_columns} columns, whose names are in the first line of a CSV file"
            raise InputError(
                f"{flag} {name!r} is not a column of {where}; {respelt(name, frame.columns, remedy)}"
            )
    return aside


def only_for_tables(args: argparse.Namespace, what: str) -> None:
    """Refuse flags that name columns where there are none."""
    for flag, column in named_columns(args).items():
        raise InputError(f"{flag} {column!r} is for tables and {what}; drop it.")


def align(X: Any, names: Collection[str], where: str, reference: str, fix: str = "") -> Any:
    """A data frame with its columns in the order of ``names``, which are public; others are refused."""
    missing = [name for name in names if name not in X.columns]
    others = len(set(X.columns) - set(names))
    if missing or others:
        absent = f"column {missing[0]!r}" if len(missing) == 1 else f"the columns {listed(missing)}"
        differences = [f"lacks {absent}"] if missing else []
        # Other names are not shown, since in a file without a header they are entries of a row.
        differences += [f"has {others} other column{'s' if others > 1 else ''} besides"] if others else []
        raise InputError(
            f"{where}, compared with {reference}, {' and '.join(differences)}; give it the same feature "
            f"columns, by the names in its first line if it is a CSV file (their order may differ){fix}."
        )
    return X[list(names)]


def align_columns(private: FileRows, public: FileRows) -> FileRows:
    """Public rows whose columns are those of the private rows, in their order, by the same network."""
    check_same_network(private.report, public.report, f"{public.where} and {private.where}")
    if not (is_frame(private.X) and is_frame(public.X)):
        return public
    align(private.X, [*public.X.columns], private.where, public.where)
    return replace(public, X=public.X[[*private.X.columns]])


def check_same_network(first: dict[str, Any] | None, second: dict[str, Any] | None, what: str) -> None:
    """Refuse rows (``what`` in messages) that ``extract`` made by different networks."""
    if first is None or second is None:
        return
    # Settings that change rows by rounding only.
    free = {"device", "dtype", "precision"}
    left, right = (
        {key: value for key, value in report.items() if key not in free} for report in (first, second)
    )
    for report in (left, right):
        if isinstance(weights := report.get("weights"), dict):
            report["weights"] = weights.get("sha256")
    different = sorted(key for key in left.keys() | right.keys() if left.get(key) != right.get(key))
    if different:
        raise InputError(
            f"{what} were extracted with different settings ({', '.join(different)}); extract both in the "
            "same way."
        )


def _json(text: Array | None) -> dict[str, Any] | None:
    """The JSON object that ``extract`` wrote; None for any other text."""
    try:
        value = json.loads(str(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_labels(
    labels: tuple[str, Path | None], where: str, inside: Array | None, form: TextForm, targets: bool = False
) -> Array | None:
    """Labels from the file of the rows, or from the label file of a flag; None without both."""
    flag, path = labels
    if path is None:
        return inside
    if inside is not None:
        raise InputError(f"{where} holds its labels in array y and {flag} {path} was given too; drop one.")
    where = f"{flag} {path}"
    if path.suffix.lower() == ".npz":
        raise InputError(f"{where} must be a .npy file or a table of one column; save the labels alone.")
    if not is_table(path, where):
        return labels_of_array(read_arrays(path, where)["X"], where, targets)
    frame = read_table(path, where, form)
    if frame.shape[1] != 1:
        raise InputError(f"{where} has {frame.shape[1]} columns; keep the label column alone.")
    return labels_of_column(frame.iloc[:, 0], where, is_text(path, where), targets, form.decimal)


def _features(
    frame: pd.DataFrame,
    where: str,
    public: Collection[str] | None,
    reference: str,
    form: TextForm | None,
    raw: bool,
    leaves_out: bool,
) -> Any:
    """Finite floats; a ``raw`` table keeps its cells, with gaps and decimal points in texts of a ``form``."""
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        cells: Any = column if raw else _numbers(column, f"the column {name!r} of {where}", form)
        if cells is not None and cells.ndim == 2:
            columns.update(zip(names_of_list(name, cells.shape[1]), cells.T, strict=True))
        else:
            columns[str(name)] = cells
    public = [*columns] if public is None else public
    others = [name for name in columns if name not in public]
    if leaves_out and others and public and set(public) <= columns.keys():
        warn(f"{where} has columns besides those of {reference}, {listed(others)}; they are left out.")
        columns = {name: columns[name] for name in columns if name in public}
    if raw:
        cells = frame[[*columns]]
        if form is None:
            return cells
        pointed = cells.map(_with_point) if form.decimal == "," else cells
        return pointed.mask(pointed.map(lambda cell: cell.strip() in MISSING))
    text = [name for name, values in columns.items() if values is None]
    if text:
        # Private names are replaced by places, since in a file without a header they are entries of a row.
        named = all(name in public for name in text)
        if reference and not named:
            align(pd.DataFrame(columns=[*columns]), public, where, reference, FIX)  # names missing columns
        places = [place for place, name in enumerate(columns, start=1) if name in text]
        which = listed(text) if named else f"at the places {listed(places)}"
        raise InputError(
            f"{where} has feature columns that are not numbers, {which}; leave names of rows aside with "
            "--id, and encode text with `fit --encode`"
            f"{'' if form is None else ' (a decimal comma is named by --decimal)'}."
        )
    values = np.column_stack([*columns.values()]) if columns else np.empty((len(frame), 0))
    return pd.DataFrame(_check_finite(values, where), columns=[*columns])


def _numbers(column: "pd.Series[Any]", what: str, form: TextForm | None) -> Array | None:
    """A column as numbers, with NaN where one is missing, lists as rows of them; None for other cells."""
    if form is not None:
        values, numeric = numbers_of(column.tolist(), form.decimal)
        return values if numeric else None
    if is_list(column):
        return stacked_lists(column, what)
    numbers = frames.numbers_of(column)
    return None if numbers is None or numbers.dtype.kind in "mM" else numbers


def _with_point(cell: str) -> str:
    """A cell with a decimal point, also that of an amount."""
    pointed = with_point(cell)
    if pointed is not cell or number_of(cell) is not None or not ("," in cell or "." in cell):
        return pointed
    value = amount_of(cell, comma=True)
    return repr(value) if value == value else cell


def _check_finite(X: Array, where: str) -> Array:
    """A finite array of numbers with at least one row and one column."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"{where} holds {entries_of(X.dtype)} of shape {X.shape}; save a 2-D array of real "
            "numbers, one row per sample."
        )
    return check_table(X, where, minimum=1)
