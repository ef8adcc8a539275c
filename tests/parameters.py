"""Right and wrong values of parameters, drawn from the tables of allowed values (``_allowed``) of classes."""

import inspect
import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd

from tests.private_names import Allowed, Kind, Number

#: Finite numbers at which arithmetic overflows, underflows or rounds.
EXTREMES = (
    *(0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, -1e300, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(1.7976931348623157e308, -1.7976931348623157e308, 1e154, 1e-154, 1e-162, 3.4e38, 3.5e38, 1e-38, 1e-45),
    *(1e-46, 65504.0, 65520.0, 2.0**53, 2.0**53 + 2, 1 + 2**-52, 1e16, 1e-16, 0.1),
)
NOT_FINITE = (np.nan, np.inf, -np.inf)


class BadRepr:
    """An object whose text has line breaks, as some libraries' have."""

    def __repr__(self) -> str:
        return "BadRepr(\n  1\n)"


_ARRAYS = [0.5, [0.5], [], [np.nan, 1.0], np.zeros((2, 2)), "auto", [None]]

#: What somebody might pass for any parameter.
HOSTILE = (
    *(None, True, False, 0, 1, 2, -1, 0.5, -0.5, 1.5, 1e-5, 10**400, -(10**400), 2**53, 1j, *NOT_FINITE),
    *("", "a", "auto", "public", "private", "yes", "nan", "1", "a\nb", "\x00", b"auto", "x" * 5000),
    *((), [], {}, set(), [1], (1, 2), {"a": 1}, [0] * 5000, range(3), slice(3), ..., NotImplemented),
    *(
        *(object, len, dict, BadRepr(), np.str_("auto"), np.bool_(True), np.int8(1), np.float32),
        np.datetime64("NaT", "s"),
    ),
    *(kind(0.5) for kind in (np.float64, np.float32, np.float16)),
    *(pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), np.random.default_rng(0)),
    *map(np.array, _ARRAYS),
)

#: Parameters for which large whole numbers are right, and take as long as they say.
LONG = frozenset({"n_steps", "n_directions", "chunk_size", "public_batch_size", "cosine_steps", "verbose"})


def table_of(kind: type) -> dict[str, tuple[Allowed, ...]]:
    """The allowed values of the parameters that a class has, by name."""
    known = inspect.signature(kind).parameters
    return {name: rules for name, rules in kind._allowed.items() if name in known}  # type: ignore[attr-defined]


def _admits(rule: Allowed, value: Any) -> bool:
    if isinstance(rule, (Number, Kind)):
        return rule.admits(value)
    return value is rule or (isinstance(value, str) and value == rule)


def _edges(rule: Allowed) -> list[Any]:
    """The bounds of a number and what is next to them, and a constant itself."""
    if not isinstance(rule, Number):
        return [] if isinstance(rule, Kind) else [rule]
    found: list[Any] = []
    for bound in (rule.low, rule.high):
        if math.isfinite(bound):
            found += [bound, *(math.nextafter(bound, end) for end in (-math.inf, math.inf))]
            found += [int(bound) + more for more in (-1, 0, 1)]
    return found


def _candidates(rules: tuple[Allowed, ...]) -> list[Any]:
    return [*(edge for rule in rules for edge in _edges(rule)), *HOSTILE, *EXTREMES]


def wrong(rules: tuple[Allowed, ...]) -> list[Any]:
    """Values that no rule admits: beyond every bound, and of every other kind."""
    return [value for value in _candidates(rules) if not any(_admits(rule, value) for rule in rules)]


def valid(rules: tuple[Allowed, ...]) -> st.SearchStrategy[Any]:
    """Values that a rule admits, the bounds among them."""
    right = [value for value in _candidates(rules) if any(_admits(rule, value) for rule in rules)]
    drawn = [
        st.integers(int(rule.low) + 1, 1000)
        if rule.whole
        else st.floats(max(rule.low, -1e308), min(rule.high, 1e308)).filter(rule.admits)
        for rule in rules
        if isinstance(rule, Number)
    ]
    return st.one_of(st.sampled_from(right), *drawn) if right else st.nothing()


def takes_long(name: str, value: Any) -> bool:
    """Whether a fit would take as long as a large whole number says."""
    try:
        return name in LONG and float(value) > 1000
    except (TypeError, ValueError, OverflowError):
        return False
