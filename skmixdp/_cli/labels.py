"""Labels of rows: declared or public classes decide what they are, and private labels never do.

Text does not tell whether ``2`` is a number. The declared classes, or else the public labels, decide that for
all of them. Each private label is then one of these classes, or is refused.
"""

import csv
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._files.text import NUMBER, numbers_of
from .._utils.frames import entries_of
from .._utils.validation import listed
from .messages import InputError

Array = NDArray[Any]

#: Whole numbers of at most 15 digits; a code such as 01 is a text.
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,14})(\.0*)?")
_TRUTH = {"true": True, "false": False}


def labels_of_column(
    column: "pd.Series[Any]", where: str, spelt: bool, targets: bool = False, decimal: str | None = None
) -> Array:
    """Labels, or ``targets``, of a column of a table; those of a text table stay as they are ``spelt``."""
    if (column.isna() | (column.str.strip() == "" if spelt else False)).any():
        raise InputError(f"{where} has empty cells; fill them or remove their rows.")
    values = column.tolist()
    if not spelt:
        return labels_of_array(np.asarray(values), where, targets)
    if not targets:
        return np.asarray(values, dtype=str)
    numbers, numeric = numbers_of(values, decimal)
    return labels_of_array(numbers if numeric else np.asarray(values, dtype=str), where, targets)


def labels_of_array(y: Array, where: str, targets: bool = False) -> Array:
    """A 1-D array of labels, or of ``targets``; an array of one column is made 1-D."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if targets:
        if y.ndim != 1 or y.dtype.kind not in "iuf" or not np.isfinite(y).all():
            raise InputError(
                f"{where} holds {entries_of(y.dtype)} of shape {y.shape}; save 1-D finite numbers."
            )
        return y.astype(np.float64)
    if y.ndim != 1 or y.dtype.kind not in "biufU":
        raise InputError(
            f"{where} holds {entries_of(y.dtype)} of shape {y.shape}; save labels as a 1-D array of whole "
            "numbers or text."
        )
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.floor(y))).all():
        raise _not_whole_error(where)
    return y


def typed_labels(y: Array, where: str) -> Array:
    """Labels of a text table: whole numbers or truth values if all labels are, otherwise texts."""
    texts = [text.strip() for text in y.tolist()]
    if all(_WHOLE.fullmatch(text) for text in texts):
        return np.array([int(float(text)) for text in texts])
    if all(text.lower() in _TRUTH for text in texts):
        return np.array([_TRUTH[text.lower()] for text in texts])
    if all(NUMBER.fullmatch(text) for text in texts) and not all(float(text).is_integer() for text in texts):
        raise _not_whole_error(where)
    return y


def _not_whole_error(where: str) -> InputError:
    return InputError(
        f"{where} holds numbers that are not whole; write class labels as whole numbers or text."
    )


def as_classes(
    y: Array,
    classes: Array,
    where: str,
    source: str,
    remedy: str = "name every class in --classes",
    *,
    private: bool = False,
) -> Array:
    """Labels as entries of ``classes``, which come from ``source``; spelling decides, and types do not."""
    cells = y.tolist()
    places = [*map(_places_in(classes), cells)]
    if None in places:
        # No message names a private label or its row.
        label = "a label" if private else f"the label {cells[places.index(None)]!r}"
        raise InputError(
            f"{where} holds {label}, which is not one of the classes {listed(classes.tolist())} ({source}); "
            f"{remedy}."
        )
    return classes[np.array(places, dtype=np.intp)]


def _places_in(classes: Array) -> Callable[[Any], int | None]:
    """A function from a label to the place of its class, by its spelling; None for another label."""
    texts = [_label_text(value) for value in classes.tolist()]
    places = dict(zip(texts, range(len(texts)), strict=True))
    stripped = [text.strip() for text in texts]
    bare = {text: place for place, text in enumerate(stripped) if stripped.count(text) == 1}

    def place_of(cell: Any) -> int | None:
        text = _label_text(cell)
        if text in places:
            return places[text]
        text = text.strip()
        if classes.dtype.kind in "iuf" and NUMBER.fullmatch(text):
            text = _label_text(float(text))
        elif classes.dtype.kind == "b":
            text = text.capitalize()
        return bare.get(text)

    return place_of


def _label_text(value: Any) -> str:
    """The spelling of a label; whole numbers have no point."""
    if isinstance(value, Real) and not isinstance(value, (bool, Integral)):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def read_classes(text: str, public: Array | None) -> Array:
    """The classes in ``--classes``, of the type of ``public`` labels if these have types."""
    names = _names(text, "--classes", "name,name,name", strict=True)
    if not all(names):
        raise InputError(f"--classes {text!r} has an empty name; write it as name,name,name.")
    classes = np.array(names)
    if public is None:
        return typed_labels(classes, f"--classes {text!r}")
    if public.dtype.kind == "U":
        return classes
    try:
        if public.dtype.kind == "b":
            return np.array([_TRUTH[name.lower()] for name in names])
        return np.array([float(name) if public.dtype.kind == "f" else int(name) for name in names])
    except (KeyError, ValueError, OverflowError):
        kind = "True or False" if public.dtype.kind == "b" else "numbers"
        raise InputError(
            f"--classes {text!r} does not fit the public labels, which are {kind}; write the classes in the "
            "same way."
        ) from None


def read_weights(text: str, classes: Array) -> Any:
    """``--class-weight``: "balanced", or weights of some of the ``classes``."""
    if text == "balanced":
        return text
    place_of, weights = _places_in(classes), {}
    for name, weight in read_pairs(text, "--class-weight", "A=1,B=5"):
        place = place_of(name)
        if place is None:
            raise InputError(
                f"--class-weight {text!r} names {name!r}, which is not one of the classes "
                f"{listed(classes.tolist())}; write it as one of them."
            )
        try:
            weights[classes[place].item()] = float(weight)
        except ValueError:
            raise InputError(
                f"--class-weight {text!r} must end each class in a number, as A=1,B=5."
            ) from None
    return weights


def read_pairs(text: str, flag: str, example: str) -> list[tuple[str, str]]:
    """Names and what follows their equals signs."""
    pairs = [item.rpartition("=") for item in _names(text, flag, example, strict=False)]
    if not all(name and value for name, _, value in pairs):
        raise InputError(f"{flag} {text!r} must be pairs such as {example}.")
    return [(name.rstrip(), value.strip()) for name, _, value in pairs]


def _names(text: str, flag: str, form: str, *, strict: bool) -> list[str]:
    """Names between commas; one in double quotes may hold commas, and two quotes for one."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=strict)
    except (csv.Error, ValueError):
        raise InputError(
            f"{flag} {text!r} cannot be read; write it as {form}, with double quotes around a name "
            "that holds a comma or a quote, and two quotes for one."
        ) from None
    return [name.rstrip() for name in names]
