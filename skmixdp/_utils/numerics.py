"""The state of NumPy and SciPy under which private rows are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special


@contextmanager
def own_state() -> Iterator[None]:
    """A context, or decorator, in which no number raises an error or a warning of NumPy or SciPy.

    With settings of the user, one tiny or huge private entry could end what many rows go through, or warn of
    itself. Every public function and method that reads private rows works in this context.
    """
    silent: dict[str, Any] = {"all": "ignore"}
    with np.errstate(**silent), special.errstate(**silent):
        yield


def finite(numbers: NDArray[Any], *, nan: float = 0.0) -> NDArray[Any]:
    """What was computed from finite numbers, changed in place: what overflowed is the largest of its type.

    ``nan`` takes the place of NaN, such as the difference of two that overflowed.
    """
    largest = np.finfo(numbers.dtype).max
    np.clip(numbers, -largest, largest, out=numbers)  # in half the time of np.nan_to_num
    np.copyto(numbers, nan, where=np.isnan(numbers))
    return numbers
