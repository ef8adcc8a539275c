"""Parameters of a row map from public rows: scaling of columns, and whitening by within-class differences."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.blas import dtrmm

from .._linear.arrays import Array, FloatArray, astype, in_library_of, row_norms
from .._linear.sums import dot_error
from .._utils.validation import FRACTION, POSITIVE, check

#: Entries of standardised columns are cut at this many spreads.
_CUT_IN_SPREADS = 8.0

#: Interquartile range of a normal distribution of spread 1.
IQR = 1.349

#: Columns are standardised if their effective number is below this.
_FEW_COLUMNS = 6.0
#: It must also be below this fraction of the number of columns.
_FEW_OF_COLUMNS = 0.4

#: Tables of at most this number of columns are always standardised.
_NARROW = 10

#: Columns are also standardised if their centre is farther from 0 than this multiple of the spread of the
#: rows.
_FAR_IN_SPREADS = 10.0

#: Weight of the identity in the shrunk within-class covariance. On images, text and tables, with 2 to 20
#: public rows per class, 0.9 gained 0 to 2 points compared with no whitening. A smaller weight loses accuracy
#: with 2 rows per class.
_SHRINKAGE = 0.9

#: Smallest weight of the identity in the shrunk covariance of a single group. On 11 tables with targets, 0.05
#: gained up to a point where columns are correlated, and lost up to a point elsewhere. Other rows may vary
#: where those of the group do not.
_LEAST_SHRINKAGE = 0.5

#: Variance counts as spread out if it is spread over more than this number of directions.
_SPREAD_OUT = 25.0
#: Directions are kept if the total step times their variance is at least this.
_LEAST_REACH = 10.0
#: Number of directions that a projection seldom exceeds.
_USUALLY_KEPT = 64

#: Directions below this fraction of the largest scatter count as flat.
_FLAT = 1e-10

#: The Gram matrix of rows is decomposed if their number is less than this fraction of the features. This is
#: faster, but the directions must then be made orthonormal.
_ROWS_PER_FEATURE = 0.75

#: Smallest factor with which whitened rows are measured by their products. Smaller ones would magnify its
#: rounding.
_LEAST_FACTOR = 1 / 16

#: Directions with which sparse rows are measured at a time: caches do not hold 20,000 columns of more.
_IN_CACHE = 32

#: Lengths of whitened rows are bounded by this many directions, if there are at least the second number.
_FEW_DIRECTIONS, _MANY_DIRECTIONS = 5, 48


@dataclass(frozen=True)
class Columns:
    """Columns ``(x - center) factor``, cut at ``cut`` on both sides; both (n_features,), factors positive."""

    center: FloatArray
    factor: FloatArray
    cut: float = _CUT_IN_SPREADS

    def check_for(self, n_features: int) -> None:
        """Refuse values that columns of this number cannot have, such as those of a forged file."""
        check("cut", self.cut, POSITIVE)
        for name in ("center", "factor"):
            check_numbers(f"columns.{name}", vars(self)[name], (n_features,))

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Standardised columns of (n, n_features) rows in double precision; new, or in ``out``."""
        if not isinstance(X, np.ndarray):
            centred = (X - in_library_of(X, self.center)) * in_library_of(X, self.factor)
            return centred.clip(-self.cut, self.cut)
        with np.errstate(over="ignore"):  # overflow becomes the cut
            out = np.subtract(X, self.center, out=out, dtype=np.float64)
            out *= self.factor
        return np.clip(out, -self.cut, self.cut, out=out)

    def at(self, values: FloatArray, indices: NDArray[np.integer[Any]]) -> FloatArray:
        """Standardised entries (m,) of the columns with these ``indices`` (m,)."""
        return np.asarray(Columns(self.center[indices], self.factor[indices], self.cut)(values))

    def of_zeros(self) -> FloatArray:
        """Standardised columns (n_features,) of a row of zeros."""
        return np.asarray(self(np.zeros((1, len(self.center))))[0])


def columns_of(X: FloatArray, *, centred: bool = True, balanced: bool = False) -> Columns | None:
    """The columns of public rows (n, n_features) at spread 1, or None if rows need no scaling.

    The spread is the standard deviation, or the interquartile range in units of a normal distribution's if
    larger. With ``balanced``, that of two values is at least half their distance, as if equally frequent.
    """
    if len(X) < 2:
        return None
    # In units of the largest entry, since squares of huge or tiny ones are inf or 0.
    size = np.abs(X).max(axis=0)
    unit = X / np.where(size == 0, 1.0, size)
    center = unit.mean(axis=0, dtype=np.float64)
    low, high = np.quantile(unit, [0.25, 0.75], axis=0)
    spread = np.maximum((high - low) / IQR, np.sqrt(np.mean((unit - center) ** 2, axis=0)))
    # Rounding of their mean gives equal entries a small spread, which counts as 0.
    spread[spread <= 1e-14] = 0.0
    center = center * size if centred else np.zeros_like(center)
    if not worth_scaling(center, spread * size):
        return None
    if balanced:
        low, high = unit.min(axis=0), unit.max(axis=0)
        two_valued = ((unit == low) | (unit == high)).all(axis=0)
        spread = np.where(two_valued, np.maximum(spread, (high - low) / 2), spread)
    with np.errstate(divide="ignore", over="ignore"):
        factor = np.where(spread > 0, 1 / spread / size, 1.0)
    factor[~np.isfinite(factor)] = 1.0
    return Columns(center, factor)


def worth_scaling(center: FloatArray, spread: FloatArray) -> bool:
    """Whether columns should be standardised, by the centre and the spread (n_features,) of each.

    They should if they are few, if a few hold most of the squared length of rows, or if the centre is so far
    from 0 that rows of unit length would all be alike.
    """
    largest, farthest = float(spread.max(initial=0.0)), float(np.abs(center).max(initial=0.0))
    if not (0 < largest < math.inf and farthest < math.inf):
        return False
    # In units of the largest number, since powers of huge or tiny ones are inf or 0.
    effective = effective_columns((spread / largest) ** 2)
    few = len(spread) <= _NARROW or effective < min(_FEW_OF_COLUMNS * len(spread), _FEW_COLUMNS)
    unit = max(largest, farthest)
    return few or float(np.linalg.norm(center / unit)) > _FAR_IN_SPREADS * float(
        np.linalg.norm(spread / unit)
    )


def effective_columns(energies: FloatArray) -> float:
    """Effective number of columns of these mean squares ``e`` (n_features,): ``(sum e)^2 / sum e^2``."""
    return float(np.sum(energies)) ** 2 / float(np.sum(energies**2))


def second_moment(X: FloatArray) -> FloatArray:
    """The smaller of the products ``X^T X`` and ``X X^T`` of rows (n, n_features), divided by n."""
    return np.asarray((X @ X.T if len(X) < X.shape[1] else X.T @ X) / len(X))


def is_spread_out(moment: FloatArray) -> bool:
    """Whether the variance of centred rows of this second moment is spread over more than 25 directions."""
    # Their number is ``(sum l)^2 / sum l^2`` for variances ``l``.
    return float(np.trace(moment)) ** 2 > _SPREAD_OUT * float(np.vdot(moment, moment))


def n_groups(y: NDArray[np.integer[Any]]) -> int:
    """Number of classes (n,), or of independent groups that labels (n, k) may form: one more than labels."""
    return len(np.unique(y)) if y.ndim == 1 else y.shape[1] + 1


@dataclass(frozen=True)
class Whitening:
    """A symmetric linear map that shortens the directions in which rows of one class differ.

    The noise is in proportion to the longest row, and differences within classes tell nothing about classes.
    """

    directions: FloatArray  # (r, n_features), orthonormal
    factors: FloatArray  # (r,), in (0, 1], of lengths along the directions
    rest: float = 1.0  # the factor in all others, in [0, 1]: 0 projects on the directions

    def __post_init__(self) -> None:
        # Each product would copy directions of another memory layout, and might round differently.
        object.__setattr__(self, "directions", np.ascontiguousarray(self.directions))

    def check_for(self, n_features: int) -> None:
        """Refuse values that no whitening of this many features has, such as those of a forged file."""
        check("rest", self.rest, FRACTION)
        check_numbers("whitening.factors", self.factors, np.shape(self.factors)[:1])
        check_numbers("whitening.directions", self.directions, (len(self.factors), n_features))

    @classmethod
    def of(
        cls, X: FloatArray, y: NDArray[np.integer[Any]], shrinkage: float | None = None
    ) -> "Whitening | None":
        """The whitening of rows (n, n_features) with classes (n,) or labels (n, k); None if no rows differ.

        With the scatter within classes ``S = 1 / (n - classes) sum_i d_i d_i^T``, ``d_i`` being rows less the
        mean of their class, it is ``C^(-1/2)`` up to a factor, for ``C = (1 - s) S + s trace(S) / d I``:
        Hatch and Stolcke 2006, "Generalized linear kernels for one-versus-all classification" (within-class
        covariance normalisation), shrunk.

        Rows with several labels are taken less their least-squares prediction by labels. A single group has
        no differences between classes that could be lost. There s is the share that Ledoit and Wolf 2004, "A
        well-conditioned estimator for large-dimensional covariance matrices", estimate from the rows, and at
        least 0.5 and ``d / (d + n)``. A ``shrinkage`` takes the place of s.
        """
        count = n_groups(y)
        n_free = len(X) - count
        if n_free < 1:
            return None
        if y.ndim == 2:
            regressors = np.column_stack([np.ones(len(X)), y])
            deviations = X - regressors @ np.linalg.lstsq(regressors, X)[0]
        else:
            index = np.unique(y, return_inverse=True)[1]
            sizes = np.bincount(index)
            by_class = X[np.argsort(index, kind="stable")]
            totals = np.add.reduceat(by_class, np.cumsum(sizes) - sizes)
            deviations = X - (totals / sizes[:, np.newaxis])[index]
        # The largest entry is divided out first, since squares of huge or tiny entries are inf or 0.
        size = float(np.abs(deviations).max(initial=0.0))
        if not 0 < size < np.inf:
            return None
        rows = deviations / size / np.sqrt(n_free)
        few = len(rows) < _ROWS_PER_FEATURE * X.shape[1]  # the smaller Gram matrix
        values, vectors = np.linalg.eigh(rows @ rows.T if few else rows.T @ rows)
        uneven = values > _FLAT * values[-1]
        scatter, directions = values[uneven], vectors[:, uneven].T
        if few:
            directions = directions @ rows / np.sqrt(scatter)[:, np.newaxis]
            # The Gram matrix is inexact for directions of small scatter. These are nearly orthonormal, so
            # that the Cholesky factor of their products makes them orthonormal, in a tenth of the time of a
            # QR decomposition.
            strongest_first = np.ascontiguousarray(directions[::-1])  # products in another order are slow
            lower = np.linalg.cholesky(strongest_first @ strongest_first.T)
            directions = solve_triangular(lower, strongest_first, lower=True)[::-1]
        s = shrinkage
        if s is None:
            s = _SHRINKAGE if count > 1 else _shrinkage(rows, scatter)
        sphere = s * scatter.sum() / X.shape[1]
        return cls(directions, np.sqrt(sphere / ((1 - s) * scatter + sphere)))

    @classmethod
    def projection(cls, X: FloatArray, moment: FloatArray, n_classes: int, total_step: float) -> "Whitening":
        """The projection of centred unit rows (n, n_features) on directions that training reaches.

        Of their second ``moment``, directions of variance ``l`` with ``total_step l >= 10`` are kept, at
        least ``n_classes``. In all others, noise exceeds what the steps can learn.

        Source: Pinto, Hu, Yang and Sanyal 2023, "PILLAR: how to make semi-private learning more effective".
        The number of directions is ours.
        """
        n, least = len(moment), _LEAST_REACH / total_step
        # Those of the largest variance usually suffice, and take half the time of all.
        first = max(0, n - max(n_classes, _USUALLY_KEPT))
        variances, directions = eigh(moment, subset_by_index=(first, n - 1))
        if first and variances[0] >= least:
            variances, directions = eigh(moment)
        n_kept = max(n_classes, int(np.sum(variances >= least)))
        n_kept = min(n_kept, int(np.sum(variances > _FLAT * variances[-1])))
        directions = directions[:, -n_kept:]
        if len(X) < X.shape[1]:
            directions = np.linalg.qr(X.T @ directions)[0]
        return cls(directions.T, np.ones(n_kept), 0.0)

    @cached_property
    def in_parts(self) -> list[tuple[FloatArray, FloatArray]]:
        """Some directions at a time, as columns (n_features, r), and what they take off squares (r,)."""
        shorter = self.rest**2 - self.factors**2
        parts = [slice(start, start + _IN_CACHE) for start in range(0, len(shorter), _IN_CACHE)]
        return [(np.ascontiguousarray(self.directions[part].T), shorter[part]) for part in parts]

    @cached_property
    def factorised(self) -> tuple[FloatArray, ...]:
        """One or two matrices, whichever is faster; their product and ``rest`` make up the map."""
        shortened = self.directions * (self.factors - self.rest)[:, np.newaxis]
        n_directions, n_features = self.directions.shape
        if 2 * n_directions > n_features:
            return (self.directions.T @ shortened,)
        return self.directions.T, shortened

    @cached_property
    def rounding(self) -> float:
        """Bound on the error of a product with the map, by rounding in float64.

        In units of the lengths of what is multiplied. It covers a row that is whitened, and products of rows
        with whitened points, compared with those of whitened rows with points. A product of a row of length 1
        with an (n, r) matrix ``A`` is off by at most ``dot_error(n) |A|_F``; here two follow each other, of
        norms 1 and Frobenius norms ``sqrt(r)``, and their own product, where it is formed, is off by
        ``dot_error(r) r``. Source: Higham 2002, section 3.1.
        """
        n_directions, n_features = self.directions.shape
        roundings = dot_error(2 * (n_directions + n_features) + 16, np.dtype(np.float64))
        return float(roundings * (1 + n_directions))

    @cached_property
    def sum_rounding(self) -> float:
        """Bound on the rounding of a (k, d) matrix times the map, in units of the matrix's Frobenius norm.

        For the map as it is stored. A matrix ``A`` times one of ``r`` orthonormal rows is off by at most
        ``dot_error(d) |A|_F sqrt(r)``, what follows by ``dot_error(r) |A|_F sqrt(r)``, and the last addition
        by a roundoff. Source: Higham 2002, section 3.5.
        """
        n_directions, n_features = self.directions.shape
        roundings = dot_error(2 * (n_directions + n_features) + 16, np.dtype(np.float64))
        return float(roundings * (1 + math.sqrt(max(n_directions, n_features))))

    @cached_property
    def skew(self) -> float:
        """Bound on the distance of the directions from orthonormal ones, in the Frobenius norm."""
        gram = self.directions @ self.directions.T
        return float(np.linalg.norm(gram - np.eye(len(gram)))) + self.rounding

    def __call__(self, X: Array, precision: DTypeLike = np.float64) -> Array:
        """Whitened rows, new and in float64; columns after the n_features, such as intercepts, stay."""
        n_features = self.directions.shape[1]
        whitened = astype(X, np.float64, copy=True)
        change = astype(whitened[:, :n_features], precision)
        for matrix in self.factorised:
            change = change @ astype(in_library_of(X, matrix), precision)
        whitened[:, :n_features] *= self.rest
        whitened[:, :n_features] += change
        return whitened

    def of_rows(self, X: FloatArray, out: FloatArray) -> None:
        """Write whitened rows (n, n_features) to other memory; all is computed in their dtype."""
        *before, last = (matrix.astype(X.dtype) for matrix in self.factorised)
        if not before:
            last[np.diag_indices_from(last)] += self.rest
            np.matmul(X, last, out=out)
            return
        np.matmul(X @ before[0], last, out=out)
        if self.rest:
            out += X if self.rest == 1 else X * self.rest

    @cached_property
    def _is_precise(self) -> bool:
        """Whether products of rows tell the lengths of whitened ones with little rounding."""
        return bool(min(self.factors.min(initial=1.0), self.rest or 1.0) >= _LEAST_FACTOR)

    @cached_property
    def measuring(self) -> FloatArray:
        """Directions (r, n_features) whose products tell whitened lengths; none if that takes longer."""
        tells = 2 * len(self.factors) <= self.directions.shape[1] and self._is_precise
        return self.directions if tells else self.directions[:0]

    def measured(self, squares: FloatArray, along: FloatArray) -> FloatArray:
        """Lengths (n,) of whitened rows, from their squares (n,) and products with :attr:`measuring`."""
        whitened = self.rest**2 * squares + along**2 @ (self.factors**2 - self.rest**2)
        return np.asarray(np.sqrt(np.maximum(whitened, 0.0)))

    @cached_property
    def _root(self) -> FloatArray | None:
        """The lower triangle ``L`` with ``|x^T M| = |x^T L|``; None if its rounding would be large."""
        if not (self.rest and self._is_precise):
            return None
        shortened = self.directions * (self.rest**2 - self.factors**2)[:, np.newaxis]
        square = self.rest**2 * np.eye(self.directions.shape[1]) - self.directions.T @ shortened
        return np.asfortranarray(np.linalg.cholesky(square))

    def lengths(self, X: FloatArray) -> FloatArray:
        """Lengths (n,) of whitened rows (n, n_features), C-contiguous and in float64."""
        if (root := self._root) is not None:
            # Half of the products that whiten the rows; the zeros of one row take less time than the call.
            products = X @ root if len(X) == 1 else dtrmm(1.0, root, X.T, lower=1, trans_a=1).T
            return np.asarray(row_norms(products))
        whitened = np.empty_like(X)
        self.of_rows(X, whitened)
        return np.asarray(row_norms(whitened))

    @cached_property
    def strongest(self) -> FloatArray | None:
        """A few directions (r, n_features) that shorten rows most; None if they are a large part of all."""
        few = np.argsort(self.factors)[:_FEW_DIRECTIONS]
        return self.directions[few] if self.rest == 1 and len(self.factors) >= _MANY_DIRECTIONS else None

    def length_bounds(
        self, squares: FloatArray, along: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds (n,) on whitened lengths, from squares and products with the :attr:`strongest`.

        Squares (n,) are off by at most ``error`` (n,), and products by its part of the length of the row.
        """
        factors, shares = np.sort(self.factors) ** 2, along**2
        few = along.shape[1]
        rest = np.maximum(squares - shares.sum(axis=1), 0.0)
        most = factors[-1] if len(factors) == self.directions.shape[1] else 1.0
        low, high = (shares @ factors[:few] + factor * rest for factor in (factors[few], most))
        # No factor exceeds 1, and squared products together are off by at most ``3 sqrt(few)`` errors.
        error = (2 + 6 * math.sqrt(few)) * error
        return np.sqrt(np.maximum(low - error, factors[0] * np.maximum(squares - error, 0.0))), np.sqrt(
            high + error
        )

    def of_points(self, points: FloatArray) -> FloatArray:
        """Whitened points (m, n_features); those of the last call are kept, which predictions need again."""
        last = vars(self).get("_last")
        if last is None or not np.array_equal(last[0], points):
            last = points.copy(), self(points)
            object.__setattr__(self, "_last", last)
        return np.asarray(last[1])


def _shrinkage(rows: FloatArray, scatter: FloatArray) -> float:
    """Weight of the identity for centred rows (n, d) divided by sqrt(n), with these eigenvalues (r,)."""
    n_rows, n_features = rows.shape
    squares = float(scatter @ scatter)
    away = squares - float(scatter.sum()) ** 2 / n_features
    chance = float(np.sum(np.einsum("ij,ij->i", rows, rows) ** 2)) - squares / n_rows
    estimated = chance / away if away > 0 else 1.0
    return float(min(1.0, max(estimated, n_features / (n_features + n_rows), _LEAST_SHRINKAGE)))


# -- values that were read from a file ---------------------------------------------------


def check_numbers(name: str, array: object, shape: tuple[int, ...]) -> None:
    """Refuse what is not a finite array of floats of this shape."""
    array = np.asarray(array)
    if array.dtype.kind != "f" or array.shape != shape or not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} of shape {array.shape} and type {array.dtype} is not a finite array of {shape}"
        )


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse an object of another class, also of one that is derived from it."""
    if type(value) is not kind:
        raise ValueError(f"{name} is not a {kind.__name__}")
