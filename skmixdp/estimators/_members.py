"""Which rows of ``X`` are those of one of several fits that share them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What messages call the rows of the fit that is being prepared, and the rows.
_given: ContextVar[tuple[str, Any]] = ContextVar("_given", default=("rows", None))


@contextmanager
def fitted_to(rows: Any, name: str) -> Iterator[None]:
    """Fits within are to these rows of ``X`` only; None is all."""
    token = _given.set((name, rows))
    try:
        yield
    finally:
        _given.reset(token)


def members(n_rows: int) -> NDArray[np.bool_] | None:
    """Mask (n_rows,) of the rows of ``X`` to which the current fit is fitted; None is all.

    Raises
    ------
    ValueError
        If what was given does not name at least two rows, each of them once.
    """
    name, rows = _given.get()
    if rows is None:
        return None
    mask = _mask(np.asarray(rows), name, n_rows)
    if (n_members := int(mask.sum())) < 2:
        raise ValueError(f"{name} holds {n_members} row(s) and a fit needs at least 2; name more of them.")
    return mask


def n_members(n_rows: int) -> int:
    """Number of rows to which the current fit is fitted."""
    mask = members(n_rows)
    return n_rows if mask is None else int(mask.sum())


def _mask(rows: NDArray[Any], name: str, n_rows: int) -> NDArray[np.bool_]:
    if rows.ndim == 1 and rows.dtype == bool:
        if len(rows) != n_rows:
            raise ValueError(
                f"{name} is a mask of {len(rows)} rows and X has {n_rows}; pass one for each row."
            )
        return rows
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} of shape {rows.shape} and type {rows.dtype} must be row numbers, a boolean mask or None."
        )
    if np.any((rows < 0) | (rows >= n_rows)):
        raise ValueError(
            f"{name} holds a number of no row, and X has rows 0 to {n_rows - 1}; name rows of X."
        )
    mask = np.zeros(n_rows, dtype=bool)
    mask[rows.astype(np.intp)] = True
    if int(mask.sum()) < len(rows):
        raise ValueError(f"{name} names a row twice, which would double its part in every sum; name it once.")
    return mask
