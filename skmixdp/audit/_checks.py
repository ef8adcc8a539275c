"""Checks of what an audit is given, each ending in one sentence that names the remedy."""

from numbers import Integral, Real
from typing import Any

import numpy as np


def check_confidence(confidence: Any) -> None:
    """A number strictly between 0 and 1."""
    if not _is_real(confidence) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1; 0.95 is usual.")


def check_delta(delta: Any) -> None:
    """None, or a number strictly between 0 and 1."""
    if delta is not None and not (_is_real(delta) and 0 < delta < 1):
        raise ValueError(
            f"delta={delta!r} must lie strictly between 0 and 1, or be None for the estimator's own."
        )


def check_whole(name: str, value: Any, least: int) -> None:
    """A whole number of at least ``least``."""
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
