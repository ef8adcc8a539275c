"""Units of a guarantee: rows, or persons with all of their rows."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._utils.frames import MISSING

_MISSING_IDS = (
    "groups has missing ids, or texts such as 'NA' for them; drop the rows of unknown persons, or give each "
    "its own id."
)


class Units(NamedTuple):
    """What a guarantee protects: each row, or each person with all of their rows.

    ``codes`` (n_rows,) are the numbers of persons, with -1 for rows to leave out, or None. ``unit`` is "row",
    or what persons are called.
    """

    codes: Any
    n_units: int
    unit: str = "row"

    @property
    def plural(self) -> str:
        """The name of the units in the plural, for reports."""
        return "private rows" if self.codes is None else "persons"


def units_of(groups: object, n_rows: int, noise: object, members: NDArray[np.bool_] | None = None) -> Units:
    """The units of a guarantee: persons in the order of their ids, or rows. ``members`` selects rows."""
    if groups is None:
        return Units(None, n_rows)
    if noise == "discrete":
        raise ValueError(
            "noise='discrete' needs exact sums, which means over the rows of a person are not; pass "
            "noise='float', or no groups."
        )
    try:
        # As objects: an array of texts would turn a missing id into a text.
        ids = np.asarray(groups, object) if isinstance(groups, list | tuple) else np.asarray(groups)
    except Exception:  # the original message would quote ids
        raise ValueError(
            "groups must be a flat array of ids that can be read, with text in UTF-8; pass integers or "
            "strings."
        ) from None
    if ids.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {ids.shape} and X {n_rows} rows; pass a flat array of one id for each row."
        )
    types = set(map(type, ids)) if ids.dtype == object else {ids.dtype.type}
    floats = any(issubclass(t, float | np.floating) for t in types)
    infinite = floats and bool(((ids == np.inf) | (ids == -np.inf)).any())
    if np.ma.is_masked(groups) or pd.isna(ids).any() or infinite:
        raise ValueError(_MISSING_IDS)
    # One fraction makes pandas and NumPy store all ids as floats, which makes long integers equal.
    if ids.dtype.kind == "f" and bool((abs(ids) >= 2 / np.finfo(ids.dtype).eps).any()):
        raise ValueError(
            "groups holds numbers so large that different ids are equal as real numbers; pass integers or "
            "strings."
        )
    if any(issubclass(t, bool | np.bool_) for t in types):
        raise ValueError("groups holds bools, which are no ids; pass one id for each row.")
    # The same person may be 1 in one row and "1" in another.
    if len(types) > 1 and not any(all(issubclass(t, kind) for t in types) for kind in (str, Real)):
        raise ValueError("groups must hold ids of one type; pass integers or strings.")
    chosen = np.ones(n_rows, bool) if members is None else members
    codes = np.full(n_rows, -1)
    try:
        codes[chosen], persons = pd.factorize(ids[chosen], sort=True)
    except Exception:
        raise ValueError("groups must hold ids of one type; pass integers or strings.") from None
    if any(isinstance(person, str) and person.strip() in MISSING for person in persons):
        raise ValueError(_MISSING_IDS)
    if len(persons) < 2:
        raise ValueError(
            f"groups has {len(persons)} person(s), and at least 2 are needed; pass more of them."
        )
    return Units(codes, len(persons), unit_of(groups))


def unit_of(groups: object) -> str:
    """The name of the unit: that of the column of ids, if it has one; "row" without ids."""
    if groups is None:
        return "row"
    # The name of other objects, such as Dask arrays, may depend on their content.
    of_frame = type(groups).__module__.partition(".")[0] in ("pandas", "polars")
    name = getattr(groups, "name", None) if of_frame else None
    return name if isinstance(name, str) and name not in ("", "row") else "person"
