"""The length that most rows do not exceed, where neither public rows nor columns tell it."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..._engine import GaussianMechanism, Procedure, bind_rows
from ..._rows import Block, Columns
from ...components.protocols import FloatArray
from ..mapping import LENGTH_LIMIT, with_intercept
from ..rows import MappedRows
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning, Worth, counts_query, share_for

#: Candidates for the length are powers of two: the lowest exponent.
_LOWEST_EXPONENT = -64.0
#: Number of exponents, in steps of a half.
_EXPONENTS = 256
#: Rounds of the binary search for a length.
_SEARCH_ROUNDS = 8
#: Factor by which stated lengths of rows may exceed the true ones, due to rounding.
_ROUNDED = 1 + 1e-6
#: Quantile of the lengths to search for.
_QUANTILE = 0.9
#: Smallest quantile where noise lowers it.
_LEAST_QUANTILE = 0.5

#: Noise in the count of rows up to a length, as a fraction of the rows.
_WORTH = Worth(0.05, 0.2, (0.01, 0.05))


def length_share(mu: float, n_rows: int) -> float:
    """Share of mu squared for :func:`noisy_length`, from public facts; 0 if noise would hide it."""
    return share_for(mu, n_rows, math.sqrt(_SEARCH_ROUNDS), _WORTH)


def noisy_length(learner: Learner, n_features: int, multiplier: float) -> Learning[float]:
    """A length that most rows do not exceed, by a binary search with noisy counts.

    Rows are in units of :data:`LENGTH_LIMIT`. ``multiplier`` is that of one Gaussian release which is as
    private as the whole search.

    *Guarantee*: ``_SEARCH_ROUNDS`` Gaussian releases of counts. A row changes each count by at most 1.
    """
    n_rows = learner.n_rows
    mechanism = GaussianMechanism(multiplier * math.sqrt(_SEARCH_ROUNDS), _SEARCH_ROUNDS, learner.noise)
    error = multiplier * math.sqrt(_SEARCH_ROUNDS) / n_rows
    wanted = max(_QUANTILE - 2 * error, _LEAST_QUANTILE) * n_rows
    low, high = 0, _EXPONENTS - 1
    for _ in range(_SEARCH_ROUNDS):
        middle = (low + high) // 2
        not_longer = partial(_not_longer, length=_length(middle) / LENGTH_LIMIT)
        query = counts_query(np.zeros((0, n_features)), not_longer)
        count, _ = yield from learner.ask(mechanism, query)
        if float(count[0]) >= wanted:
            high = middle
        else:
            low = min(middle + 1, high)
    return _length(high)


def _length(index: int) -> float:
    return float(2 ** (_LOWEST_EXPONENT + index / 2))


def _not_longer(Z: FloatArray, block: Block, length: float) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows whose length is at most ``length``."""
    return np.asarray(block.norms <= length * _ROUNDED)[:, np.newaxis]


class Length(Stage):
    """A bound on the rows, which are cut at it."""

    name = "length of the rows"
    limits = _WORTH.limits
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        return length_price(fit, fit.columns) or None

    def rows(self, fit: Fit) -> MappedRows:
        private = fit.data.private
        # Rows have no intercept, which would add to their length; the start may have one.
        return private.mapped(private.same(replace(fit.row_map, intercept_value=None)))

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        rows = self.rows(fit)
        multiplier = fit.budget.multiplier(price)
        bound = yield from bind_rows(rows, noisy_length(fit.learner, fit.data.n_features, multiplier))
        assert fit.mapping is not None and rows.row_map is not None
        bounded = replace(rows.row_map, bound=fit.settings.rows.length_factor * bound)
        return fit.spent(self, price).mapped(row_map=with_intercept(fit, bounded))


def length_price(fit: Fit, columns: Columns | None) -> float:
    """Share of mu squared for the length of rows whose columns are known as far as these; 0 without need."""
    needed = fit.settings.rows.norm == "clip" and columns is None and not len(fit.public.known)
    possible = fit.settings.known_map is None and fit.divides and not fit.data.private.exact
    return length_share(fit.mu, fit.n_rows) if needed and possible else 0.0
