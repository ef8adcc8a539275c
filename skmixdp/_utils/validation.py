"""Checks of parameters and of rows.

**Parameters.** A class lists the allowed values of its parameters in a table and calls :func:`check_params`.
A function calls :func:`check` for one parameter. A NumPy number counts as a number; a bool does not, since
``n_steps=True`` is a mistake.

**Rows.** Some errors of scikit-learn and NumPy quote entries of a table ("could not convert string to float:
'Smith'"), which may be private. The messages here depend only on shapes, types and the check that failed.
They never name an entry, a row number, or the number of rows that failed.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from .frames import (
    ENCODE,
    dtype_of,
    is_arrow,
    is_compact,
    is_frame,
    is_plain,
    letter_of,
    numbers_of,
    numeric_frame,
)
from .models import names_of_features
from .process import LEFT_OUT, warn

Array = NDArray[Any]


@dataclass(frozen=True)
class Number:
    """A real number between two bounds."""

    text: str  # in messages
    low: float = -math.inf
    high: float = math.inf
    closed: str = "neither"  # which bounds are allowed: "neither", "left", "right" or "both"
    whole: bool = False  # whether it must be an integer; ``2.0`` is not one

    def admits(self, value: object) -> bool:
        if (number := as_float(value)) is None or (self.whole and not isinstance(value, Integral)):
            return False
        if not isinstance(value, float) and isinstance(value, Integral):
            number = int(value)  # exact, since a float would be rounded beyond 2**53
        above = number > self.low or (self.closed in ("left", "both") and number == self.low)
        below = number < self.high or (self.closed in ("right", "both") and number == self.high)
        return bool(above and below)


@dataclass(frozen=True)
class Kind:
    """Values that a function accepts, such as objects with a certain method."""

    text: str
    admits: Callable[[Any], bool]


POSITIVE = Number("a positive finite number", low=0)
#: Squares of a clip and of its noise must not overflow.
CLIP = Number("a positive finite number up to 1e100", low=0, high=1e100, closed="right")
#: Differences of gradients of float32 rows are rounded in units of the smallest subnormal number. With
#: thresholds from this bound on, that is negligible for rows of any length.
CLIP_OF_DIFFERENCES = Number("a finite number from 1e-6 to 1e100", low=1e-6, high=1e100, closed="both")
NON_NEGATIVE = Number("a non-negative finite number", low=0, closed="left")
FRACTION = Number("a number from 0 to 1", low=0, high=1, closed="both")
PROBABILITY = Number("a number strictly between 0 and 1", low=0, high=1)
#: Integers up to 2**53 are exact as floats, so that counts are not rounded in products.
COUNT = Number("a whole number of at least 1", low=1, high=2**53, closed="both", whole=True)
FLAG = Kind("True or False", lambda value: isinstance(value, (bool, np.bool_)))
SEED = Kind(
    "None for private noise, or a non-negative whole number or numpy RandomState for a reproducible run that "
    "is NOT private",
    lambda value: (
        value is None or isinstance(value, np.random.RandomState) or Number("", -1, whole=True).admits(value)
    ),
)

#: A rule, or an allowed constant (a string or None).
Allowed = Number | Kind | str | None


def whole_from(low: int) -> Number:
    """Integers of at least ``low``."""
    return Number(f"a whole number of at least {low}", low=low, high=2**53, closed="both", whole=True)


def number(low: float, high: float = math.inf, *, closed: str = "neither") -> Number:
    """Real numbers between two bounds, with a message that names the bounds."""
    first = f"{'at least' if closed in ('left', 'both') else 'above'} {low:g}"
    last = f" and {'at most' if closed in ('right', 'both') else 'below'} {high:g}" if high < math.inf else ""
    return Number(f"a number {first}{last}", low, high, closed)


def check(name: str, value: object, *allowed: Allowed, remedy: str = "", owner: str = "") -> None:
    """Refuse a parameter that no rule in ``allowed`` admits, by a ValueError with its name and value.

    The message names the class that is the ``owner`` of the parameter, and ends with a ``remedy``.
    """
    for rule in allowed:
        if isinstance(rule, (Number, Kind)):
            admitted = rule.admits(value)
        else:
            admitted = value is rule or (isinstance(value, str) and value == rule)
        if admitted:
            return
    owned = f" of {owner}" if owner else ""
    end = f"; {remedy}" if remedy else ""
    raise ValueError(f"{name}={shown(value)}{owned} must be {either(allowed)}{end}.")


def check_params(
    owner: object, table: Mapping[str, tuple[Allowed, ...]], *, named: bool = False
) -> dict[str, Any]:
    """The attributes of an object, checked against a table of allowed values; messages may name its class.

    NumPy numbers become Python numbers, since arithmetic in a narrow type would round sensitivities.
    """
    values = {}
    for name, allowed in table.items():
        value = getattr(owner, name)
        check(name, value, *allowed, owner=type(owner).__name__ if named else "")
        if isinstance(value, (bool, np.bool_)):
            value = bool(value)
        elif isinstance(value, Integral):
            value = int(value)
        elif isinstance(value, Real):
            value = float(value)
        values[name] = value
    return values


def as_float(value: object) -> float | None:
    """A real number as a float; None for other values and for numbers that overflow."""
    if isinstance(value, float):  # known sooner than Real, which ledgers ask often
        return float(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def either(allowed: tuple[Allowed, ...]) -> str:
    """The rules as text. Three or more constants alone follow "one of"."""
    words: list[str] = []
    for rule in allowed:
        if rule is FLAG:
            words += ["True", "False"]
        else:
            words.append(rule.text if isinstance(rule, (Number, Kind)) else repr(rule))
    if len(words) > 2 and all(isinstance(rule, str) for rule in allowed):
        return f"one of {', '.join(words)}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def suggestion(name: str, candidates: Iterable[str], n: int = 1) -> str:
    """A text such as ``"did you mean X_pub"`` with up to ``n`` similar names; empty if no name is similar."""
    plain, word = {_letters(each): each for each in candidates}, _letters(name)
    begun = [each for each in plain if len(word) > 2 and each.startswith(word)]
    close = list(dict.fromkeys(begun + difflib.get_close_matches(word, plain, n=n, cutoff=0.7)))[:n]
    return f"did you mean {' or '.join(plain[each] for each in close)}" if close else ""


def respelt(name: object, candidates: Iterable[object], otherwise: str) -> str:
    """A remedy for the name of a column: one of the same letters, which quotes nothing else, or another."""
    names = [str(each) for each in candidates if _letters(str(each)) == _letters(str(name))]
    return f"did you mean {names[0]!r}?" if names else f"{otherwise}."


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def refuse_arguments(owner: object, unsupported: Iterable[str], takes: Iterable[str], otherwise: str) -> None:
    """Refuse unknown names of arguments by a TypeError that suggests the closest that ``fit`` takes."""
    names, takes = sorted(unsupported), tuple(takes)
    if not names:
        return
    hint = next(filter(None, (suggestion(name, takes) for name in names)), None)
    remedy = f"{hint}?" if hint else f"{otherwise}."
    raise TypeError(f"fit of {type(owner).__name__} does not accept {', '.join(names)}; {remedy}")


def printable(text: str) -> str:
    """A text with escapes for control and formatting characters, so that it stays in one line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def one_line(text: str, limit: int = 300) -> str:
    """A text in one line of at most ``limit`` characters, with escapes for control characters."""
    if not text.isprintable():
        text = printable(" ".join(text.split()))
    return text if len(text) <= limit else f"{text[: limit - 15]} ... {text[-10:]}"


def shown(value: object) -> str:
    """A value as Python writes it, in one printable line of at most 200 characters, for a message."""
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4,300 digits, or an object whose repr fails
        text = f"a value of type {type(value).__name__}"
    return one_line(text, 200)


def reason_of(error: Exception, otherwise: str) -> str:
    """Why the system could not open or read a file, or what else went wrong."""
    return (error.strerror if isinstance(error, OSError) else None) or otherwise


def listed(values: Any, limit: int = 8) -> str:
    """The first values of a list or array, for a message."""
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return f"[{', '.join(map(shown, values[:limit]))}{', ...' if len(values) > limit else ''}]"


# -- rows --------------------------------------------------------------------------------


def passed(*checks: str) -> str:
    """Text for the report: these checks of private rows, at least two, whose outcome is treated as public."""
    return f"that they could be read, and their {', '.join(checks[:-1])} and {checks[-1]} passed validation"


#: Entries that are checked at a time, so that what is found of them stays in cache.
_CHECKED_ENTRIES = 2**18
#: Rows of a frame that are converted at a time.
_CONVERTED_ROWS = 2**12

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@np.errstate(all="ignore")  # a warning or error of NumPy could reveal tiny or huge rows
def check_table(X: Any, name: str, *, minimum: int, finite: bool = True, compact: bool = False) -> Array:
    """A float table of at least ``minimum`` rows; a ``compact`` one may hold a frame of float32 as it is."""
    # An array that is already right is kept: for predictions of one row, conversions take most of the time.
    table = X if type(X) is np.ndarray and X.dtype in _FLOATS else _as_floats(X, name, compact)
    if table.ndim != 2:
        raise ValueError(
            f"{name} has shape {table.shape}, not (n_samples, n_features); Reshape your data to a table, "
            f"{'a single row by reshape(1, -1)' if table.ndim == 1 else 'one row for each sample'}."
        )
    check_size(table.shape, name, minimum)
    if finite:
        step = max(_CHECKED_ENTRIES // table.shape[1], 1)
        parts = (np.isfinite(table[i : i + step]).all(axis=0) for i in range(0, len(table), step))
        is_finite = np.logical_and.reduce(list(parts))
        check_finite(is_finite.all(), name, X.columns[~is_finite] if isinstance(X, pd.DataFrame) else ())
    return np.asarray(table)


def check_size(shape: tuple[int, ...], name: str, minimum: int) -> None:
    """Refuse tables of fewer rows than the ``minimum``, or without features."""
    if shape[0] < minimum:
        raise ValueError(
            f"{name} has {shape[0]} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    if shape[1] == 0:
        raise ValueError(f"{name} has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def is_single(X: object) -> bool:
    """Whether rows are an array that was declared as float32."""
    # A frame declares no type: pandas and others choose that of a column by all of its cells, so one private
    # cell may choose it. So NumPy chooses the type of lists.
    dtype = "" if is_frame(X) else str(dtype_of(X))
    return dtype.removeprefix("torch.") == "float32"


def with_float_columns(X: Any) -> Any:
    """A table of pandas, polars or pyarrow with float64 instead of other numbers; all else unchanged."""
    if isinstance(X, pd.DataFrame):
        kinds = [letter_of(dtype) for dtype in X.dtypes]
        places = [j for j, kind in enumerate(kinds) if kind in "iuf" and X.dtypes.iloc[j] != np.float64]
        X = X.copy(deep=False) if places else X
        for j in places:
            X.isetitem(j, X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan))
    elif type(X).__module__.startswith("polars"):
        import polars as pl

        X = X.with_columns((pl.selectors.integer() | pl.selectors.float()).cast(pl.Float64))
    elif is_arrow(X):
        import pyarrow as pa

        for place, field in enumerate(X.schema):
            if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                X = X.set_column(place, field.name, X.column(place).cast(pa.float64(), safe=False))
    return X


def _of_plain_frame(X: pd.DataFrame, dtype: type) -> Array:
    """The numbers of a frame, row by row, in a dtype: a view where they are held like that."""
    first, again = X.iloc[:1].to_numpy(), X.iloc[:1].to_numpy()
    if first.dtype == dtype and np.shares_memory(first, again):
        numbers = X.to_numpy()
        if numbers.flags.c_contiguous:
            return numbers
    # Some rows at a time, since those of all columns together would be one more copy.
    table: Array = np.empty(X.shape, dtype)
    for start in range(0, len(X), _CONVERTED_ROWS):
        table[start : start + _CONVERTED_ROWS] = X.iloc[start : start + _CONVERTED_ROWS]
    return table


def _as_floats(X: object, name: str, compact: bool) -> Array:
    """An array of a data frame, lists or any other object: float32 if it :func:`is_single`, else float64."""
    if type(X).__module__.partition(".")[0] == "dask":
        warn(
            f"{name} is a Dask collection, all of whose rows are read into the memory of this process; pass "
            "an array to say that they fit. Linear heads leave the rows with the workers."
        )
    if isinstance(X, pd.DataFrame) and is_plain(X):
        return _of_plain_frame(X, np.float32 if compact and is_compact(X.dtypes) else np.float64)
    _refuse_text(X, name)
    if letter_of(dtype_of(X)) in ("m", "M"):
        raise ValueError(f"{name} holds dates or durations; {ENCODE}")
    try:
        if _holds_dates(X):
            raise TypeError("dates")
        return np.asarray(
            check_array(
                X,
                dtype=np.float32 if is_single(X) else np.float64,
                order="C",
                ensure_2d=False,
                allow_nd=True,
                ensure_all_finite=False,
                ensure_min_samples=0,
                ensure_min_features=0,
                input_name=name,
            )
        )
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, TypeError):
            raise TypeError(_refusal_of_type(X, name)) from None
        if "Complex data not supported" in str(error):
            raise ValueError(
                f"{name} holds complex numbers; pass real ones, such as the real and imaginary parts as "
                "columns (Complex data not supported)."
            ) from None
        raise ValueError(
            f"{name} must hold real numbers, as many in each row; encode everything else first."
        ) from None


def check_finite(finite: object, name: str, columns: Sequence[Any] = ()) -> None:
    """Refuse rows with entries that are not ``finite``; the error names their ``columns``."""
    if not finite:
        where = f" in the columns {listed(columns)}" if len(columns) else ""
        raise ValueError(
            f"{name} contains NaN or infinity{where}; drop those rows, or impute them with what public rows "
            "say."
        )


def _refusal_of_type(X: object, name: str) -> str:
    if sp.issparse(X):
        return f"Sparse data was passed as {name} where dense rows are needed; pass {name}.toarray()."
    if isinstance(X, pd.DataFrame) and all(isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes):
        return f"{name} is a data frame of sparse columns; pass {name}.sparse.to_dense()."
    if isinstance(X, np.matrix):
        return f"{name} is a numpy.matrix, which is not supported; pass numpy.asarray({name})."
    if hasattr(X, "private_rows"):
        return f"{name} holds rows in files where rows in memory are needed; pass an array or a data frame."
    if isinstance(X, pd.DataFrame):
        odd = [label for label, column in X.items() if numbers_of(column) is None]
        return (
            f"{name} holds entries that are not numbers in the columns {listed(odd)}; make numbers, text or "
            "dates of them, which private_pipeline(TableEncoder(), ...) encodes, or leave the columns out."
        )
    return (
        f"{name} holds an entry that is not a number; each argument must be a number, and not a string that "
        "spells a number."
    )


def _refuse_text(X: object, name: str) -> None:
    """Refuse rows that hold text. Numbers that are stored as text are not converted."""
    where = ""
    if isinstance(X, pd.DataFrame):
        columns = enumerate(X.dtypes.items())
        text = [column for place, (column, dtype) in columns if _holds_text(X.iloc[:, place], dtype)]
        if not text:
            return
        where = f" in the columns {listed(text)}"
    elif sp.issparse(X) or not _holds_text(X, dtype_of(X)):
        return
    raise ValueError(
        f"{name} holds text{where}; encode it as numbers by private_pipeline(TableEncoder(), ...) or by "
        "PublicOnly(OneHotEncoder()), or convert numbers that are stored as text by astype(float)."
    )


def _holds_text(X: object, dtype: object) -> bool:
    """Whether some entries are text; they are read only if the type does not decide it."""
    if letter_of(dtype) not in "OUST":
        return False
    try:
        entries = np.asarray(X)
    except Exception:  # lists differ in length
        return False
    if entries.dtype.kind != "O":
        return entries.dtype.kind in "UST"
    return any(isinstance(entry, (str, bytes)) for entry in entries.ravel())


def _holds_dates(X: object) -> bool:
    """Whether entries are dates or durations, whose numbers depend on the unit of a column."""
    if sp.issparse(X):
        return False
    types = X.dtypes if isinstance(X, pd.DataFrame) else [dtype_of(X) or np.asarray(X).dtype]
    return any(letter_of(dtype) in ("m", "M") for dtype in types)


def rows_to_transform(estimator: BaseEstimator, X: object, *, finite: bool = True) -> Array:
    """Checked rows for a fitted estimator, with the same columns as in its fit."""
    X = numeric_frame(X, "X")
    table = check_table(X, "X", minimum=1, finite=finite)
    named = names_of_features(estimator) is not None
    width = vars(estimator).get("n_features_in_")
    # A table that is not copied is an array, which has no column names.
    if named or table is not X or table.shape[1] != width:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    return table


def is_empty(rows: object) -> bool:
    """Whether public rows or labels are None, or have no rows."""
    if rows is None or isinstance(rows, tuple):
        return rows is None or all(is_empty(source) for source in rows)
    shape = getattr(rows, "shape", None)
    if shape is None:
        return isinstance(rows, list) and not rows
    return len(shape) > 0 and shape[0] == 0


def sources_of(rows: object) -> tuple[Any, ...]:
    """Rows or labels of one source, or of a tuple of several, as a tuple."""
    return rows if isinstance(rows, tuple) else (rows,)


def public_sources(X_pub: Any, y_pub: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The sources of public rows and of their labels, as two tuples of the same length, at least 1."""
    if y_pub is None and not isinstance(X_pub, tuple) and np.ndim(X_pub) == 1:
        raise ValueError(
            "X_pub has one dimension and y_pub is missing, as if weights were the third argument; pass them "
            "as sample_weight=, and public rows as X_pub= and y_pub=."
        )
    for name, value in (("X_pub", X_pub), ("y_pub", y_pub)):
        if value is None:
            raise ValueError(f"{name}=None must be given too; public rows need both X_pub and y_pub.")
    if isinstance(X_pub, list) and X_pub and getattr(X_pub[0], "ndim", 1) == 2:
        raise ValueError("X_pub is a list of tables; pass several sources as a tuple, and y_pub too.")
    sources, labels = sources_of(X_pub), sources_of(y_pub)
    if len(sources) != len(labels):
        raise ValueError(
            f"X_pub has {len(sources)} sources and y_pub {len(labels)}; pass as many label arrays as row "
            "arrays."
        )
    if not sources:
        raise ValueError("X_pub=() holds no source; pass None if there are no public rows.")
    return sources, labels


def check_column_names(source: object, names: Any, name: str = "X_pub") -> None:
    """Refuse a data frame of public rows with other columns than ``names``, if private rows have names."""
    if names is None or not is_frame(source):
        return
    columns = source.column_names if is_arrow(source) else source.columns
    if list(columns) != list(names):
        raise ValueError(
            f"{name} has the columns {listed(columns)} and X has {listed(names)}; pass the same "
            "columns in the same order."
        )


#: The remedy in a ColumnTransformer, whose parts get some columns of ``X`` and all of ``X_pub``.
_WHOLE_COLUMNS = "and wrap a whole ColumnTransformer: PublicOnly(ColumnTransformer(...))"


def join_rows(X: object, X_pub: object) -> Any:
    """Public rows of all sources in one container, with the number and names of columns of PRIVATE rows X."""
    if is_empty(X_pub):
        named = "X_pub=None" if X_pub is None else "an empty X_pub"
        raise ValueError(
            f"{named} leaves nothing to fit on; pass public rows to fit, which in a Pipeline takes "
            f"sklearn.set_config(enable_metadata_routing=True), {_WHOLE_COLUMNS}, or use NoisyScaler or "
            "RowNormalizer, which need none."
        )
    sources = sources_of(X_pub)
    width, names = _columns(X)
    for source in sources:
        public_width, public_names = _columns(source)
        if public_width != width:
            raise ValueError(
                f"X_pub has {public_width} features and X has {width}; pass public rows with the columns "
                f"of the private ones, {_WHOLE_COLUMNS}."
            )
        if public_names != names:
            theirs, ours = (
                "no column names" if columns is None else f"the columns {listed(columns)}"
                for columns in (public_names, names)
            )
            raise ValueError(
                f"X_pub has {theirs} and X has {ours}; pass the same columns in the same order, both as data "
                f"frames or both as arrays, {_WHOLE_COLUMNS}."
            )
    if len(sources) == 1:
        return sources[0]
    if any(sp.issparse(source) for source in sources):
        return sp.vstack(sources, format="csr")
    if all(isinstance(source, pd.DataFrame) for source in sources):
        return pd.concat(sources, ignore_index=True)
    return np.concatenate([np.asarray(source) for source in sources])


def _columns(X: object) -> tuple[int | None, list[str] | None]:
    """Number and names of the columns as scikit-learn sees them; values are not read."""
    probe = BaseEstimator()
    validate_data(probe, X, skip_check_array=True)
    names = names_of_features(probe)
    return vars(probe).get("n_features_in_"), None if names is None else names.tolist()


def refusal_of(
    estimator: BaseEstimator, X: object, culprit: str, error: Exception, *, numeric: bool = True
) -> Exception:
    """A ValueError or TypeError by our own checks, in place of an error of a culprit that may quote rows."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    if sp.issparse(X):
        return kind(f"{culprit} fails on sparse rows; pass X.toarray(), or check what it takes.")
    try:
        if hasattr(estimator, "n_features_in_") and len(getattr(X, "shape", (0, 0))) == 2:
            validate_data(estimator, X, reset=False, skip_check_array=True)
        if numeric:
            check_table(X, "X", minimum=1)
    except (ValueError, TypeError) as reason:
        return kind(str(reason))
    return kind(f"{culprit} fails on X with {LEFT_OUT}; try it on rows that are public.")


def how_to_install(extra: str) -> str:
    """The remedy for a missing package: what to install from an index, or from a checkout."""
    return f"install skmixdp[{extra}], or '.[{extra}]' in a checkout"


def copy_fitted(owner: object, fitted: object, *names: str) -> None:
    """Copy the fitted attributes of these names, and those of the features, from another estimator."""
    for name in (*names, "n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(owner, name, getattr(fitted, name))
