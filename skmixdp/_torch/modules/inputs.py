"""Checks of rows of any shape, as NumPy arrays or tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._utils.frames import is_frame, numeric_frame
from ..._utils.validation import check_column_names, check_table, is_empty, public_sources

Array = NDArray[Any]

_BLOCK = 1024


def check_rows(X: object, name: str, minimum: int) -> Array | Tensor:
    """A finite numeric array or tensor of any shape, with at least ``minimum`` rows."""
    rows = X.detach() if isinstance(X, Tensor) else _numbers(X, name)
    if rows.ndim < 2 or 0 in rows.shape[1:]:
        raise ValueError(f"{name} has shape {tuple(rows.shape)}, not (n_samples, ...); pass one entry a row.")
    if len(rows) < minimum:
        raise ValueError(
            f"{name} has {len(rows)} sample(s) while a minimum of {minimum} is required; pass more rows."
        )
    blocks = (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))
    if not all(_is_finite(block) for block in blocks):
        raise ValueError(
            f"{name} contains NaN or infinity; drop those rows, or impute them with what public rows say."
        )
    return rows


def _numbers(X: object, name: str) -> Array:
    X = numeric_frame(X, name)
    try:
        # A frame has no declared type, see is_single.
        array = np.asarray(X, np.float64) if is_frame(X) else np.asanyarray(X)
    except Exception:  # rows differ in length
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "biuf":
        if is_frame(X):
            check_table(X, name, minimum=0)  # its error names the columns
        raise ValueError(
            f"{name} must hold real or whole numbers, as many in each row; encode everything else."
        )
    return np.asarray(array, dtype=np.float64) if array.dtype.itemsize > 8 else array


def _is_finite(block: Array | Tensor) -> bool:
    return bool(torch.isfinite(block).all()) if isinstance(block, Tensor) else bool(np.isfinite(block).all())


def as_array(rows: Array | Tensor) -> Array:
    """Rows as a NumPy array."""
    if not isinstance(rows, Tensor):
        return rows
    rows = rows.float() if rows.dtype == torch.bfloat16 else rows
    return np.asarray(rows.cpu().numpy())


def as_labels(y: object) -> Any:
    """Labels as NumPy reads them; tensors are moved to main memory."""
    return as_array(y.detach()) if isinstance(y, Tensor) else y


def collect_public(
    X: object,
    y: object,
    names: object,
    private: Array | Tensor,
    check_target: Callable[[Any, str, int, str], Array],
) -> tuple[Array | Tensor, Array] | None:
    """Public rows and labels of one array each, or of tuples of several sources; None without rows."""
    if is_empty(X) and is_empty(y):
        return None
    sources, labels = public_sources(X, y)
    for source in sources:
        check_column_names(source, names)
    rows = [check_rows(source, "X_pub", 1) for source in sources]
    for part in rows:
        if part.shape[1:] != private.shape[1:]:
            raise ValueError(
                f"X_pub has rows of shape {tuple(part.shape[1:])} and X of {tuple(private.shape[1:])}; pass "
                "public rows through the same preparation as the private ones."
            )
    targets = [
        check_target(as_labels(label), "y_pub", len(part), "X_pub")
        for label, part in zip(labels, rows, strict=True)
    ]
    joined = rows[0] if len(rows) == 1 else np.concatenate([as_array(part) for part in rows])
    return joined, np.concatenate(targets)
