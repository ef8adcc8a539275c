"""Tables of mixed columns as rows of numbers, by public rows or by what is declared of the columns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._utils.frames import CellSource, is_frame, pandas_frame, stacked_lists
from .._utils.process import own_state, warn
from .._utils.validation import (
    COUNT,
    FLAG,
    Allowed,
    Kind,
    Number,
    as_float,
    check_params,
    is_empty,
    listed,
    shown,
    sources_of,
    suggestion,
)
from ._cells import FARTHEST, KINDS, MOST_HASHED, TableColumn, TableColumns
from ._cells import listed as cells_of
from ._one_cell import days_of, is_missing, number_of, quantity_of, text_of
from ._public_cells import form_of, is_row_number, kind_of, merged_codes, remedy_for_odd_cells

#: Fewest public cells by which a column is scaled; heads have the same limit.
_ENOUGH = 10
#: Cut of numbers in units of the spread, as for the columns of heads.
_CUT_IN_SPREADS = 8.0
#: Rounding of the deviation of equal numbers, as a share of the largest one.
_ROUNDING = 1e-12
#: Numbers of columns for the words of a text. On questions to a bank with public rows, 512 gave 6 to 36
#: points more than 32, from 200 rows on, at epsilon 0.5 and 3.
_FEWEST_HASHED, _MOST_HASHED = 32, 512
_DECLARED = (
    f"one of {', '.join(map(repr, KINDS))}, two bounds (low, high) as a tuple of numbers or of ISO dates, "
    "a list of categories, a format of dates such as '%d/%m/%Y', or the length of lists"
)
#: Names of cells of a kind in messages.
_CELLS = {
    **dict.fromkeys(("number", "amount"), "number"),
    **dict.fromkeys(("date", "datetime"), "date"),
    "boolean": "truth value",
    "list": "list of that length",
}
#: Directives for the time of the day in formats of dates.
_OF_DAYS = ("%H", "%I", "%M", "%S", "%c", "%X", "%f")


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a data frame of mixed columns as numbers, by public rows or by what is declared.

    Numbers are standardised, categories become columns of zeros and ones, and words of long texts are hashed.
    Dates become days, with the time of the year and of the week. Missing cells are filled.

    Parameters
    ----------
    columns : dict or None, default=None
        What is known about columns, by name: ``"number"``, ``"amount"`` (numbers with marks between
        thousands, currencies and percent signs, like ``$1,234.50`` and ``12,50 €``), ``"decimal comma"`` (an
        amount in which ``1.234`` is 1234), ``"boolean"``, ``"date"``, ``"datetime"``, ``"category"``,
        ``"text"``, ``"drop"``, bounds ``(low, high)``, a list of categories,
        a format of dates like ``"%d/%m/%Y"``, or the length of lists of numbers. Public rows decide the rest.
        Without public rows, every column must be declared.
    indicators : "auto", bool or list of str, default="auto"
        Columns with an indicator of missing cells. "auto" means those in which a public row lacks a value.
    max_categories : int, default=50
        A text with more distinct values among the public rows is hashed, word by word.
    n_hashed : int or "auto", default="auto"
        Number of columns into which the words of a text are hashed. ``"auto"`` is a power of two: twice the
        number of words in public cells, from 32 to 512, which several texts share. ``columns_`` says it.

    Attributes
    ----------
    columns_ : dict of str to TableColumn
        How each column is encoded.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns.

    See Also
    --------
    skmixdp.private_pipeline : Puts an encoder before a head.
    PublicOnly : Fits any other transformer to public rows.

    Notes
    -----
    *Guarantee*: :meth:`fit` reads the names of the private columns and nothing else, not even their types. A
    single missing value turns a column of integers into real numbers. The names count as public.
    :meth:`transform` encodes each cell by itself. Its result has the same shape whatever the cells hold, and
    is finite.

    **No cell causes an error or a warning.** Heads refuse private rows that are not finite, before the
    charge, and that no row was refused counts as public. Here no row is refused. Cells that are no number in
    a column of numbers count as missing. Infinite numbers are cut. An unknown or missing category
    has the shares of the known ones in public rows, or equal ones, so that predictions are about average.

    Numbers have the mean and deviation of the public rows, and are cut at 8 deviations. With bounds, they go
    from -1 to 1. If fewer than 10 public rows have a number, they keep their unit. Heads then find the
    spread of the column by noisy histograms of the private rows. Missing numbers get the mean or the middle.

    Kinds depend on what public cells hold: numbers that are stored as texts are numbers, and ISO 8601 texts
    are dates. Times of the day and durations are numbers of seconds. Public cells of amounts tell their
    decimal mark. Types count only where a column is declared as categorical.

    Examples
    --------
    >>> import pandas as pd
    >>> from skmixdp.preprocessing import TableEncoder
    >>> X = pd.DataFrame({"age": [30, None], "city": ["Ulm", "Rome"]})
    >>> encoder = TableEncoder({"age": (0, 120), "city": ["Bonn", "Ulm"]}).fit(X)
    >>> encoder.transform(X).tolist()
    [[-0.5, 0.0, 1.0], [0.0, 0.5, 0.5]]
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'city=Bonn', 'city=Ulm']
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True, "X_unlabeled": True}

    columns: Mapping[str, Any] | None = None
    _: KW_ONLY
    indicators: Any = "auto"
    max_categories: int = 50
    n_hashed: Any = "auto"

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        X_unlabeled: object = None,
    ) -> "TableEncoder":
        """Learn kinds, categories, means and indicators from public rows.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            PRIVATE rows, of pandas, polars, pyarrow or NumPy. Only the names of their columns are read.
        y : array-like, default=None
            Ignored.
        X_pub : data frame or array of shape (n_pub, n_features), tuple of such, or None
            Public rows: one table, or a tuple of several sources.
        y_pub : array-like, default=None
            Ignored.
        X_unlabeled : data frame or array of shape (n_unlabeled, n_features), tuple of such, or None
            Public rows without labels. They count like those of ``X_pub``.

        Returns
        -------
        self : TableEncoder
            Fitted transformer.

        Raises
        ------
        ValueError, TypeError
            For parameters that do not fit the columns, columns of which nothing is known, public rows with
            other columns than ``X``, and infinite public numbers.
        """
        parameters = check_params(self, _ALLOWED)
        names = _table(X, "X")[1]
        declared = self._declared(names)
        named = [
            (what, source)
            for what, rows in (("X_pub", X_pub), ("X_unlabeled", X_unlabeled))
            if not is_empty(rows)
            for source in sources_of(rows)
        ]
        if len(declared) < len(names) and not named:
            # As in _cells: names of other columns may be entries of a private row.
            raise ValueError(
                f"columns={shown(self.columns)} does not declare what is in {len(names) - len(declared)} of "
                f"the {len(names)} columns of X, and there are no public rows; pass X_pub or X_unlabeled, or "
                f"columns={_to_fill_in(names, declared)} for all columns."
            )
        public = [(source, _cells(source, names, what, "X")) for what, source in named]
        where = self.indicators if isinstance(self.indicators, (list, tuple)) else None
        if where is not None and (absent := sorted(set(where) - set(names))):
            raise ValueError(f"indicators names {listed(absent)}, which X does not have; name its columns.")
        columns = TableColumns()
        for name in names:
            cells = [cell for _, table in public for cell in cells_of(table[name])]
            categorical = any(
                isinstance(source, pd.DataFrame) and isinstance(table[name].dtype, pd.CategoricalDtype)
                for source, table in public
            )
            column = self._learned(name, cells, categorical, declared.get(name), parameters)
            marked = bool(self.indicators) if where is None else name in where
            if column.kind != "drop":
                if self.indicators == "auto":
                    marked = bool(column.read(cells)[1].any())
                column = replace(column, indicator=marked)
            columns[name] = column
        if self.n_hashed == "auto":
            texts = sum(column.kind == "text" for column in columns.values())
            most = max(_MOST_HASHED >> max(texts - 1, 0).bit_length(), _FEWEST_HASHED)
            for name, column in columns.items():
                columns[name] = replace(column, n_hashed=min(column.n_hashed, most))
        self.columns_ = columns
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        if not len(self.get_feature_names_out()):
            raise ValueError("no column of X is left to encode; declare the kind of one in columns.")
        return self

    @own_state()
    def transform(self, X: object) -> NDArray[np.float64]:
        """Encode rows.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Rows with the columns of ``fit``. Data frames may have them in any order.

        Returns
        -------
        array of shape (n_samples, n_encoded)
            Finite numbers, float64.

        Raises
        ------
        ValueError, TypeError
            If columns are missing or new.
        """
        check_is_fitted(self)
        cells = _cells(X, list(self.columns_), "X", "the table of fit")
        return np.hstack([column.encode(cells[name]) for name, column in self.columns_.items()])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored: the names are those of ``fit``.

        Returns
        -------
        array of str
            One name for each column of what :meth:`transform` returns.
        """
        check_is_fitted(self)
        names = [each for name, column in self.columns_.items() for each in column.names(name)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _declared(self, names: Sequence[str]) -> dict[str, TableColumn]:
        """What ``columns`` declares, by name."""
        if self.columns is None:
            return {}
        if not isinstance(self.columns, Mapping):
            raise TypeError(f"columns={shown(self.columns)} must be a dict such as {{'age': 'number'}}.")
        declared = {str(name): value for name, value in self.columns.items()}  # names may be numbers, as in X
        if len(declared) < len(self.columns):
            raise ValueError(f"columns={shown(self.columns)} names a column twice; declare each column once.")
        for name in declared:
            if name not in names:
                hint = suggestion(name, names) or "name columns of X"
                if _numbered(names):
                    hint = (
                        "an array has columns x0, x1, ...; scikit-learn's ensembles turn frames into arrays, "
                        "so put the encoder in front of the ensemble"
                    )
                raise ValueError(f"columns names {shown(name)}, which X does not have; {hint}.")
        return {name: _as_declared(name, value) for name, value in declared.items()}

    def _learned(
        self,
        name: str,
        cells: list[Any],
        categorical: bool,
        declared: TableColumn | None,
        parameters: dict[str, Any],
    ) -> TableColumn:
        """A column by what is declared and by its public cells."""
        kind = declared.kind if declared else "category" if categorical else kind_of(cells)
        if kind is None:
            warn(
                f"no public row has a value in the column {name!r}, which is left out; declare its kind by "
                f"columns={{{name!r}: ...}}."
            )
            return TableColumn("drop")
        column = declared or TableColumn(kind)
        if kind == "drop":
            return column
        if form := form_of(kind, cells):
            column = replace(column, format=form)
        if kind == "category" and declared is None and (length := _length_of_lists(cells, name)):
            column = TableColumn("list", length=length)
        n_missing = sum(map(is_missing, cells)) if declared else 0
        if declared and (n_odd := int(sum(column.read(cells)[1])) - n_missing) > 0:
            n_present = len(cells) - n_missing
            odd = f"{n_odd} of {n_present} public cells of the column {name!r} are no {_CELLS[kind]}"
            if n_odd == n_present:
                raise ValueError(f"{odd}; declare another kind.")
            warn(f"{odd} and count as missing; correct them, or declare another kind.")
        if column.kind in ("number", "amount", "date", "datetime", "list"):
            if declared is None and kind == "number" and is_row_number(name, cells):
                warn(
                    f"the column {name!r} holds another whole number in every public row, as numbers of rows "
                    f"do; leave it out by columns={{{name!r}: 'drop'}}, or declare 'number'."
                )
            return _scaled(column, cells, name) if column.cut == FARTHEST and cells else column
        if column.kind in ("category", "text") and not column.categories:
            remedy = "" if declared or categorical else remedy_for_odd_cells(name, cells)
            if remedy:
                warn(remedy)
            if column.kind == "category" and (codes := merged_codes(cells)):
                warn(
                    f"{codes} codes of the column {name!r} spell the same numbers as others, like 01 and 1, "
                    "and count as the same categories; put a letter in front of codes."
                )
            texts = [] if kind == "text" else sorted({text for cell in cells if (text := text_of(cell))})
            if 0 < len(texts) <= parameters["max_categories"]:
                return _counted(replace(column, categories=tuple(texts)), cells)
            if not (declared or remedy) and len(texts) > 0.9 * len(cells):
                warn(
                    f"nearly every public row has another text in the column {name!r}, whose words are "
                    f"hashed; leave a name of rows out by columns={{{name!r}: 'drop'}}, or declare 'text'."
                )
            return replace(column, kind="text", n_hashed=_hashed_width(parameters["n_hashed"], cells))
        return _counted(column, cells)


def table_of(pipeline: Any) -> TableColumns:
    """The columns of an encoder just before the last step of a pipeline; none without it, or a pipeline."""
    steps = [step for _, step in getattr(pipeline, "steps", [])][-2:-1]
    return steps[0].columns_ if steps and isinstance(steps[0], TableEncoder) else TableColumns()


_ALLOWED: dict[str, tuple[Allowed, ...]] = {
    "max_categories": (COUNT,),
    "n_hashed": (
        "auto",
        Number(f"a whole number from 1 to {MOST_HASHED}", 1, MOST_HASHED, "both", whole=True),
    ),
    "indicators": (
        "auto",
        FLAG,
        Kind(
            "a list of columns",
            lambda value: isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value),
        ),
    ),
}


def _as_declared(name: str, value: Any) -> TableColumn:
    """A column as a value of the parameter ``columns`` declares it."""
    if isinstance(value, str) and value in KINDS:
        return TableColumn("amount", format=",") if value == "decimal comma" else TableColumn(value)
    if isinstance(value, str) and _is_format(value):
        kind = "datetime" if any(directive in value for directive in _OF_DAYS) else "date"
        return TableColumn(kind, format=value)
    if COUNT.admits(value):
        return TableColumn("list", length=int(value))
    if isinstance(value, tuple) and len(value) == 2:
        bounds, kind = [as_float(bound) for bound in value], "number"
        if None in bounds:
            bounds = [quantity_of(bound) for bound in value]
        if bounds[0] != bounds[0]:
            bounds = [days_of(bound) for bound in value]
            kind = "datetime" if any(bound % 1 for bound in bounds if bound is not None) else "date"
        low, high = bounds
        # Half the difference of two tiny bounds may be 0.
        if low is not None and high is not None and -1e300 < low < high < 1e300 and (high - low) / 2 > 0:
            return TableColumn(kind, center=(low + high) / 2, scale=(high - low) / 2, cut=1.0)
    if isinstance(value, list):
        # Truth values are named "True" and "False", although cells spell them 1 and 0.
        words = [str(entry).strip().capitalize() for entry in value]
        texts = [text_of(entry) for entry in value]
        if texts and None not in texts and len(set(texts)) == len(texts):
            spelt = (
                word if word in ("True", "False") else text for word, text in zip(words, texts, strict=True)
            )
            return TableColumn("category", categories=tuple(map(str, spelt)))
    raise ValueError(f"columns[{name!r}]={shown(value)} must be {_DECLARED}, distinct and not missing.")


def _scaled(column: TableColumn, cells: list[Any], name: str) -> TableColumn:
    """A column of numbers or dates with the mean and, if there are enough, the deviation of public cells."""
    values = column.read(cells)[0]
    enough = len(values) >= _ENOUGH and np.count_nonzero(~np.isnan(values)) >= _ENOUGH
    values = values[~np.isnan(values)]
    if np.any(np.isinf(values)):
        raise ValueError(f"public rows have infinite numbers in the column {name!r}; remove their rows.")
    if len(values) == 0:
        return column
    values = np.clip(values, -column.cut, column.cut)
    center, scale = float(values.mean()), float(values.std())
    if not enough:
        return replace(column, center=center)
    constant = scale <= _ROUNDING * np.abs(values).max()
    return replace(column, center=center, scale=1.0 if constant else scale, cut=_CUT_IN_SPREADS)


def _counted(column: TableColumn, cells: list[Any]) -> TableColumn:
    """A column with the shares of its categories in public cells; one more of each counts."""
    counts = Counter(map(text_of, cells))
    seen = [1 + counts[category] for category in column.categories]
    return replace(column, shares=tuple(each / sum(seen) for each in seen)) if cells else column


def _hashed_width(wanted: Any, cells: list[Any]) -> int:
    """Number of hashed columns of a text column; ``"auto"`` is about twice the number of public words."""
    if wanted != "auto":
        return int(wanted)
    words = {word for cell in cells for word in (text_of(cell) or "").lower().split()}
    width = 1 << (2 * len(words) - 1).bit_length() if cells else _MOST_HASHED
    return min(max(width, _FEWEST_HASHED), _MOST_HASHED)


def _is_format(text: str) -> bool:
    """Whether this is a format of dates with the year."""
    day = datetime(2021, 12, 31, 13, 59)
    try:
        return "%" in text and datetime.strptime(day.strftime(text), text).year == day.year
    except ValueError:
        return False


def _length_of_lists(cells: list[Any], name: str) -> int:
    """The length of public lists of numbers; 0 if the cells are not such lists."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not all(
        isinstance(cell, (list, tuple, np.ndarray))
        and all(number_of(entry) == number_of(entry) or is_missing(entry) for entry in cell)
        for cell in present
    ):
        return 0
    if len({len(cell) for cell in present}) > 1 or not len(present[0]):
        stacked_lists(present, f"the column {name!r} of public rows")  # refuses them with its own message
    return len(present[0])


def _to_fill_in(names: Sequence[str], declared: Mapping[str, Any]) -> str:
    """A dict of all columns for a message, without names that are numbers, since these may be of a row."""
    if any(number_of(name) == number_of(name) for name in names):
        return '{"name": "number", ...}'
    missing = [f"{name!r}: ..." for name in names if name not in declared]
    return f"{{{', '.join(missing[:8])}{', ...' if len(missing) > 8 or declared else ''}}}"


def _table(X: Any, what: str) -> tuple[Any, list[str]]:
    """A data frame or a dense array, and the names of its columns; cells are not read."""
    if sp.issparse(X):
        raise TypeError(f"{what} is sparse, and cells of tables are dense; pass {what}.toarray().")
    X = pandas_frame(X.frame() if isinstance(X, CellSource) else X)
    if is_frame(X):
        names = [str(name) for name in X.columns]
    else:
        X = np.asarray(X, dtype=getattr(X, "dtype", object))  # lists keep their types
        if X.ndim != 2:
            raise ValueError(
                f"{what} has {X.ndim} dimensions and is no table (n_samples, n_features); Reshape your data, "
                "a single row by reshape(1, -1), or pass a data frame."
            )
        names = [f"x{place}" for place in range(X.shape[1])]
    if not names:
        raise ValueError(f"{what} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has columns of the same name; give each column its own name.")
    return X, names


def _cells(X: object, names: Sequence[str], what: str, reference: str) -> dict[str, Any]:
    """The column of each name."""
    X, own = _table(X, what)
    missing = [name for name in names if name not in own]
    if missing or len(own) > len(names):
        # Names of private columns are left out, since in a file without a header they are entries of a row.
        which = f"{len(missing)} column(s)" if reference == "X" else f"the columns {listed(missing)}"
        differences = [f"lacks {which} of {reference}"] if missing else []
        if n := len(set(own) - set(names)):
            differences.append(f"has {n} column(s) that {reference} has not")
        alike = "pass the same columns, in any order"
        if len(own) == len(names) == len(missing) and (_numbered(own) or _numbered(names)):
            alike = (
                "one of them is an array without names of columns: pass both as arrays or as data frames. "
                "Ensembles such as BaggingClassifier turn X into an array: pass X_pub.to_numpy() to them"
            )
        raise ValueError(
            f"{what} {' and '.join(differences)}; {alike} (X has {len(own)} features, "
            f"but TableEncoder is expecting {len(names)} features as input)."
        )
    return {name: _column(X, place) for place, name in enumerate(own)}


def _numbered(names: Sequence[str]) -> bool:
    """Whether these are the default names of the columns of an array."""
    return list(names) == [f"x{place}" for place in range(len(names))]


def _column(X: Any, place: int) -> Any:
    """A column of an array, or of a data frame of pandas or polars, by its place."""
    if hasattr(X, "iloc"):
        return X.iloc[:, place]
    return X[X.columns[place]] if is_frame(X) else X[:, place]
