"""The geometry of rows: a usual length, the mean and directions at unit length, and second moments."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._engine import GaussianMechanism, Procedure
from ..._rows.row_map import RowMap
from ..._rows.scaling import Whitening, effective_columns, n_groups
from ..._rows.source import Block, Contribution
from ..._utils.process import warn_later
from ...components import L2Clip
from ...components.clipping import clip_rows
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray
from ..stage import FEWEST_FREE, Fit, MappedRows, Price, Stage, variance_of_mean
from ..statistics import Learner, Learning, counts_query, james_stein_factor
from .mapping import (
    DIRECTIONS,
    LEAST_SHARE,
    LENGTH_LIMIT,
    MOST_SHARE,
    ROUNDS,
    SEARCH_ROUNDS,
    WORTH_OF_LENGTH,
    Shares,
    clips,
    intercept_constant,
    length_price,
    whitening_groups,
    widening,
    with_intercept,
)

#: Candidates for the length are powers of two: the lowest exponent.
_LOWEST_EXPONENT = -64.0
#: Number of exponents, in steps of a half.
_EXPONENTS = 256
#: Factor by which stated lengths of rows may exceed the true ones, due to rounding.
_ROUNDED = 1 + 1e-6
#: Quantile of the lengths to search for.
_QUANTILE = 0.9
#: Smallest quantile where noise lowers it.
_LEAST_QUANTILE = 0.5


def noisy_length(learner: Learner, n_features: int, multiplier: float) -> Learning[float]:
    """A length that most rows do not exceed, in units of :data:`LENGTH_LIMIT`, by a binary search.

    *Guarantee*: ``SEARCH_ROUNDS`` Gaussian releases of counts, together as private as one of this multiplier.
    A row changes each count by at most 1.
    """
    n_rows = learner.n_rows
    mechanism = GaussianMechanism(multiplier * math.sqrt(SEARCH_ROUNDS), SEARCH_ROUNDS, learner.noise)
    error = multiplier * math.sqrt(SEARCH_ROUNDS) / n_rows
    wanted = max(_QUANTILE - 2 * error, _LEAST_QUANTILE) * n_rows
    low, high = 0, _EXPONENTS - 1
    for _ in range(SEARCH_ROUNDS):
        middle = (low + high) // 2
        not_longer = partial(_are_within, length=_candidate(middle) / LENGTH_LIMIT)
        query = counts_query(np.zeros((0, n_features)), not_longer)
        count, _ = yield from learner.ask(mechanism, query)
        if float(count[0]) >= wanted:
            high = middle
        else:
            low = min(middle + 1, high)
    return _candidate(high)


def _candidate(index: int) -> float:
    return float(2 ** (_LOWEST_EXPONENT + index / 2))


def _are_within(Z: FloatArray, block: Block, length: float) -> NDArray[np.bool_]:
    """Flags (rows, 1) of the rows whose length is at most ``length``."""
    return np.asarray(block.norms <= length * _ROUNDED)[:, np.newaxis]


class Length(Stage):
    """A bound on the rows, which are cut at it."""

    name = "length of the rows"
    limits = WORTH_OF_LENGTH.limits
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        return length_price(fit, fit.mapping.columns) or None

    def rows(self, fit: Fit) -> MappedRows:
        private = fit.data.private
        # Rows have no intercept, which would add to their length; the start may have one.
        return private.mapped(private.shared_map(replace(fit.mapping.row_map, intercept_value=None)))

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        row_map = self.rows(fit).row_map
        assert row_map is not None
        queries = noisy_length(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        bound = yield from fit.ask(queries, row_map)
        bounded = replace(row_map, bound=fit.settings.rows.length_factor * bound)
        return fit.spent(self, price).mapped(row_map=with_intercept(fit, bounded))


#: The clip enforces that rows have at most unit length.
UNIT_CLIP = L2Clip(1.0)

#: Largest noise at which dominant columns can be seen: its squared length in a mean of unit rows, or its
#: second moment.
CLEAR_NOISE = 0.25

#: Fraction of the squared length of unit rows in a few columns above which a fit warns.
_MOST_OF_A_ROW = 0.5
#: Effective number of columns below which they count as few.
_FEW_COLUMNS = 3.0
#: Number of columns from which a table has many more.
_MANY_COLUMNS = 9


def center_of(mean: FloatArray, variance: float, unit_pub: FloatArray) -> FloatArray:
    """A noisy mean (n_features,) that is shrunk towards zero, or averaged with that of several public rows.

    ``variance`` is that of the noise in each entry. Means are weighted by the inverse of their variances.
    """
    if len(unit_pub) <= 1:  # a variance needs two rows
        return mean * james_stein_factor(max(len(mean) - 2, 0) * variance, mean)
    of_noise, of_public = len(mean) * variance, variance_of_mean(unit_pub)
    weight = of_public / (of_noise + of_public) if of_noise + of_public > 0 else 1.0
    return np.asarray(weight * mean + (1 - weight) * unit_pub.mean(axis=0))


def noisy_mean(learner: Learner, n_features: int, multiplier: float) -> Learning[tuple[FloatArray, float]]:
    """The noisy mean of rows of at most unit length and of this width, and the variance of its noise.

    *Guarantee*: one Gaussian release of this multiplier, of sensitivity 1. Rows longer than 1 are clipped.
    """

    def contribute(Z: FloatArray, block: Block) -> Contribution:
        weights = UNIT_CLIP.weights(block.norms, lambda: block.max_abs)
        # Weights in double precision would make the sum convert all rows.
        return weights.astype(Z.dtype)[:, None], None

    stated = ReleasedArray(UNIT_CLIP.sensitivity(learner.dtype))
    query = PrivateQuery(np.zeros((0, n_features)), contribute, (stated,))
    total, scale = yield from learner.ask(multiplier, query)
    return total[0] / learner.n_rows, (scale / learner.n_rows) ** 2


def warn_of_few_columns(energies: FloatArray) -> None:
    """Warn if a few columns make up most of the length of unit rows, by released mean squares."""
    most = len(energies) >= _MANY_COLUMNS and float(energies.sum()) > _MOST_OF_A_ROW
    if most and effective_columns(energies) < _FEW_COLUMNS:
        warn_later(
            "a few columns of X make up nearly all of the length of its rows, so the others hardly count; "
            "declare typical values of columns (pass scale), which costs nothing, or scale them by public "
            "rows (pass X_pub), by known ranges, or by NoisyScaler."
        )


class Mean(Stage):
    """The centre of rows at unit length: a noisy mean, averaged with that of public rows."""

    name = "mean"
    limits = (LEAST_SHARE, MOST_SHARE)
    needs = ("unit rows",)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        return Shares.of(fit.budget.mu, fit.data.n_rows, fit.data.n_features).mean

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        queries = noisy_mean(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        mean, variance = yield from fit.ask(queries, fit.mapping.row_map)
        if len(mean) * variance <= CLEAR_NOISE:
            warn_of_few_columns(np.maximum(mean**2 - variance, 0))
        unit_pub = RowMap(None, True, None, columns=fit.mapping.columns)(fit.public.known, np.float64)
        center = center_of(mean, variance, unit_pub)
        return fit.spent(self, price).mapped(row_map=replace(fit.mapping.row_map, mean=center))


#: Weight of the identity that is added to the second moment before whitening, as for public whitening.
_SHRINKAGE = 0.9
#: Factor of the estimated curvature, to be on the safe side.
_MARGIN_OF_CURVATURE = 1.1

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
        """Estimated largest second moment of unit rows whitened by ``factors``; None does not whiten."""
        moments = self.moments[self.moments > 0]
        remaining = moments if factors is None else moments * factors**2
        length = 1 - float(np.sum(moments - remaining))
        largest = max(float(remaining.max(initial=0.0)), self.floor) / max(length, self.floor, 1e-3)
        return min(1.0, _MARGIN_OF_CURVATURE * largest)


def leading_directions(learner: Learner, n_features: int, multiplier: float) -> Learning[LeadingDirections]:
    """Leading directions of rows of at most unit length, by the noisy power method.

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
    needs = ("unit rows",)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        shares = Shares.of(fit.budget.mu, fit.data.n_rows, fit.data.n_features)
        groups, _ = whitening_groups(fit)
        few_free = len(groups) - n_groups(groups) < FEWEST_FREE and shares.floor < _LARGEST_FLOOR
        # Public rows whiten worse than directions of private rows.
        return shares.directions if few_free or not len(groups) else 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        row_map, whitens = fit.mapping.row_map, fit.settings.rows.whiten is not False
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


#: Share of mu squared for a second moment.
_MOMENT_SHARE = 0.03
#: Largest noise of a useful second moment, as a fraction of the mean eigenvalue if rows had half the
#: largest length.
_MOST_NOISE = 0.6
#: Eigenvalues are raised by this fraction of the noise.
_RAISED_BY_NOISE = 0.5
#: Least raise of the eigenvalues, as a fraction of their mean.
_RAISED = 0.05

#: Share of mu squared for the second moments that map the rows of a regression.
_MAP_SHARE = 0.1
#: Number of second moments for the map. Each after the first is that of rows under the map so far, in
#: which small eigenvalues are larger and so less noisy.
_MAP_ROUNDS = 2
#: Largest noise in these moments, in mean eigenvalues of rows of the largest length. Of 54 problems with
#: 10 to 100 columns, none lost more than 0.002 of R2 below it, and many lost above it.
_MOST_NOISE_OF_MAP = 0.9
#: Fewest rows, times mu, for a map: with fewer, two small tables lost up to 0.5 of R2.
_FEWEST_OF_MAP = 400.0
#: Eigenvalues are raised by this fraction of the noise before they are inverted.
_FLOOR = 0.5
#: Least raise of the eigenvalues, as a fraction of the largest one: covers rounding.
_LEAST_FLOOR = 1e-9
#: Mapped rows are cut at this multiple of their root mean square length.
_LENGTHS = 2.0
#: Factor of the largest second moment, since rows of another map were cut before it was known.
_MARGIN = 1.5
#: Constant column that is appended to rows, so that their second moment includes their mean.
_CONSTANT = 0.3


def second_moment_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for :func:`noisy_matrix`, from public facts; 0 if noise would hide it."""
    noise = math.sqrt(2 * n_features / _MOMENT_SHARE) / (mu * n_rows)
    return _MOMENT_SHARE if noise <= _MOST_NOISE / (4 * n_features) else 0.0


def preconditioner_of(matrix: FloatArray, noise: float, intercept: float | None) -> tuple[FloatArray, float]:
    """A matrix (d_in, d_in) that preconditions descent, and a bound on the moments of rows under it.

    It is ``a (M + r I)^-1`` with the second moment M, ``matrix`` (n_features, n_features), whose noise has
    this largest eigenvalue; ``a`` keeps the mean square of the outputs of noise.
    """
    values, vectors = np.linalg.eigh(matrix)
    n_features, values = len(values), np.maximum(values, 0)
    added = max(_RAISED_BY_NOISE * noise, _RAISED * float(values.mean()))
    if intercept is not None:
        values = np.append(values, intercept**2)
    factors = 1 / (values + added)
    outputs = float(np.sum(values * factors**2))
    factors *= math.sqrt(values.sum() / outputs) if outputs > 0 else added
    inverse = np.diag(factors)
    inverse[:n_features, :n_features] = (vectors * factors[:n_features]) @ vectors.T
    return inverse, float((factors * (values + noise)).max())


def noisy_matrix(
    learner: Learner, width: int, multiplier: GaussianMechanism | float
) -> Learning[tuple[FloatArray, float]]:
    """The symmetric mean of ``x x^T`` over rows of this width, and the largest eigenvalue of its noise.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``x x^T``, clipped to length 1.

    Source: Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis".
    """
    query = moments_query(np.eye(width), learner.dtype)  # the products are the rows themselves
    total, scale = yield from learner.ask(multiplier, query)
    return (total + total.T) / (2 * learner.n_rows), scale / learner.n_rows * math.sqrt(2 * width)


def map_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for the second moments of a map, from public facts; 0 if noise would hide them."""
    noise = math.sqrt(2 * n_features / _MAP_SHARE) / (mu * n_rows)
    enough = mu * n_rows >= _FEWEST_OF_MAP
    return _MAP_SHARE if enough and noise * n_features <= _MOST_NOISE_OF_MAP else 0.0


def moment_map(
    row_map: RowMap, matrix: FloatArray, noise: float, times: float
) -> tuple[RowMap, FloatArray, float]:
    """The map ``(M + f I)^(-1/2)`` after an earlier one, for the noisy second moment M of its rows.

    The floor f is at the edge of the ``noise``. With a constant, ``matrix`` has the mean too, which is
    subtracted. The bound is ``times`` the usual one. Estimated second moments (n_features,) of mapped rows
    come second, 0 where noise hides them, and a number that is at least as large last.
    """
    bound, constant, mean, first = row_map.bound, row_map.intercept_value, row_map.mean, row_map.whitening
    assert bound is not None
    earlier = np.eye(len(matrix) - (constant is not None))
    if first is not None:
        earlier += (first.directions.T * (first.factors - 1)) @ first.directions
    if constant is not None:
        center = matrix[:-1, -1] / constant
        matrix = matrix[:-1, :-1] - np.outer(center, center)
        moved = bound * np.linalg.solve(earlier, center)
        mean = moved if mean is None else mean + moved
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0)
    raised = values + max(_FLOOR * noise, _LEAST_FLOOR * float(values[-1]))
    root = (vectors / np.sqrt(raised)) @ vectors.T @ earlier
    # The map is symmetric; rotations of its rows make no difference.
    _, factors, directions = np.linalg.svd(root)
    unit = bound / factors[0]
    largest = float(((values + noise / 2) / raised).max())
    length = _LENGTHS * times * math.sqrt(max(float(np.sum(values / raised)), largest))
    whitening = Whitening(directions, factors / factors[0])
    mapped = replace(row_map, mean=mean, whitening=whitening, bound=unit * length)
    return mapped, values / raised / length**2, _MARGIN * largest / length**2


class Preconditioner(Stage):
    """Directions of descent and the length of steps for classes; a map of the rows of a regression."""

    name = "second moment"
    limits = (_MOMENT_SHARE, _MAP_SHARE)
    needs = ("default", "divides", "bounded rows")
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        columns, row_map, settings = fit.mapping.columns, fit.mapping.row_map, fit.settings
        if row_map.unit_first:
            return None
        if fit.data.loss.quadratic:
            bounded = row_map.bound is not None and settings.known_map is None
            maps = bounded and settings.rows.whiten is not False
            return map_share(fit.budget.mu, fit.data.n_rows, fit.data.n_features) or None if maps else None
        if columns is None or not clips(fit, columns):
            return None
        return second_moment_share(fit.budget.mu, fit.data.n_rows, fit.data.n_features) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        if fit.data.loss.quadratic:
            return (yield from self._map(fit, price))
        constant = fit.mapping.row_map.intercept_value
        queries = noisy_matrix(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        moment, noise = yield from fit.ask(queries, replace(fit.mapping.row_map, intercept_value=None))
        matrix, largest = preconditioner_of(moment, noise, constant)
        return fit.spent(self, price).mapped(second_moment=largest, preconditioner=matrix)

    def _map(self, fit: Fit, price: Price) -> Procedure[Fit]:
        n_features, settings = fit.data.n_features, fit.settings.rows
        multiplier = fit.budget.multiplier(price, _MAP_ROUNDS)
        mechanism = GaussianMechanism(multiplier, _MAP_ROUNDS, fit.transaction.noise)
        constant = _CONSTANT if settings.center else None
        row_map = replace(fit.mapping.row_map, whitening=None, intercept_value=constant)
        for _ in range(_MAP_ROUNDS):
            queries = noisy_matrix(fit.learner, row_map.width(n_features), mechanism)
            matrix, noise = yield from fit.ask(queries, row_map)
            row_map, moments, largest = moment_map(row_map, matrix, noise, widening(fit))
        constant = None
        if settings.fit_intercept:  # whose curvature is that of the strongest direction
            constant, moments = math.sqrt(largest), np.append(moments, largest)
        row_map = replace(row_map, intercept_value=constant)
        if not settings.center:  # the constant and the rows may then have a common direction
            largest *= 2
        return fit.spent(self, price).mapped(row_map=row_map, second_moment=largest, moments=moments)
