"""Read rows and labels that an estimator takes from files.

``X`` is a data frame where the file has column names, so that the model keeps them, and an
array elsewhere. Labels are a 1-D array of numbers, truth values or text.
"""

import argparse
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.text import TextForm, number_of, numbers_of, with_point
from .._utils.frames import MISSING, entries_of, is_list, letter_of, names_of_list, stacked_lists
from .._utils.process import warn
from .._utils.validation import listed, respelt
from ..preprocessing._one_cell import amount_of
from .files import is_table, is_text, read_arrays, read_table
from .labels import labels_of_array, labels_of_column
from .messages import InputError

Array = NDArray[Any]

#: Another remedy for columns that a model does not know.
FIX = ", and leave other columns aside with --label-column, --group-column and --id"


#: A reason why cells of a text table may be no numbers.
COMMAS = " (a decimal comma is named by --decimal)"


@dataclass(frozen=True, repr=False)
class FileRows:
    """Labelled rows of a file that messages call ``where``, and how ``extract`` made them, if it did.

    Labels are ``spelt`` in a table of text, which does not tell their type. ``groups`` is the column of
    persons, ``weights`` (n_rows,) that of weights and ``exposures`` (n_rows,) that of exposures; None without
    one.
    """

    X: Any
    y: Array
    where: str
    spelt: bool = False
    report: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    groups: Any = None
    weights: Array | None = None
    exposures: Array | None = None


@dataclass(frozen=True, repr=False)
class Unlabelled:
    """Rows without labels; ``names`` are the name of the column of row names and its entries."""

    X: Any
    names: tuple[str, list[Any]] | None
    report: dict[str, Any] | None = None


def read_labelled(
    path: Path,
    flag: str,
    label_column: str | None,
    labels: Path | None,
    labels_flag: str,
    form: TextForm,
    *,
    id_column: str | None = None,
    group_column: str | None = None,
    weight_column: str | None = None,
    exposure_column: str | None = None,
    raw: bool = False,
    public: Collection[str] | None = None,
    reference: str = "",
    targets: bool = False,
) -> FileRows:
    """Rows with their labels, from the same file or a label file; a ``raw`` table is not converted.

    Messages name the columns that are ``public``, which ``reference`` has; None stands for all columns of the
    file. Labels are ``targets`` of a regression, or classes.
    """
    where = f"{flag} {path}"
    report = encoder = groups = None
    of_rows: dict[str, Any] = {"weight": weight_column, "exposure": exposure_column}
    numbers: dict[str, Array] = {}
    spelt = False
    if is_table(path, where):
        if (label_column is None) == (labels is None):
            raise InputError(
                f"{where} is a table, whose labels come from either --label-column or {labels_flag}, "
                f"and {'neither was' if labels is None else 'both were'} given; give one of them."
            )
        frame = read_table(path, where, form, (label_column, id_column, group_column, *of_rows.values()))
        spelt = is_text(path, where)
        if group_column is not None and group_column in frame.columns:
            groups, frame = frame[group_column], frame.drop(columns=group_column)
        for what, name in of_rows.items():
            if name is not None and name in frame.columns:
                column = f"the {what} column {name!r} of {where}"
                numbers[what] = labels_of_column(frame[name], column, spelt, True, form.decimal)
                frame = frame.drop(columns=name)
        if id_column is not None:
            frame, _ = _without_ids(frame, id_column, where)
        inside = None
        if label_column is not None:
            if label_column not in frame.columns:
                remedy = (
                    f"name one of its {frame.shape[1]} columns, whose names must be in its first line if it "
                    "is a CSV file"
                )
                raise InputError(
                    f"--label-column {label_column!r} is not a column of {where}; "
                    f"{respelt(label_column, frame.columns, remedy)}"
                )
            column = f"the label column {label_column!r} of {where}"
            inside = labels_of_column(frame[label_column], column, spelt, targets, form.decimal)
            frame = frame.drop(columns=label_column)
        frame = frame if raw or spelt else _split_lists(frame, where)
        names = frame.columns if public is None else public
        X = _features(frame, where, names, reference, form if spelt else None, raw)
    else:
        if raw:
            raise InputError(f"--encode is for tables and {where} has no columns; leave it out.")
        arrays = read_arrays(path, where, ("X", "y", "report", "encoder"))
        inside = labels_of_array(arrays["y"], f"array y of {where}", targets) if "y" in arrays else None
        report, encoder = (_json(arrays.get(name)) for name in ("report", "encoder"))
        X = _array_features(arrays["X"], where)
    y = read_labels(labels, labels_flag, where, inside, form, targets)
    spelt = spelt if labels is None else is_text(labels, labels_flag)
    if y is None:
        raise InputError(f"{where} holds no labels; give them in a .npy or .csv file with {labels_flag}.")
    if len(y) != len(X):
        raise InputError(
            f"{where} has {len(X)} rows and {len(y)} labels; give one label for each row (a CSV "
            "file starts with a line of names)."
        )
    for what, name in of_rows.items():
        if name is not None and what not in numbers:
            raise InputError(f"--{what}-column {name!r} is no column of {where}; name the column of {what}s.")
    # ``public`` is None for the file of public rows, which may lack ids.
    if public is not None and group_column is not None and groups is None:
        raise InputError(f"--group-column {group_column!r} is no column of {where}; name the column of ids.")
    return FileRows(
        X, y, where, spelt, report, encoder, groups, numbers.get("weight"), numbers.get("exposure")
    )


def only_for_tables(args: argparse.Namespace, what: str) -> None:
    """Refuse flags that name columns where there are none."""
    named = ("--label-column", args.label_column), ("--id", args.id), ("--group-column", args.group_column)
    for flag, column in named:
        if column is not None:
            raise InputError(f"{flag} {column!r} is for tables and {what}; drop it.")


def read_unlabelled(
    path: Path,
    where: str,
    left_aside: Sequence[str | None],
    form: TextForm,
    id_column: str | None = None,
    *,
    raw: bool,
    public: Collection[str] | None = None,
    reference: str = "",
) -> Unlabelled:
    """Rows without labels; the columns ``left_aside`` and an array y are not read.

    Messages name the columns that are ``public``, which ``reference`` has; None stands for all of the file.
    Of a table that has all public columns, others are left out with a warning.
    """
    if is_table(path, where):
        frame = read_table(path, where, form, (id_column,))
        frame = frame.drop(columns=[name for name in left_aside if name in frame.columns])
        names = None
        if id_column is not None:
            frame, ids = _without_ids(frame, id_column, where)
            names = id_column, ids.tolist()
        spelt = is_text(path, where)
        frame = frame if raw or spelt else _split_lists(frame, where)
        expected = [*frame.columns] if public is None else public
        others = [name for name in frame.columns if name not in expected]
        if others and expected and set(expected) <= set(frame.columns):
            warn(f"{where} has columns besides those of {reference}, {listed(others)}; they are left out.")
            frame = frame.drop(columns=others)
        X = _features(frame, where, expected, reference, form if spelt else None, raw)
        return Unlabelled(X, names)
    if raw:
        raise InputError(f"{where} has no columns, and the model encodes raw tables; give a table.")
    arrays = read_arrays(path, where, ("X", "files", "report"))
    files = arrays.get("files")
    names = None if files is None or len(files) != len(arrays["X"]) else ("file", files.tolist())
    return Unlabelled(_array_features(arrays["X"], where), names, _json(arrays.get("report")))


def _without_ids(frame: pd.DataFrame, id_column: str, where: str) -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """A table without the column of identifiers, and that column."""
    if id_column not in frame.columns:
        remedy = respelt(id_column, frame.columns, f"name one of its {frame.shape[1]} columns")
        raise InputError(f"--id {id_column!r} is not a column of {where}; {remedy}")
    return frame.drop(columns=id_column), frame[id_column]


def align(X: Any, names: Collection[str], where: str, reference: str, fix: str = "") -> Any:
    """A data frame with its columns in the order of ``names``, which are public; others are refused."""
    missing = [name for name in names if name not in X.columns]
    others = len(set(X.columns) - set(names))
    if missing or others:
        differences = [f"lacks {_columns(missing)}"] if missing else []
        # Other names are not shown, since in a file without a header they are entries of a row.
        differences += [f"has {others} other column{'s' if others > 1 else ''} besides"] if others else []
        raise InputError(
            f"{where}, compared with {reference}, {' and '.join(differences)}; give it the same feature "
            f"columns, by the names in its first line if it is a CSV file (their order may differ){fix}."
        )
    return X[list(names)]


def _columns(names: Sequence[str]) -> str:
    """Public names of columns, for a message."""
    return f"column {names[0]!r}" if len(names) == 1 else f"the columns {listed(names)}"


def check_together(private: FileRows, public: FileRows | None) -> None:
    """Check that private and public rows have the same features."""
    if public is None:
        return
    if private.X.shape[1] != public.X.shape[1]:
        raise InputError(
            f"{public.where} has {public.X.shape[1]} features and {private.where} has "
            f"{private.X.shape[1]}; make both by the same feature extraction."
        )
    if private.report is not None and public.report is not None:
        check_same_network(private.report, public.report, f"{public.where} and {private.where}")


def check_same_network(first: dict[str, Any], second: dict[str, Any], what: str) -> None:
    """Refuse rows (``what`` in messages) that ``extract`` made by different networks."""
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
    labels: Path | None, flag: str, where: str, inside: Array | None, form: TextForm, targets: bool = False
) -> Array | None:
    """Labels from the file of the rows, or from the label file of ``flag``; None without both."""
    if labels is None:
        return inside
    if inside is not None:
        raise InputError(f"{where} holds its labels in array y and {flag} {labels} was given too; drop one.")
    where = f"{flag} {labels}"
    if labels.suffix.lower() == ".npz":
        raise InputError(f"{where} must be a .npy file or a table of one column; save the labels alone.")
    if not is_table(labels, where):
        return labels_of_array(read_arrays(labels, where)["X"], where, targets)
    frame = read_table(labels, where, form)
    if frame.shape[1] != 1:
        raise InputError(f"{where} has {frame.shape[1]} columns; keep the label column alone.")
    return labels_of_column(frame.iloc[:, 0], where, is_text(labels, where), targets, form.decimal)


def _split_lists(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """A table with a column for each entry of a list of numbers."""
    parts: list[pd.DataFrame] = []
    for name, column in frame.items():
        if not is_list(column):
            parts.append(column.to_frame())
            continue
        try:
            rows = stacked_lists(column, f"the column {name!r} of {where}")
        except ValueError as error:
            raise InputError(str(error)) from None
        parts.append(pd.DataFrame(rows, columns=names_of_list(name, rows.shape[1]), index=frame.index))
    return pd.concat(parts, axis=1) if parts else frame


def _features(
    frame: pd.DataFrame, where: str, public: Collection[str], reference: str, form: TextForm | None, raw: bool
) -> Any:
    """Finite floats; a ``raw`` table keeps its cells, with gaps and decimal points in texts of a ``form``.

    Messages name columns that are ``public``, which ``reference`` has.
    """
    if raw:
        if form is None:
            return frame
        pointed = frame.map(_with_point) if form.decimal == "," else frame
        return pointed.mask(pointed.map(lambda cell: cell.strip() in MISSING))
    read = {}
    for name in frame.columns:
        if form is None:
            read[name] = _floats(frame[name])
        else:
            values, numeric = numbers_of(frame[name].tolist(), form.decimal)
            read[name] = values if numeric else None
    text = [name for name, values in read.items() if values is None]
    if text:
        # Private names are replaced by places, since in a file without a header they are entries of a row.
        named = all(name in public for name in text)
        if reference and not named:
            align(frame, public, where, reference, FIX)  # raises an error that names missing public columns
        places = [place for place, name in enumerate(frame.columns, start=1) if name in text]
        which = listed(text) if named else f"at the places {listed(places)}"
        raise InputError(
            f"{where} has feature columns that are not numbers, {which}; leave names of rows aside with "
            f"--id, and encode text with `fit --encode`{'' if form is None else COMMAS}."
        )
    columns = [values for values in read.values() if values is not None]
    values = np.column_stack(columns) if columns else np.empty(frame.shape)
    return pd.DataFrame(_array_features(values, where), columns=frame.columns)


def _with_point(cell: str) -> str:
    """A cell with a decimal point, also that of an amount."""
    pointed = with_point(cell)
    if pointed is not cell or number_of(cell) is not None or not ("," in cell or "." in cell):
        return pointed
    value = amount_of(cell, comma=True)
    return repr(value) if value == value else cell


def _floats(column: "pd.Series[Any]") -> Array | None:
    """A column as float64, with NaN where a number is missing; None if it is not numeric."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and letter_of(dtype) != "c":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    # Objects: decimals, and whole numbers and truth values with gaps, which NumPy has no type for.
    kind = pd.api.types.infer_dtype(column, skipna=True) if dtype.kind == "O" else ""
    if kind in ("integer", "boolean", "decimal"):
        return np.array([np.nan if cell is None else float(cell) for cell in column], dtype=np.float64)
    return None


def _array_features(X: Array, where: str) -> Array:
    """A finite array of numbers with at least one row and one column."""
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"{where} holds {entries_of(X.dtype)} of shape {X.shape}; save a 2-D array of real "
            "numbers, one row per sample."
        )
    if 0 in X.shape:
        raise InputError(
            f"{where} has {X.shape[0]} rows and {X.shape[1]} feature columns; add what is missing."
        )
    if not np.isfinite(X).all():
        raise InputError(
            f"{where} has empty or infinite values; remove their rows, or fill them with a value computed "
            "from public rows."
        )
    return X
