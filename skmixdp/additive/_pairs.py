"""Pairs of columns with products, chosen by noisy scores.

What is computed from private rows here is a function of noisy sums and of public facts.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .._engine import Procedure, make_plan, training
from .._fit.stage import Fit, Price, Stage
from .._fit.stages.geometry import noisy_length
from .._fit.stages.mapping import length_price, with_intercept
from .._fit.stages.training import planned
from .._fit.statistics import sensitivity_of
from .._linear.arrays import FloatArray, row_norms
from .._linear.losses import Loss, WeightedLoss
from .._rows.row_map import RowMap
from .._rows.source import Block, Contribution
from ..components import BalancedSteps
from ..components.protocols import PrivateQuery, ReleasedArray
from ._basis import Basis, Pairs
from ._effects import Effects

#: Fewest rows times mu for a choice of pairs.
_FEWEST_ROWS_TIMES_MU = 2_000
#: Share of mu squared for curves without products.
_FIRST_SHARE = 0.05
#: Share of mu squared for the scores.
_SCORES_SHARE = 0.03
#: Most steps of the first curves.
_FIRST_STEPS = 30

#: Number of the most important columns among which pairs are chosen.
_N_COLUMNS = 6
#: Most pairs.
_MOST_PAIRS = 4
#: Residuals are shortened to this length: in units of probabilities, or of the targets' scale.
_LONGEST_RESIDUAL = 0.5
#: A score counts if it exceeds this number of standard deviations of noise and of chance.
_CLEARLY = 2.0


@dataclass(frozen=True, eq=False)
class ChosenPairs(Stage):
    """The pairs of columns whose products predict what curves leave over.

    Curves without products are trained first. The score of two of their most important columns is the sum of
    residuals, times 1 where both are above or both below about their middles, and times -1 elsewhere. The
    clear scores that are largest choose the pairs. Two columns with the same owner (n_columns,) make no pair.

    *Guarantee*: Gaussian releases of the length of the rows, of the gradients of the first curves, and of the
    scores, see :func:`scores_query`.
    """

    owners: tuple[object, ...]
    basis: Callable[[], Basis]
    on_basis: Callable[[Fit, Basis], Fit]

    name = "pairs of columns"
    limits = (_FIRST_SHARE + _SCORES_SHARE, _FIRST_SHARE + _SCORES_SHARE + 0.05)

    def price(self, fit: Fit) -> Price | None:
        has_few_rows = fit.budget.mu * fit.data.n_rows < _FEWEST_ROWS_TIMES_MU
        if not fit.divides or has_few_rows or not self._possible(range(len(self.owners))):
            return None
        return sum(share for _, share in self.lines(fit, 0.0))

    def lines(self, fit: Fit, price: Price) -> tuple[tuple[str, Price], ...]:
        length = length_price(fit, fit.mapping.columns)
        before = (("length for first curves", length),) if length else ()
        return (*before, ("first curves", _FIRST_SHARE), (self.name, _SCORES_SHARE))

    def outcomes(self, fit: Fit, price: Price) -> Iterator[Fit]:
        spent, basis = fit.spent(self, price, assumed=True), self.basis()
        possible = replace(basis, pairs=self._possible(range(len(self.owners)), 2 * _N_COLUMNS))
        widths = {
            pair: each.stop - each.start for pair, each in zip(possible.pairs, possible.products, strict=True)
        }
        widest = sorted(widths, key=lambda pair: -widths[pair])[:_MOST_PAIRS]
        yield self._with_pairs(spent, tuple(widest))
        yield self._with_pairs(spent, ())

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        shares = dict(self.lines(fit, price))
        row_map = yield from self._bounded(fit, shares)
        first = planned(fit.mapped(row_map=row_map))
        assert first.plan is not None and isinstance(first.plan.recipe.steps, BalancedSteps)
        share = shares["first curves"]
        info = replace(first.plan.info, mu=fit.budget.mu * math.sqrt(share))
        steps = replace(first.plan.recipe.steps, maximum=_FIRST_STEPS)
        recipe = replace(first.plan.recipe, comparison=None, steps=steps)
        plan = make_plan(fit.budget, recipe, info, first.plan.dtype, share)
        W = yield from fit.ask(training(plan, fit.transaction.noise, fit.data.members), row_map)
        basis = self.basis()
        seen = Effects(replace(row_map, basis=basis), *row_map.split(W), np.zeros(0), None)
        order = np.argsort([-seen.importance(j) for j in range(len(self.owners))], kind="stable")
        columns = sorted(order[:_N_COLUMNS].tolist())
        if not (pairs := self._possible(columns)):
            return self._with_pairs(fit.spent(self, price), ())
        sides = np.zeros((len(columns), W.shape[1]))
        for side, j in zip(sides, columns, strict=True):
            side[: basis.width] = _side(basis, j)
        places = np.array([[columns.index(j) for j in pair] for pair in pairs])
        query = scores_query(W, sides, places, fit.data.loss)
        query_of_scores = fit.counting.ask(fit.budget.multiplier(_SCORES_SHARE), query)
        released, noise = yield from fit.ask(query_of_scores, row_map)
        *sums, squares = released.reshape(len(pairs) + 1, len(W))
        # The residuals of so many rows may add up to this by chance.
        chance = np.sqrt(np.maximum(_LONGEST_RESIDUAL * squares, 0.0))
        scores = np.sqrt(np.mean((np.array(sums) / np.hypot(noise, chance)) ** 2, axis=1))
        best = [place for place in np.argsort(-scores)[:_MOST_PAIRS].tolist() if scores[place] > _CLEARLY]
        return self._with_pairs(fit.spent(self, price), tuple(pairs[place] for place in sorted(best)))

    def _bounded(self, fit: Fit, shares: dict[str, Price]) -> Procedure[RowMap]:
        """A map of the rows for the first curves, by public rows or a noisy length, without whitening."""
        yield from ()
        price = shares.get("length for first curves")
        if price is None:
            rows = fit.settings.rows
            return RowMap.of(fit.public.known, rows.center, True, rows.fit_intercept, clip=True)
        row_map = fit.data.private.shared_map(replace(fit.mapping.row_map, intercept_value=None))
        query_of_length = noisy_length(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        bound = yield from fit.ask(query_of_length, row_map)
        return with_intercept(fit, replace(row_map, bound=fit.settings.rows.length_factor * bound))

    def _with_pairs(self, fit: Fit, pairs: Pairs) -> Fit:
        """The fit with products of these pairs, whose map is made anew."""
        return self.on_basis(fit.without_map(), replace(self.basis(), pairs=pairs))

    def _possible(self, columns: "range | list[int]", most: int | None = None) -> Pairs:
        """Pairs of columns with different owners."""
        owners = self.owners
        return tuple(pair for pair in combinations(columns[:most], 2) if owners[pair[0]] != owners[pair[1]])


def _side(basis: Basis, j: int) -> FloatArray:
    """Coefficients (width,) of entries, whose sum is positive in rows where a column is above its middle."""
    side, hats, n_knots = np.zeros(basis.width), basis.hats[j], len(basis.knots[j])
    if n_knots:
        side[hats] = np.sign(np.arange(n_knots) - (n_knots - 1) / 2)
    else:
        side[j] = 1.0
    return side


def scores_query(W: FloatArray, sides: FloatArray, pairs: NDArray[np.intp], loss: Loss) -> PrivateQuery:
    """The query for scores of pairs (m, 2) of ``sides`` (h, d_in) at a head ``W`` (k, d_in), and squares.

    The sums are ((m + 1) k,). The last k are of squares of residuals, in units of ``_LONGEST_RESIDUAL``.

    *Guarantee*: a residual has at most this length over the outputs, and signs are at most 1. So the
    sensitivity is ``_LONGEST_RESIDUAL sqrt(m + 1)``.
    """
    contribute = partial(_scores, n_outputs=len(W), pairs=pairs, loss=loss)
    stated = ReleasedArray(_LONGEST_RESIDUAL * sensitivity_of(len(pairs) + 1) * (1 + 1e-6))
    return PrivateQuery(np.nan_to_num(np.concatenate([W, sides])), contribute, (stated,))


def _scores(Z: FloatArray, block: Block, n_outputs: int, pairs: NDArray[np.intp], loss: Loss) -> Contribution:
    """Products (rows, (m + 1) k) of clipped residuals with signs of two sides, and with themselves."""
    outputs, labels, plain = np.array(Z[:, :n_outputs], np.float64), block.y, loss
    if isinstance(loss, WeightedLoss):  # rows are weighted after the clip
        plain, (labels, _) = loss.inner, loss.split(labels)
    residuals = plain.residuals(outputs, labels)
    lengths = np.maximum(row_norms(residuals) / _LONGEST_RESIDUAL, 1.0)
    clipped = np.nan_to_num(residuals / lengths[:, np.newaxis])
    signs = np.nan_to_num(np.sign(np.asarray(Z)[:, n_outputs:]))
    products = [signs[:, [left]] * signs[:, [right]] * clipped for left, right in pairs]
    return None, np.hstack([*products, clipped**2 / _LONGEST_RESIDUAL])
