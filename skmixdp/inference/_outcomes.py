"""Checks of what comes with the rows of a regression: exposures and weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows.table import check_exposure
from .._utils.validation import check
from ..estimators._problem import WEIGHT, check_sample_weight

Array = NDArray[Any]


def weights_of(
    private: object, public: object, largest: object, n_rows: int, n_pub: int
) -> tuple[Array | None, Array]:
    """Sample weights (n_rows,) of private rows or None, and those (n_pub,) of public rows."""
    check("max_sample_weight", largest, WEIGHT, "auto")
    _check_both("sample_weight", private, public, n_pub)
    if private is None:
        check("max_sample_weight", largest, "auto", remedy="there is no sample_weight")
        return None, np.ones(n_pub)
    if public is not None and not n_pub:
        raise ValueError("sample_weight_pub was given without public rows; pass X_pub and y_pub, or drop it.")
    of_public = check_sample_weight(public, n_pub, "sample_weight_pub", "X_pub")
    return check_sample_weight(private, n_rows), np.ones(0) if of_public is None else of_public


def exposures_of(
    private: object, public: object, family: str, n_rows: int, n_pub: int
) -> tuple[Array, Array]:
    """Exposures (n_rows,) of private rows, and those (n_pub,) of public rows; 1 where there are none."""
    if family != "poisson" and (private is not None or public is not None):
        raise ValueError(f"exposure and exposure_pub are for family='poisson', and this is {family!r}.")
    _check_both("exposure", private, public, n_pub)
    of_private = check_exposure(private, "exposure", n_rows, "X")
    return of_private, check_exposure(public, "exposure_pub", n_pub, "X_pub")


def _check_both(name: str, private: object, public: object, n_pub: int) -> None:
    """Refuse numbers of private rows without those of public rows, and the reverse."""
    if private is None and public is not None:
        raise ValueError(f"{name}_pub needs {name} of the private rows; pass both, or neither.")
    if private is not None and public is None and n_pub:
        raise ValueError(f"{name} needs that of the public rows in the same units; pass {name}_pub.")
