"""Checks of the numbers that accounting is done for, each ending in one sentence.

A number of NumPy counts as the number that it is. A truth value is no number: ``True`` releases or a noise
multiplier of ``True`` are mistakes of whoever passed them.
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

#: Up to here every whole number is a float, so that counts enter products without rounding.
_MOST = 2**53


def check_positive(name: str, value: Any) -> float:
    """A positive finite number, as a float.

    Raises
    ------
    ValueError
        For anything else.
    """
    if (number := as_number(value)) is None or not 0 < number < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive finite number.")
    return number


def check_rate(value: Any) -> float:
    """A sampling rate in (0, 1], as a float.

    Raises
    ------
    ValueError
        For anything else.
    """
    if (number := as_number(value)) is None or not 0 < number <= 1:
        raise ValueError(f"sampling_rate={value!r} must lie in (0, 1]; 1 is the full batch.")
    return number


def check_count(name: str, value: Any) -> int:
    """A whole number from 1 to 2**53, as an int.

    Raises
    ------
    ValueError
        For anything else, floats that are whole included.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= _MOST:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1, and at most 2**53.")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is not one of some words.

    Raises
    ------
    ValueError
        For anything else.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(choices)}.")


def as_number(value: Any) -> float | None:
    """A real number as a float; None where it is none, or beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
