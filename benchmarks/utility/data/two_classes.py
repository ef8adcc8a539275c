"""Two groups of the classes of any data set, for methods that know two classes only."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..problems import Array, Rows


def load(cache: Path, *, of: str, groups: Sequence[Sequence[int]], **options: Any) -> Rows:
    """Rows of the labels in either group, labelled 0 or 1; all others are left out.

    Parameters
    ----------
    cache : Path
        Folder for what takes long to compute.
    of : str
        The adapter of the whole data set, which takes the other options.
    groups : two sequences of int
        Labels of the first class and of the second.
    """
    rows: Rows = import_module(f"{__package__}.{of}").load(cache, **options)
    first, second = groups

    def part(X: Array, y: Array) -> tuple[Array, Array]:
        chosen = np.isin(y, [*first, *second])
        return X[chosen], np.isin(y[chosen], second).astype(int)

    return Rows(*part(rows.X, rows.y), *part(rows.X_test, rows.y_test))
