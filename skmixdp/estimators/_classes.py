"""Which classes there are, and where that is known from."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import PrivacyLeakWarning
from ._checks import check_classes

Array = NDArray[Any]


def find_classes(estimator: Any, y: Array, y_pub: Array | None) -> tuple[Array, str]:
    """Sorted classes of a classifier and, for the report, where they came from."""
    if estimator.classes is not None:
        classes, origin = check_classes(estimator.classes), "declared"
    elif y_pub is not None:
        classes, origin = np.unique(y_pub), "those of the public labels"
    else:
        classes, origin = np.unique(y), "READ FROM THE PRIVATE LABELS"
        warnings.warn(
            "classes were read from the private labels y, which the guarantee does not cover; "
            "pass classes=[...] or public rows.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
    if len(classes) < 2:
        # A class that was read from private labels is not named.
        named = "" if estimator.classes is None and y_pub is None else f": {classes.tolist()}"
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes and classes holds {len(classes)} "
            f"class{named}; name all of them in classes."
        )
    return classes, origin


def warn_of_empty_classes(y_pub: Array, classes: Array) -> None:
    """Warn of classes without public rows; ``y_pub`` holds indices."""
    counts = np.bincount(y_pub, minlength=len(classes))
    if np.any(counts == 0):
        empty = classes[counts == 0].tolist()
        warnings.warn(
            f"no public row has a label in {empty}; their part of the head starts from the other "
            "classes' rows alone, so add a public row of each class if you can.",
            UserWarning,
            stacklevel=3,
        )
