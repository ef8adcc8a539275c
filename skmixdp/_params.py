"""Checks of parameters: what each may be, as data, and one sentence for what it may not be.

A class lists what its parameters may be in a table and calls :func:`check_params`; a function calls
:func:`check` for one parameter. A number of NumPy counts as the number that it is, and a truth value is no
number: ``n_steps=True`` is a mistake of whoever passed it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Number:
    """A real number between two bounds.

    Attributes
    ----------
    text : str
        What messages call it.
    low, high : float
        Bounds.
    closed : {"neither", "left", "right", "both"}
        Which bounds are values themselves.
    whole : bool
        Whether it must be an integer; ``2.0`` is not one.
    """

    text: str
    low: float = -math.inf
    high: float = math.inf
    closed: str = "neither"
    whole: bool = False

    def admits(self, value: Any) -> bool:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral if self.whole else Real):
            return False
        if as_float(value) is None:
            return False
        # A whole number is compared as it is: beyond 2**53 a float would be rounded.
        number = int(value) if isinstance(value, Integral) else float(value)
        above = number > self.low or (self.closed in ("left", "both") and number == self.low)
        below = number < self.high or (self.closed in ("right", "both") and number == self.high)
        return bool(above and below)


@dataclass(frozen=True)
class Kind:
    """Whatever a function accepts, such as objects with a certain method."""

    text: str
    admits: Callable[[Any], bool]


FINITE = Number("a finite number")
POSITIVE = Number("a positive finite number", low=0)
NON_NEGATIVE = Number("a non-negative finite number", low=0, closed="left")
FRACTION = Number("a number from 0 to 1", low=0, high=1, closed="both")
PROBABILITY = Number("a number strictly between 0 and 1", low=0, high=1)
#: Up to 2**53 every whole number is a float, so that counts enter products without rounding.
COUNT = Number("a whole number of at least 1", low=1, high=2**53, closed="both", whole=True)
FLAG = Kind("True or False", lambda value: isinstance(value, (bool, np.bool_)))
SEED = Kind(
    "None for private noise, or a non-negative whole number or numpy RandomState for a reproducible run that "
    "is NOT private",
    lambda value: (
        value is None or isinstance(value, np.random.RandomState) or Number("", -1, whole=True).admits(value)
    ),
)

#: A rule, or a constant (a string, None) that is allowed as it is.
Allowed = Number | Kind | str | None


def whole_from(low: int) -> Number:
    """Whole numbers of at least ``low``."""
    return Number(f"a whole number of at least {low}", low=low, high=2**53, closed="both", whole=True)


def number(low: float, high: float = math.inf, *, closed: str = "neither") -> Number:
    """Real numbers between two bounds, whose message names the bounds."""
    first = f"{'at least' if closed in ('left', 'both') else 'above'} {low:g}"
    last = f" and {'at most' if closed in ('right', 'both') else 'below'} {high:g}" if high < math.inf else ""
    return Number(f"a number {first}{last}", low, high, closed)


def check(name: str, value: Any, *allowed: Allowed, remedy: str = "", owner: str = "") -> None:
    """Refuse a parameter that none of ``allowed`` admits.

    Parameters
    ----------
    name : str
        What the caller calls it.
    value : object
        Its value.
    *allowed : Number, Kind, str or None
        What it may be.
    remedy : str, default=""
        What to pass instead, where that does not follow from ``allowed``; the end of a sentence.
    owner : str, default=""
        The class whose parameter it is, where its name alone does not tell.

    Raises
    ------
    ValueError
        If no rule admits it: one sentence that names the parameter, its value and the remedy.
    """
    if any(_admits(rule, value) for rule in allowed):
        return
    owned = f" of {owner}" if owner else ""
    end = f"; {remedy}" if remedy else ""
    raise ValueError(f"{name}={value!r}{owned} must be {_either(allowed)}{end}.")


def check_params(
    owner: Any, table: Mapping[str, tuple[Allowed, ...]], *, named: bool = False
) -> dict[str, Any]:
    """Check the attributes of an object that a table lists.

    Parameters
    ----------
    owner : object
        An estimator, algorithm or component.
    table : mapping of str to tuple
        What each attribute may be.
    named : bool, default=False
        Whether messages name the owner's class, for objects that are parameters themselves.

    Returns
    -------
    dict
        The values by name. Numbers of NumPy are plain ones, since arithmetic in a narrow type would round
        sensitivities.

    Raises
    ------
    ValueError
        For the first attribute that no rule admits.
    """
    for name, allowed in table.items():
        check(name, getattr(owner, name), *allowed, owner=type(owner).__name__ if named else "")
    return {name: _plain(getattr(owner, name)) for name in table}


def as_float(value: Any) -> float | None:
    """A real number as a float; None for anything else, or beyond all floats."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _admits(rule: Allowed, value: Any) -> bool:
    if rule is None:
        return value is None
    if isinstance(rule, str):
        return isinstance(value, str) and value == rule
    return rule.admits(value)


def _either(allowed: tuple[Allowed, ...]) -> str:
    """The rules as words: constants behind "one of" where there are several of them and nothing else."""
    words = list(_words(allowed))
    if len(words) > 2 and all(isinstance(rule, str) for rule in allowed):
        return f"one of {', '.join(words)}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _words(allowed: tuple[Allowed, ...]) -> Iterator[str]:
    for rule in allowed:
        if rule is FLAG:
            yield from ("True", "False")
        else:
            yield rule.text if isinstance(rule, (Number, Kind)) else repr(rule)
