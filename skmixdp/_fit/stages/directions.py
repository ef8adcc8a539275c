"""The leading directions of rows at unit length, which whiten them and tell how long steps may be."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._engine import GaussianMechanism, Procedure
from ..._rows import Block, Contribution, Whitening, n_groups
from ...components.clipping import clip_rows
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..mapping import intercept_constant, whitening_groups
from ..stage import FEWEST_FREE, Fit, Price, Stage
from ..statistics import Learner, Learning
from .mean import (
    CLEAR_NOISE,
    DIRECTIONS,
    LEAST_SHARE,
    MOST_SHARE,
    ROUNDS,
    UNIT_CLIP,
    Shares,
    warn_of_few_columns,
)

#: Weight of the identity that is added to the second moment before whitening, as for public whitening.
_SHRINKAGE = 0.9
#: Factor of the estimated curvature, to be on the safe side.
_MARGIN = 1.1

#: Largest noise at which private directions are useful, as a fraction of the variance of the rows.
_LARGEST_FLOOR = 0.25


@dataclass(frozen=True)
class LeadingDirections:
    """Released orthonormal directions (r, n_features) in which centred rows of unit length vary most.

    ``moments`` (r,) are estimated second moments along them, 0 where noise hides them: below ``floor``.
    """

    directions: FloatArray
    moments: FloatArray
    floor: float

    @property
    def energies(self) -> FloatArray:
        """Mean square of each entry of the rows, from directions that noise does not hide."""
        return np.asarray((self.moments * (self.floor < CLEAR_NOISE)) @ self.directions**2)

    def shortened(self) -> tuple[FloatArray, FloatArray]:
        """Directions (s, n_features) that noise does not hide, and factors (s,) by which to whiten them."""
        seen = self.moments > 0
        sphere = _SHRINKAGE / self.directions.shape[1]
        shortened = (1 - _SHRINKAGE) * self.moments[seen] + sphere
        return self.directions[seen], np.sqrt(sphere / shortened)

    def largest_second_moment(self, factors: FloatArray | None) -> float:
        """Estimated largest second moment of rows that are whitened and scaled to unit length again.

        ``factors`` are those of :meth:`shortened`; None does not whiten.
        """
        moments = self.moments[self.moments > 0]
        remaining = moments if factors is None else moments * factors**2
        length = 1 - float(np.sum(moments - remaining))
        largest = max(float(remaining.max(initial=0.0)), self.floor) / max(length, self.floor, 1e-3)
        return min(1.0, _MARGIN * largest)


def leading_directions(learner: Learner, n_features: int, multiplier: float) -> Learning[LeadingDirections]:
    """Leading directions of rows of at most unit length, by the noisy power method.

    ``multiplier`` is that of one Gaussian release which is as private as all rounds together.

    *Guarantee*: ``ROUNDS`` Gaussian releases, together as private as one of this multiplier. In each, a row
    adds ``(Q x) x^T``, clipped to length 1; Q has orthonormal rows.

    Source: Hardt and Price 2014, "The noisy power method: a meta algorithm with applications".
    """
    n_rows, count = learner.n_rows, min(DIRECTIONS, n_features)
    mechanism = GaussianMechanism(multiplier * math.sqrt(ROUNDS), ROUNDS, learner.noise)
    Q = np.linalg.qr(learner.noise.normal((n_features, count)))[0].T
    scale = 0.0
    for _ in range(ROUNDS):
        total, scale = yield from learner.ask(mechanism, moments_query(Q, learner.dtype))
        _, moments, Q = np.linalg.svd(total / n_rows, full_matrices=False)
    floor = scale / n_rows * (math.sqrt(n_features) + math.sqrt(count))
    return LeadingDirections(Q, np.sqrt(np.maximum(moments**2 - floor**2, 0)), floor)


def moments_query(points: FloatArray, dtype: np.dtype[Any]) -> PrivateQuery:
    """The query for the sum of :func:`_second_moments`, with products in a dtype."""
    stated = ReleasedArray(UNIT_CLIP.sensitivity(dtype))
    return PrivateQuery(points, _second_moments, (stated,), takes_tensors=UNIT_CLIP.takes_tensors)


def _second_moments(Z: FloatArray, block: Block) -> Contribution:
    """The products of each row with the directions, scaled so that ``(Q x) x^T`` has length at most 1."""
    clip_rows(Z, block, UNIT_CLIP)
    return Z, None


class Directions(Stage):
    """Whitening after a noisy mean, by directions of private rows, or free by public rows of classes."""

    name = "directions"
    limits = (2 * LEAST_SHARE, MOST_SHARE)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        if not fit.row_map.unit_first or fit.settings.known_map is not None:
            return None
        shares = Shares.of(fit.mu, fit.n_rows, fit.data.n_features)
        groups, _ = whitening_groups(fit)
        few = len(groups) - n_groups(groups) < FEWEST_FREE and shares.floor < _LARGEST_FLOOR
        # Public rows whiten worse than directions of private rows.
        return shares.directions if few or not len(groups) else 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        row_map, whitens = fit.row_map, fit.settings.rows.whiten is not False
        largest: float | None = None
        if price:
            queries = leading_directions(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
            directions = yield from fit.ask(queries, row_map)
            warn_of_few_columns(directions.energies)
            lasting, factors = directions.shortened()
            whitening = Whitening(lasting, factors) if whitens and len(factors) else None
            largest = directions.largest_second_moment(None if whitening is None else factors)
            row_map = replace(row_map, whitening=whitening)
        elif whitens:
            groups, shrinkage = whitening_groups(fit)
            public_rows = row_map(fit.public.known[: len(groups)], np.float64)
            row_map = replace(row_map, whitening=Whitening.of(public_rows, groups, shrinkage))
        if fit.settings.rows.fit_intercept:
            row_map = replace(row_map, intercept_value=intercept_constant(fit.data.loss.n_outputs))
        return fit.spent(self, price).mapped(row_map=row_map, second_moment=largest)
