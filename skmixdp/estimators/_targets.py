"""Checks of regression targets and of the scale that is declared for them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import CONVERSION_ERRORS
from .._rowmap import TargetMap

Array = NDArray[Any]


def check_targets(y: Any, name: str, n_rows: int, rows_name: str) -> Array:
    """Targets as a finite float64 table (n_rows, k); a flat array is one target a row."""
    if y is None:
        raise ValueError(f"fit requires {name} to be passed, but the target {name} is None.")
    try:
        given = np.asarray(y)
    except CONVERSION_ERRORS:  # targets of different lengths
        raise ValueError(
            f"{name} must hold as many real numbers in each row; pass a table of them."
        ) from None
    if given.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold real numbers; encode text, dates and complex numbers first.")
    try:
        targets = given.astype(np.float64)
    except CONVERSION_ERRORS:  # whose message would quote the entry
        raise ValueError(f"{name} must hold real numbers; encode everything else first.") from None
    if targets.ndim not in (1, 2) or targets.shape[1:] == (0,):
        raise ValueError(
            f"{name} has shape {targets.shape}, not (n_samples,) or (n_samples, n_targets); pass one or "
            "several targets a row."
        )
    if len(targets) != n_rows:
        raise ValueError(
            f"{name} has {len(targets)} targets and {rows_name} {n_rows} rows; pass targets for each row."
        )
    if not np.all(np.isfinite(targets)):
        raise ValueError(f"{name} contains NaN or infinity; drop the rows without a target.")
    return targets.reshape(n_rows, -1)


def check_target_map(center: Any, scale: Any, n_targets: int, public: Array | None) -> TargetMap:
    """Centre and scale of the targets: declared, else of the public ones, else 0 and 1."""
    known = TargetMap.of(public) if public is not None else TargetMap(np.zeros(n_targets), np.ones(n_targets))
    found = []
    for name, value, default in (("center", center, known.center), ("scale", scale, known.scale)):
        if value is None:
            found.append(default)
            continue
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.array(math.nan)
        fits = array.shape in ((), (n_targets,)) and np.all(np.isfinite(array))
        if not fits or isinstance(value, bool) or (name == "scale" and not np.all(array > 0)):
            raise ValueError(
                f"target_{name}={value!r} must be None, a {'positive ' if name == 'scale' else ''}finite "
                f"number, or an array of {n_targets} of them, one for each target."
            )
        found.append(np.broadcast_to(array, (n_targets,)).copy())
    return TargetMap(*found)
