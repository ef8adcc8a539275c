"""Private rows in a sparse matrix, centred and whitened without being made dense.

For a sparse row ``x`` with support ``S``, a mean ``m``, a factor ``s`` and an intercept ``v``, the head
sees ``x' = (s (x - m), v)``, which is dense. Neither its products nor its length need it:
``p^T x' = s (x^T p - m^T p) + v p_b``, and ``|x - m|^2`` is the sum over ``S`` of ``(x_j - m_j)^2`` plus the
part of ``|m|^2`` outside ``S``. All of it is computed in float64.

A whitening ``M`` would leave no zeros: ``x' = (s M (x - m), v)``. It is applied to points before
their products and to sums after them, since ``p^T M (x - m) = (M p)^T (x - m)``;
here it enters ``s`` and the lengths alone, by the few products of ``x - m`` with its directions.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._linear.arrays import FloatArray, largest_entries, row_slices
from .._linear.sums import SHORTEST_DIFFERENCE, Cascade, dot_error
from .._utils.validation import check_finite
from .blockwise import Arithmetic, BlockRows, Selection, Visit, block_size, check_lengths
from .row_map import RowMap
from .source import Block, Labels, PrivateRows, Table

#: Entries of a block of rows, so that its products take at most a few MiB.
_BLOCK_ENTRIES = 2**18

#: Assumed entries per row for the size of a block, since the true number is private.
_ENTRIES_PER_ROW = 128

#: Most rows of a block because of the number of features.
_MOST_ROWS = 2**14

#: Rows for which the outputs of a head are computed together.
_BLOCK_ROWS = 8192

#: Smaller lengths count as 0, since their inverse could overflow.
_TINY = 1e-280

_SLACK = 1 + 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CenteredSparseRows:
    """Factors and bounds of mapped sparse rows that are kept, each array of shape (n,), float64."""

    factors: FloatArray  # ``s``
    #: Upper bounds on the lengths of the mapped rows, whitening and intercept included, never below the true
    #: ones and above them by little more than rounding.
    norms: FloatArray
    #: ``s (|x| + |m|) + v``, the size of the terms whose difference products are, with which their rounding
    #: grows; more with a whitening, for that of points.
    rounding_scale: FloatArray
    #: Upper bounds on the largest absolute entries; with a whitening, lengths: :func:`whitened_entries`.
    max_abs: FloatArray


# The length of a row that overflows is NaN or infinite, and such rows are refused.
@np.errstate(over="ignore", invalid="ignore")
def centered_sparse_rows(X: "sp.csr_array[Any]", row_map: RowMap) -> CenteredSparseRows:
    """Factors and bounds of mapped CSR rows (n, n_features) without duplicate entries.

    A row that lies nearer to the mean than a thousandth of ``|x| + |m|`` comes out shorter than 1, and its
    length is stated as if it did not lie nearer. So no sum has terms that are a thousand times longer than
    what is known of their differences.

    With ``a`` the largest entry of row and mean, all is computed on ``x / a`` and ``m / a``, whose squares
    neither overflow nor vanish. The sum over the support is a sum of squares; the part of ``|m|^2`` outside
    is a difference, off by at most ``dot_error(d + 16)`` times ``2 |m|^2``, which is added. Source: Higham
    2002, section 3.1.

    A whitening with orthonormal directions ``u_j``, factors ``f_j`` and ``r`` in the rest makes the square
    ``r^2 |x - m|^2 - sum_j (r^2 - f_j^2) (u_j^T (x - m))^2``. With ``e`` the bound, in units of ``|x| +
    |m|``, on the errors of these products and on what tells the map from one whose directions are
    orthonormal, the difference of the squares is off by less than ``4 e (|x| + |m|)^2``, and the length by
    ``e (|x| + |m|)``.
    """
    n_features = X.shape[1]
    values = X.data.astype(np.float64)
    mean = np.zeros(n_features) if row_map.mean is None else row_map.mean
    below = mean[X.indices]
    largest_mean = float(np.abs(mean).max(initial=0.0))
    unit = np.maximum(_reduce(np.maximum, np.abs(values), X.indptr), largest_mean)
    unit[unit == 0] = 1.0
    counts = np.diff(X.indptr)
    units = np.repeat(unit, counts)
    differences = values - below
    largest = np.maximum(_reduce(np.maximum, np.abs(differences), X.indptr), largest_mean)
    inside = _reduce(np.add, (differences / units) ** 2, X.indptr)
    uncentred = _reduce(np.add, (values / units) ** 2, X.indptr)
    covered = _reduce(np.add, (below / units) ** 2, X.indptr)
    mean_length = largest_mean * math.sqrt(float(np.sum((mean / (largest_mean or 1.0)) ** 2)))
    whole = (mean_length / unit) ** 2
    slack = dot_error(n_features + 16, np.dtype(np.float64)) * (inside + 2 * whole)
    squares = inside + np.maximum(whole - covered, 0) + slack
    sizes = np.sqrt(uncentred) + np.sqrt(whole)
    scaled = sp.csr_array((values / units, X.indices, X.indptr), shape=X.shape)

    def along(directions: FloatArray) -> FloatArray:
        products = np.asarray(scaled @ directions)
        if largest_mean:
            products -= np.outer(largest_mean / unit, (mean / largest_mean) @ directions)
        return products

    return mapped_lengths(row_map, squares, sizes, unit, largest, along)


@np.errstate(over="ignore", invalid="ignore")
def mapped_lengths(
    row_map: RowMap,
    squares: FloatArray,
    sizes: FloatArray,
    unit: FloatArray,
    largest: FloatArray,
    along: Callable[[FloatArray], FloatArray],
) -> CenteredSparseRows:
    """Factors and bounds of mapped rows, from those of centred ones, each array of shape (n,).

    ``squares`` are upper bounds on ``|x - m|^2``, ``sizes`` are ``|x| + |m|``, both in units ``unit`` of each
    row, and ``largest`` upper bounds on the entries of ``x - m``. ``along`` gives products (n, r) of ``x -
    m`` with directions (n_features, r) in those units.
    """
    whitening, rounding_scale = row_map.whitening, 1.0
    if whitening is None:
        lengths = unit * np.sqrt(squares) * _SLACK
    else:
        off = 3 * whitening.rounding + 2 * whitening.skew
        cut = sum(along(columns) ** 2 @ shorter for columns, shorter in whitening.in_parts)
        shortened = np.maximum(whitening.rest**2 * squares - cut, 0)
        lengths = unit * (np.sqrt(shortened + 4 * off * sizes**2) + off * sizes) * _SLACK
        n_features = whitening.directions.shape[1]
        rounding_scale += whitening.rounding / dot_error(n_features + 1, np.dtype(np.float64))
    sizes = sizes * unit
    if row_map.normalize:
        divisors = np.maximum(lengths, SHORTEST_DIFFERENCE * sizes if row_map.mean is not None else 0.0)
        if row_map.bound is not None:
            divisors = np.maximum(divisors, row_map.bound)
        factors = 1 / np.where(divisors > _TINY, divisors, 1.0)
    else:
        factors = np.ones(len(squares))
    value = row_map.intercept_value or 0.0
    norms = np.hypot(factors * np.maximum(lengths, SHORTEST_DIFFERENCE * sizes), value) * _SLACK
    return CenteredSparseRows(
        factors,
        norms,
        rounding_scale * factors * sizes * _SLACK + abs(value),
        np.maximum(factors * largest * _SLACK, abs(value)) if whitening is None else norms,
    )


def whitened_entries(X: "sp.csr_array[Any]", factors: FloatArray, row_map: RowMap) -> FloatArray:
    """Upper bounds (n,) on absolute entries of a few mapped CSR rows, which are made dense and whitened."""
    assert row_map.whitening is not None
    rows = X.astype(np.float64).toarray()
    if row_map.mean is not None:
        rows -= row_map.mean
    rows *= factors[:, np.newaxis]
    rounding = row_map.whitening.rounding + 4 * float(np.finfo(np.float64).eps)
    # (Not with lengths themselves, since those of tiny rows would underflow.)
    lengths = math.sqrt(rows.shape[1]) * (1 + 2**-32) * largest_entries(rows)
    entries = largest_entries(row_map.whitening(rows)) + rounding * lengths
    return np.asarray(np.maximum(entries, abs(row_map.intercept_value or 0.0)))


def scaled_first(X: "sp.csr_array[Any]", row_map: RowMap) -> tuple[Any, RowMap]:
    """CSR rows after the scaling that precedes centring, and the rest of the map."""
    # Scaling columns and rows keeps rows sparse. A centre of columns makes zeros into a row of constants,
    # which joins the mean; rows that are first scaled to unit length must not have one.
    columns, mean = row_map.columns, row_map.mean
    if columns is None and not row_map.unit_first:
        return X, row_map
    values: FloatArray = X.data.astype(np.float64)
    if columns is not None:
        zeros = columns.of_zeros()
        if zeros.any():
            if row_map.unit_first:
                raise RuntimeError("sparse rows of unit length have no centre of columns.")
            mean = -zeros if mean is None else mean - zeros
        values = columns.at(values, X.indices) - zeros[X.indices]
    if row_map.unit_first:
        # The largest entry is divided out first, since squares of huge or tiny entries are inf or 0.
        values = _divided(values, _reduce(np.maximum, np.abs(values), X.indptr), X.indptr)
        values = _divided(values, np.sqrt(_reduce(np.add, values**2, X.indptr)), X.indptr)
    scaled = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return scaled, replace(row_map, columns=None, mean=mean, unit_first=False)


def centered_products(
    X: "sp.csr_array[Any]", factors: FloatArray, row_map: RowMap, points: FloatArray
) -> FloatArray:
    """Products (n, m) of mapped CSR rows with points (m, d_in), whitened ones if the map whitens, float64."""
    n_features = X.shape[1]
    bare = np.asarray(points[:, :n_features], dtype=np.float64)
    Z = np.asarray(X.astype(np.float64, copy=False) @ bare.T)
    if row_map.mean is not None:
        Z -= bare @ row_map.mean
    Z *= factors[:, np.newaxis]
    if row_map.intercept_value is not None:
        Z += row_map.intercept_value * points[:, n_features]
    return Z


def centered_weighted_sum(
    X: "sp.csr_array[Any]", factors: FloatArray, row_map: RowMap, C: FloatArray
) -> FloatArray:
    """``sum_i c_i x'_i^T`` (k, d_in) of mapped CSR rows, to be whitened if the map whitens, float64."""
    weights = C.astype(np.float64) * factors[:, np.newaxis]
    total = np.asarray(weights.T @ X.astype(np.float64, copy=False))
    if row_map.mean is not None:
        total = total - np.outer(weights.sum(axis=0), row_map.mean)
    if row_map.intercept_value is not None:
        column = row_map.intercept_value * C.sum(axis=0, dtype=np.float64)
        total = np.concatenate([total, column[:, np.newaxis]], axis=1)
    return total


def part_of(X: Any, rows: slice | NDArray[np.intp]) -> Any:
    """Some of the rows: those of a slice of a CSR array share its memory."""
    if not (isinstance(rows, slice) and isinstance(X, sp.csr_array)):
        return X[rows]
    starts = X.indptr[rows.start : rows.stop + 1]
    entries = slice(starts[0], starts[-1])
    shape = rows.stop - rows.start, X.shape[1]
    return sp.csr_array((X.data[entries], X.indices[entries], starts - starts[0]), shape=shape)


def canonical(X: Any) -> Any:
    """The rows in CSR form, in which each entry is stored only one time."""
    # SciPy cannot convert rows of half precision.
    X = sp.csr_array(X.astype(np.float32) if X.dtype == np.float16 else X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _divided(values: FloatArray, sizes: FloatArray, starts: NDArray[Any]) -> FloatArray:
    """The entries of each row divided by a size of that row; by 1 where the size is 0."""
    return np.asarray(values / np.repeat(np.where(sizes == 0, 1.0, sizes), np.diff(starts)))


def _reduce(operation: np.ufunc, values: FloatArray, starts: NDArray[Any]) -> FloatArray:
    """Sums, or another operation on the entries of each row, shape (n,); 0 for an empty row."""
    result = np.zeros(len(starts) - 1)
    filled = np.diff(starts) > 0  # an empty row would get the first entry of the next one
    if filled.any():
        result[filled] = operation.reduceat(values, starts[:-1][filled])
    return result


class SparseRows(BlockRows):
    """Private rows in a CSR matrix ``X`` (n_rows, n_features), which is not copied, mapped by linearity.

    Products are computed in float64, and queries receive them in ``dtype``. ``measure`` finds the factors and
    bounds of mapped rows; other rows than CSR have one of their own.

    *Guarantee*: a row's contribution is its weighted residual times ``s (x - m)``, whitened where the map
    whitens, in float64 and by linearity. The norm by which it is clipped is never below the true length of
    that vector.
    """

    def __init__(
        self,
        X: Any,
        y: Labels,
        row_map: RowMap,
        dtype: np.dtype[Any],
        measure: Callable[..., CenteredSparseRows] = centered_sparse_rows,
    ) -> None:
        self._X = X
        self._map = row_map
        self.whitening = row_map.whitening
        self._dtype = np.dtype(dtype)
        self.n_rows, n_features = X.shape
        # Each block adds a (k, d_in) sum to the total, so it should have more entries than that.
        entries = max(_BLOCK_ENTRIES, 4 * n_features)
        rows = entries // min(_ENTRIES_PER_ROW, max(n_features, 1))
        block_rows = block_size(max(rows, min(n_features, _MOST_ROWS)))
        # A bound on the terms of two sums that are subtracted, in units of their difference.
        longer = 4 / SHORTEST_DIFFERENCE
        later = () if self.whitening is None else (self.whitening.sum_rounding / SHORTEST_DIFFERENCE,)
        self.arithmetic = Arithmetic(np.float64, 0, block_rows, stretch=longer, later=later)
        parts = [measure(part_of(X, rows), row_map) for rows in row_slices(self.n_rows, block_rows)]
        self._factors = np.concatenate([part.factors for part in parts])
        norms = np.concatenate([part.norms for part in parts])
        check_lengths(norms, self._dtype)
        # Differences of larger products are rounded in float64, and stated in units of this dtype.
        ratio = 4 * float(np.finfo(np.float64).eps / np.finfo(self._dtype).eps)
        rounding_scale = norms + ratio * np.concatenate([part.rounding_scale for part in parts])
        max_abs = np.concatenate([part.max_abs for part in parts])
        bounds = (lambda: max_abs) if row_map.whitening is None else self._whitened_max_abs
        self._all = Block(None, y, norms, bounds, lambda: rounding_scale)

    def _whitened_max_abs(self) -> FloatArray:
        """Bounds on entries of whitened rows; only entrywise clips need them."""
        block_rows = max(_BLOCK_ENTRIES // self._X.shape[1], 1)
        parts = row_slices(self.n_rows, block_rows)
        bounds = [whitened_entries(part_of(self._X, part), self._factors[part], self._map) for part in parts]
        return np.asarray(np.minimum(np.concatenate(bounds), self._all.norms))

    def visits(self, blocks: Sequence[Selection], block_rows: int, m: int) -> Iterator[Visit]:
        for rows in blocks:
            of_rows = part_of(self._X, rows), self._factors[rows], self._map
            yield Visit(rows, self._all.of(rows), partial(self._times, of_rows), partial(_add_sum, of_rows))

    def _times(self, of_rows: tuple[Any, FloatArray, RowMap], points: FloatArray) -> FloatArray:
        return centered_products(*of_rows, points).astype(self._dtype, copy=False)


def _add_sum(of_rows: tuple[Any, FloatArray, RowMap], C: FloatArray, total: Cascade, _: int) -> None:
    total.add(centered_weighted_sum(*of_rows, C))


def check_indices(X: object, name: str) -> None:
    """Refuse sparse rows with indices outside of their shape, which would read outside of the memory."""
    if not hasattr(X, "check_format"):  # other formats cannot have such indices
        return
    try:
        X.check_format(full_check=True)
    except ValueError:
        raise ValueError(
            f"{name} is a damaged sparse matrix, whose indices do not fit its shape; build it anew."
        ) from None


class SparseTable(Table):
    """A sparse matrix that a user passed."""

    def __init__(self, X: Any) -> None:
        if len(X.shape) != 2:
            raise ValueError(f"X has shape {X.shape}, not (n_samples, n_features); pass a sparse table.")
        check_indices(X, "X")
        self._X = canonical(X)
        self.shape: tuple[int, int] = self._X.shape

    def check(self, name: str, *, finite: bool = True) -> None:
        if self._X.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers; encode everything else first.")
        check_finite(np.isfinite(self._X.data).all(), name)

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            raise ValueError(
                "noise='discrete' needs rows on a grid, which centred sparse rows are not on; pass "
                "X.toarray(), or noise='float'."
            )
        if row_map.columns is None and row_map.unit_first:
            return SparseRows(self._at_unit_length, y, replace(row_map, unit_first=False), dtype)
        X, row_map = scaled_first(self._X, row_map)
        return SparseRows(X, y, row_map, dtype)

    @cached_property
    def _at_unit_length(self) -> Any:
        """The rows at unit length, which most stages of a fit begin with."""
        return scaled_first(self._X, RowMap(None, False, None, unit_first=True))[0]

    def blocks(self) -> Iterator[Any]:
        return (part_of(self._X, rows) for rows in row_slices(self.shape[0], _BLOCK_ROWS))
