"""The second moment of rows: it maps those of a regression, and preconditions descent for classes."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._engine import GaussianMechanism, Procedure
from ..._rows import RowMap, Whitening
from ...components.protocols import FloatArray
from ..stage import Fit, Price, Stage
from ..statistics import Learner, Learning
from .geometry import moments_query
from .mapping import clips, widening

#: Share of mu squared for a second moment.
_MOMENT_SHARE = 0.03
#: Largest noise of a useful second moment, as a fraction of the mean eigenvalue if rows had half the
#: largest length.
_MOST_NOISE = 0.6
#: Eigenvalues are raised by this fraction of the noise.
_RAISED_BY_NOISE = 0.5
#: They are raised by this fraction of their mean if that is larger.
_RAISED = 0.05

#: Share of mu squared for the second moments that map the rows of a regression.
_MAP_SHARE = 0.1
#: Number of these. The second one is that of mapped rows, whose small eigenvalues are larger.
_MAP_ROUNDS = 2
#: Largest noise in them, in mean eigenvalues of rows of the largest length. Of 54 problems with 10 to 100
#: columns, none lost more than 0.002 of R2 below it, and many lost above it.
_MOST_NOISE_OF_MAP = 0.9
#: Fewest rows, times mu, for a map: with fewer, two small tables lost up to 0.5 of R2.
_FEWEST_OF_MAP = 400.0
#: Eigenvalues are raised by this fraction of the noise before they are inverted.
_FLOOR = 0.5
#: They are raised by this fraction of the largest one if that is larger, for rounding.
_LEAST_FLOOR = 1e-9
#: Mapped rows are cut at this multiple of their root mean square length.
_LENGTHS = 2.0
#: Factor of the largest second moment, since rows of another map were cut before it was known.
_MARGIN = 1.5
#: The constant in rows whose second moment also tells their mean.
_CONSTANT = 0.3


def second_moment_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for :func:`noisy_second_moment`, from public facts; 0 if noise would hide it."""
    noise = math.sqrt(2 * n_features / _MOMENT_SHARE) / (mu * n_rows)
    return _MOMENT_SHARE if noise <= _MOST_NOISE / (4 * n_features) else 0.0


@dataclass(frozen=True)
class SecondMoment:
    """Estimated eigenvalues (n_features,) and eigenvectors (in columns) of the mean of ``x x^T``.

    ``noise`` is the largest eigenvalue of the noise alone.
    """

    values: FloatArray
    vectors: FloatArray
    noise: float

    def preconditioner(self, intercept: float | None) -> tuple[FloatArray, float]:
        """A matrix (d_in, d_in) that preconditions descent, and a bound on the moments of rows under it.

        It is ``a (M + r I)^-1`` with the second moment M. The factor ``a`` keeps the mean square of the
        outputs of noise as without the matrix.
        """
        added = max(_RAISED_BY_NOISE * self.noise, _RAISED * float(self.values.mean()))
        values = self.values if intercept is None else np.append(self.values, intercept**2)
        factors = 1 / (values + added)
        outputs = float(np.sum(values * factors**2))
        factors *= math.sqrt(values.sum() / outputs) if outputs > 0 else added
        n_features = len(self.values)
        matrix = np.diag(factors)
        matrix[:n_features, :n_features] = (self.vectors * factors[:n_features]) @ self.vectors.T
        return matrix, float((factors * (values + self.noise)).max())


def noisy_matrix(
    learner: Learner, width: int, multiplier: GaussianMechanism | float
) -> Learning[tuple[FloatArray, float]]:
    """The symmetric mean of ``x x^T`` over rows of this width, and the largest eigenvalue of its noise.

    *Guarantee*: one Gaussian release of this multiplier. A row adds ``x x^T``, clipped to length 1.

    Source: Dwork, Talwar, Thakurta and Zhang 2014, "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis".
    """
    query = moments_query(np.eye(width), learner.dtype)  # products with the identity: all entries
    total, scale = yield from learner.ask(multiplier, query)
    return (total + total.T) / (2 * learner.n_rows), scale / learner.n_rows * math.sqrt(2 * width)


def noisy_second_moment(learner: Learner, n_features: int, multiplier: float) -> Learning[SecondMoment]:
    """The second moment of rows of at most unit length and of this width, without an intercept column.

    *Guarantee*: that of :func:`noisy_matrix`.
    """
    matrix, noise = yield from noisy_matrix(learner, n_features, multiplier)
    values, vectors = np.linalg.eigh(matrix)
    return SecondMoment(np.maximum(values, 0), vectors, noise)


def map_share(mu: float, n_rows: int, n_features: int) -> float:
    """Share of mu squared for the second moments of a map, from public facts; 0 if noise would hide them."""
    noise = math.sqrt(2 * n_features / _MAP_SHARE) / (mu * n_rows)
    enough = mu * n_rows >= _FEWEST_OF_MAP
    return _MAP_SHARE if enough and noise * n_features <= _MOST_NOISE_OF_MAP else 0.0


@dataclass(frozen=True)
class MomentMap:
    """A map of rows to about the same second moment in all directions that noise does not hide.

    ``row_map`` bounds their length. ``moments`` (n_features,) are estimated second moments of mapped rows,
    0 where noise hides them, and ``largest`` is at least as large as any of them.
    """

    row_map: RowMap
    moments: FloatArray
    largest: float

    @classmethod
    def of(cls, row_map: RowMap, matrix: FloatArray, noise: float, times: float) -> "MomentMap":
        """The map ``(M + f I)^(-1/2)`` after an earlier one, for the noisy second moment M of its rows.

        The floor f is at the edge of the ``noise``. If rows have a constant, ``matrix`` has their mean too,
        which is subtracted. The bound is ``times`` the usual one.
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
        return cls(mapped, values / raised / length**2, _MARGIN * largest / length**2)


class Preconditioner(Stage):
    """Directions of descent and the length of steps for classes; a map of the rows of a regression."""

    name = "second moment"
    limits = (_MOMENT_SHARE, _MAP_SHARE)
    reopens = True

    def price(self, fit: Fit) -> Price | None:
        columns, row_map, settings = fit.mapping.columns, fit.mapping.row_map, fit.settings
        if not fit.preconditions or row_map.unit_first:
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
        queries = noisy_second_moment(fit.learner, fit.data.n_features, fit.budget.multiplier(price))
        moment = yield from fit.ask(queries, replace(fit.mapping.row_map, intercept_value=None))
        matrix, largest = moment.preconditioner(constant)
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
            moment_map = MomentMap.of(row_map, matrix, noise, widening(fit))
            row_map = moment_map.row_map
        moments, largest, constant = moment_map.moments, moment_map.largest, None
        if settings.fit_intercept:  # whose curvature is that of the strongest direction
            constant, moments = math.sqrt(largest), np.append(moments, largest)
        row_map = replace(row_map, intercept_value=constant)
        if not settings.center:  # the constant and the rows may then have a common direction
            largest *= 2
        return fit.spent(self, price).mapped(row_map=row_map, second_moment=largest, moments=moments)
