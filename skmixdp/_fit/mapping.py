"""How the rows of a fit are mapped, by its settings and public rows."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows import Columns, RowMap, n_groups
from .stage import FEWEST_FREE, Fit, Kinds

Array = NDArray[Any]

#: For whitening by rows of unknown classes: the largest weight of their scatter.
_MOST_WEIGHT = 0.1
#: The weight times the number of outputs. With more classes, more of that scatter separates classes.
_WEIGHT_OF_ALL = 0.5

#: Minimum number of columns for unit length: with fewer, rows lose too much information.
_FEWEST_AT_UNIT_LENGTH = 4

#: Minimum number of public rows for the spread of columns.
FEWEST_KNOWN = 10

#: Bins of magnitudes end at powers of two, from minus this exponent to this exponent.
EXPONENT = 63

#: Upper end of the search for a length, a power of two. It is the unit of lengths, which causes no rounding.
#: Longer rows are shortened to it.
LENGTH_LIMIT = 2.0**64
#: The bound on rows of a regression is raised if ``n_features / (mu * n_rows)`` is below this.
_HARDLY_NOISY = 1e-4
#: Largest factor by which the bound is raised.
_MOST_TIMES = 5.0

#: Smallest constant of the intercept column. Centred rows have no common direction, so a small constant is
#: enough and adds little noise.
_LEAST_INTERCEPT = 0.1
#: The constant for two classes, which may differ more in size.
_INTERCEPT_OF_TWO = 0.3


def intercept_constant(n_outputs: int) -> float:
    """Constant of the intercept column of centred rows of unit length."""
    return max(_LEAST_INTERCEPT, _INTERCEPT_OF_TWO * math.sqrt(2 / max(n_outputs, 2)))


def known_kinds(fit: Fit) -> Kinds | None:
    """The kinds of the columns, where too few public rows tell their spread."""
    kinds = fit.settings.rows.kinds
    fits = kinds is not None and len(kinds.numbers) == fit.data.n_features
    return kinds if fits and len(fit.public.known) < FEWEST_KNOWN else None


@lru_cache(maxsize=8)  # so that fits have the same object
def unmapped(n_features: int) -> RowMap:
    """The row map for histograms of columns: entries are unchanged, but clipped at the largest magnitude."""
    columns = Columns(np.zeros(n_features), np.ones(n_features), cut=2.0**EXPONENT)
    return RowMap(None, False, None, columns=columns)


def whitening_groups(fit: Fit) -> tuple[Array, float | None]:
    """Groups of the first known rows for whitening; weight of the identity, None for the usual one."""
    public, loss = fit.public, fit.data.loss
    # If few rows have labels, all known rows are one group.
    few = len(public.y) - n_groups(public.y) < FEWEST_FREE
    if not loss.quadratic and not (few and public.unlabeled is not None):
        return public.y, None
    weight = min(_MOST_WEIGHT, _WEIGHT_OF_ALL / loss.n_outputs)
    return np.zeros(len(public.known), dtype=np.intp), None if loss.quadratic else 1 - weight


def whitens_alone(fit: Fit) -> bool:
    """Whether rows of unit length are whitened by private directions, without public rows."""
    return fit.settings.rows.whiten is True and len(fit.public.known) == 0


def centres_columns(fit: Fit) -> bool:
    """Whether columns are centred before rows are scaled; rows of unit length are centred afterwards."""
    settings = fit.settings.rows
    return settings.center and not (
        settings.norm == "unit" or settings.geometry is True or whitens_alone(fit)
    )


def scales_columns(fit: Fit) -> bool:
    """Whether columns are standardised if their units differ."""
    settings = fit.settings.rows
    return settings.norm is not None if settings.scale == "auto" else settings.scale


def clips(fit: Fit, columns: Columns | None) -> bool:
    """Whether rows keep their length, up to a bound."""
    settings = fit.settings.rows
    # If the centre of columns is unknown, rows of unit length are centred. That loses too much of a few.
    if settings.norm != "auto" or columns is None:
        return settings.norm == "clip"
    few = len(columns.center) < _FEWEST_AT_UNIT_LENGTH
    return bool(columns.center.any()) or not settings.center or few


def with_intercept(fit: Fit, row_map: RowMap) -> RowMap:
    """A map with an intercept column, if the head has an intercept."""
    return row_map.with_intercept_for(fit.public.known) if fit.settings.rows.fit_intercept else row_map


def widening(fit: Fit) -> float:
    """The factor, at least 1, by which the bound on rows of a regression is raised, from public facts."""
    return min(max(math.sqrt(_HARDLY_NOISY * fit.mu * fit.n_rows / fit.data.n_features), 1.0), _MOST_TIMES)
