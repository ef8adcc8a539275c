"""The fixed row-wise map between a user's features and the rows that a head sees."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._linear.arrays import (
    Array,
    FloatArray,
    astype,
    in_library_of,
    largest_entries,
    largest_singular_value,
    namespace_of,
    row_dots,
    row_norms,
    row_slices,
)
from .._linear.products import is_narrow
from .._linear.sums import dot_error
from .._utils.process import in_parallel
from .._utils.validation import FLAG, POSITIVE, check, number
from .scaling import Columns, Whitening, check_kind, check_numbers

#: Bytes of rows that are centred and scaled at a time, so that they stay in cache.
_BLOCK_BYTES = 2**19
#: Fewest rows that are centred and scaled at a time.
_FEWEST_ROWS = 16

#: Blocks that one thread maps at a time.
_STEPS = 8

#: Fewest and most rows that are whitened in one product, which is much faster than many small ones.
_WHITENED_ROWS = 512, 4096
#: Bytes of these rows (about).
_WHITENED_BYTES = 2**24

#: Shortest length for single precision, in which squares do not underflow.
_SHORTEST = 1e-15
#: Longest length for single precision, in which squares do not overflow.
_LONGEST = 1e15

#: Entries of a row are kept within this when the row is centred.
_LARGEST = float(np.finfo(np.float64).max)

#: Constant of the intercept column without public rows; with public rows it is 0.3 to 0.5 on images, text and
#: tables. It is small, since uncentred rows of unit length have a common direction that acts like an
#: intercept.
_INTERCEPT = 0.3

#: Quantile of the lengths of public rows up to which rows keep their length.
_USUAL = 0.97

#: Fewest public rows for the usual length.
_FEWEST_LENGTHS = 10
#: With fewer, the length of rows of standardised columns is bounded by this multiple of the root of the
#: number of columns.
_SPREADS = 2.0

#: Clip of targets of unit scale, far beyond useful values.
_FARTHEST_TARGET = 1e15


class RowFunction(Protocol):
    """A function of one row: (n, n_features) rows, finite or not, to finite rows (n, width)."""

    @property
    def width(self) -> int: ...

    def __call__(self, X: FloatArray) -> FloatArray: ...

    def table_of(self, table: Any) -> Any:
        """The :class:`~skmixdp._rows.source.Table` of the results for the rows of another one."""


@dataclass(frozen=True, eq=False)
class RowMap:
    """Standardise columns, subtract a mean, whiten, scale rows by their L2 norm, append the intercept column.

    It acts on one row at a time. Its values are public or released, so applying it to private rows costs no
    privacy. A step is left out if its value is None.
    """

    mean: FloatArray | None  # (n_features,)
    #: Whether rows are scaled to unit length, or with a ``bound`` those that are longer than it to length 1
    #: and others in proportion. A row of zeros stays as it is.
    normalize: bool
    intercept_value: float | None
    whitening: Whitening | None = None
    #: Whether rows are also scaled to unit length before the mean is subtracted. It is then one of unit rows,
    #: which a noisy sum of bounded sensitivity can estimate.
    unit_first: bool = False
    columns: Columns | None = None
    bound: float | None = None
    #: In a fitted head, what makes the features of those that a user passes. Tables apply it, so row sources
    #: get maps without one.
    basis: RowFunction | None = None

    @classmethod
    def of(
        cls,
        X: FloatArray,
        center: bool,
        normalize: bool,
        fit_intercept: bool,
        y: NDArray[np.integer[Any]] | None = None,
        *,
        clip: bool = False,
        columns: Columns | None = None,
        shrinkage: float | None = None,
        square: float | None = None,
    ) -> "RowMap":
        """The row map with parameters from public rows (n, n_features); n may be 0.

        With class indices ``y`` of the first rows, it whitens. With ``clip`` it keeps the lengths of most
        rows. Mapped ``columns`` have a mean ``square`` length, or 1 each.
        """
        first = cls(None, normalize, None, columns=columns)
        if center and len(X):
            scaled = X if columns is None else columns(X)
            with np.errstate(over="ignore"):
                mean = scaled.mean(axis=0, dtype=np.float64)
            if not np.all(np.isfinite(mean)):
                raise ValueError(
                    "public rows have entries so large that their mean overflows; scale the features."
                )
            first = replace(first, mean=mean)
        if y is not None:
            first = replace(first, whitening=Whitening.of(first(X[: len(y)], np.float64), y, shrinkage))
        if clip and columns is not None and len(X) < _FEWEST_LENGTHS:
            first = replace(first, bound=_SPREADS * math.sqrt(X.shape[1] if square is None else square))
        elif clip and len(X):
            with np.errstate(over="ignore"):
                lengths = row_norms(replace(first, normalize=False)(X, np.float64))
            lengths = np.minimum(lengths, _LARGEST)  # quantiles of infinite lengths may be NaN
            # (A mean, as in np.median, may overflow.) A few rows may be much longer than the median.
            median, most = np.quantile(lengths, [0.5, _USUAL]).tolist()
            usual = min(most, 2 * median)
            first = replace(first, bound=usual if 0 < usual < math.inf else None)
        return first.with_intercept_for(X) if fit_intercept else first

    def check_for(self, n_features: int) -> int:
        """Refuse values that no map of these features has, as in a forged file; the width of bare rows."""
        d = n_features if self.basis is None else self.basis.width
        check("normalize", self.normalize, FLAG)
        check("unit_first", self.unit_first, FLAG)
        check("intercept_value", self.intercept_value, number(-math.inf), None)
        check("bound", self.bound, POSITIVE, None)
        if self.mean is not None:
            check_numbers("_row_map.mean", self.mean, (d,))
        for part, kind in ((self.columns, Columns), (self.whitening, Whitening)):
            if part is not None:
                check_kind(kind.__name__.lower(), part, kind)
                part.check_for(d)
        return d

    def with_intercept_for(self, X: FloatArray) -> "RowMap":
        """Return this map with an intercept column that suits public rows (n, n_features)."""
        bare = self(X, np.float64)
        # With this constant, the intercept has the curvature of the strongest direction of the public rows.
        # With a larger one, descent needs more steps; with a smaller one, the intercept is learned too
        # slowly.
        moment = largest_singular_value(bare) / math.sqrt(len(bare)) if len(bare) else 0.0
        return replace(self, intercept_value=float(moment) or _INTERCEPT)

    def widened(self, times: float) -> "RowMap":
        """The map with bounds on entries and rows times a factor; other rows become shorter in proportion."""
        # Bounds cause a bias that remains as the budget grows, so large budgets widen them.
        assert self.bound is not None
        columns = None if self.columns is None else replace(self.columns, cut=times * self.columns.cut)
        constant = None if self.intercept_value is None else self.intercept_value / times
        return replace(self, columns=columns, bound=times * self.bound, intercept_value=constant)

    @property
    def norm_bound(self) -> float:
        """Bound on the L2 norm of any mapped row; infinite unless rows are scaled."""
        if not self.normalize:
            return math.inf
        # Rounding to float32 may lengthen unit rows a little.
        return math.hypot(1.0, self.intercept_value or 0.0) * (1 + 1e-6)

    def same_as(self, another: "RowMap") -> bool:
        """Whether another map has equal parameters."""
        return _same(self, another)

    def width(self, n_features: int) -> int:
        """Number of entries of a mapped row."""
        return n_features + (self.intercept_value is not None)

    def __call__(self, X: Array, dtype: DTypeLike) -> Array:
        """Map (n, n_features) features to new (n, d_in) rows of a dtype; tensors on their device."""
        if self.basis is not None:
            return replace(self, basis=None)(self.basis(X), dtype)
        n_features = X.shape[1]
        shape = len(X), self.width(n_features)
        if isinstance(X, np.ndarray):
            mapped = np.empty(shape, dtype, order="F" if is_narrow(*shape) else "C")
            self.write(X, mapped)
            return mapped
        xp = namespace_of(X)
        rows = xp.empty(shape, dtype=getattr(xp, np.dtype(dtype).name), device=X.device)
        block, divided_by = self._robust(X)
        if self.whitening is not None:
            block = self.whitening(block, dtype if self.normalize else np.float64)
        block /= self._divisors(row_norms(block), divided_by)[:, None]
        rows[:, :n_features] = block
        if self.intercept_value is not None:
            rows[:, n_features] = self.intercept_value
        return rows

    def times(self, X: FloatArray, points: FloatArray) -> FloatArray:
        """Products (n, m) of mapped rows, less their intercepts, with points (m, n_features), in float64.

        Mapped rows are not formed: products are those of centred rows, and need the lengths of mapped ones.
        """
        whitening, m = self.whitening, len(points)
        points = points if whitening is None else whitening.of_points(points)
        if whitening is not None and self.normalize:
            points = np.vstack([points, whitening.measuring])
        products = np.empty((len(X), m))
        for rows, centred, divided_by in self._in_parts(X, np.dtype(np.float64)):
            Z = centred @ points.T
            if self.normalize:
                if whitening is None:
                    lengths = row_norms(centred)
                elif len(points) > m:
                    lengths = whitening.measured(row_dots(centred, centred, np.float64), Z[:, m:])
                else:
                    lengths = whitening.lengths(centred)
                Z[:, :m] /= self._divisors(lengths, divided_by)[:, np.newaxis]
            products[rows] = Z[:, :m]
        return products

    def bounds_of_times(self, X: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Products (2, n, m) between which those of :meth:`times` are, and bounds (n,) on their rounding.

        None if lengths are as fast to compute as to bound. Rows that are only centred are multiplied as they
        are, and so is their mean. Where that rounds too much, the bound is large or infinite.
        """
        whitening, precision = self.whitening, X.dtype if self._suits_single(X) else np.dtype(np.float64)
        strongest = None if whitening is None or not self.normalize else whitening.strongest
        if whitening is None or strongest is None:
            return None
        whitened, m = whitening.of_points(points), len(points)
        bare = self.columns is None and self.basis is None and not self.unit_first
        mean = self.mean if bare and self.mean is not None else np.zeros(whitened.shape[1])
        joint = np.vstack([whitened, strongest, mean])
        of_mean, joined = joint @ mean, joint.astype(precision)
        # Outputs of many rows are next to each other, which is faster for a few of them.
        products, rounding = np.empty((2, m, len(X))).transpose(0, 2, 1), np.empty(len(X))
        error = dot_error(len(mean) + 32, precision)
        read = UNCHANGED if bare else self
        for rows, part, divided_by in read._in_parts(X, precision):
            Z = np.subtract(part @ joined.T, of_mean, order="F")
            squares = row_dots(part, part, precision).astype(np.float64)
            sizes = np.sqrt(squares) + math.sqrt(of_mean[-1])
            squares -= 2 * Z[:, -1] + of_mean[-1]
            slack = error * sizes**2
            low, high = whitening.length_bounds(squares, Z[:, m:-1], slack)
            for out, lengths in zip(products, (low, high), strict=True):
                np.divide(Z[:, :m], self._divisors(lengths, divided_by)[:, np.newaxis], out=out[rows])
            rounding[rows] = error * sizes * float(row_norms(whitened).max()) / np.maximum(low, _SHORTEST)
            rounding[rows][~((low >= _SHORTEST) & (sizes <= _LONGEST))] = math.inf
        return products, rounding

    def _in_parts(
        self, X: FloatArray, dtype: np.dtype[Any]
    ) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Rows in parts that stay in cache: which ones, centred in a dtype, and what divided them already."""
        n_features = X.shape[1] if self.basis is None else self.basis.width
        step = max(_BLOCK_BYTES // (dtype.itemsize * max(n_features, 1)), _WHITENED_ROWS[0])
        buffer = np.empty((min(step, len(X)), n_features), dtype)
        for rows in row_slices(len(X), step):
            part = X[rows] if self.basis is None else self.basis(X[rows])
            yield rows, *self._centred(part, buffer[: len(part)])

    def _suits_single(self, X: FloatArray) -> bool:
        """Whether rows (n, n_features) can be centred in single precision: those declared as float32."""
        largest = 0.0 if self.mean is None else float(np.abs(self.mean).max(initial=0.0))
        return X.dtype == np.float32 and self.columns is None and self.basis is None and largest <= _LONGEST

    def before_whitening(self, X: FloatArray) -> FloatArray:
        """Rows (n, n_features) that lack the whitening and the intercept, divided as mapped ones are."""
        block, divided_by = self._robust(X)
        whitened = block if self.whitening is None else self.whitening(block)
        return np.asarray(block / self._divisors(row_norms(whitened), divided_by)[:, np.newaxis])

    def write(self, X: FloatArray, out: FloatArray, norms: FloatArray | None = None) -> None:
        """Write mapped rows of finite features to ``out``, without an intercept if it has no column for it.

        ``norms`` (n,) takes upper bounds on the lengths of what is written, up to rounding in float64. How a
        row is mapped depends on that row and on its number alone.
        """
        n_rows, n_features = X.shape
        # Arrays that were declared as float32 are centred in single precision, if rows are written in it.
        precise = self.whitening is None or self.normalize
        single = out.dtype == np.float32 and precise and self._suits_single(X)
        dtype = np.dtype(np.float32 if single else np.float64)
        step = max(_BLOCK_BYTES // (max(n_features, 1) * dtype.itemsize), _FEWEST_ROWS)
        size = _STEPS * step
        if self.whitening is not None:
            fewest, most = _WHITENED_ROWS
            wanted = _WHITENED_BYTES // (max(n_features, 1) * out.itemsize)
            size = step * -(-max(fewest, min(most, wanted)) // step)
        norms = np.empty(n_rows) if norms is None else norms
        write = partial(self._write_chunk, X, out[:, :n_features], norms, dtype=dtype, step=step)
        in_parallel([partial(write, rows) for rows in row_slices(n_rows, size)])
        if self.intercept_value is not None and out.shape[1] > n_features:
            out[:, n_features] = self.intercept_value
            # The constant as it is rounded in the rows.
            np.hypot(norms, float(np.asarray(self.intercept_value, out.dtype)), out=norms)

    @np.errstate(over="ignore")  # rows of infinite length are refused
    def _write_chunk(
        self, X: FloatArray, out: FloatArray, norms: FloatArray, chunk: slice, dtype: np.dtype[Any], step: int
    ) -> None:
        """:meth:`write` for a chunk: one product whitens it, and all else takes ``step`` rows at a time."""
        X, out, norms = X[chunk], out[chunk], norms[chunk]
        parts = list(row_slices(len(X), step))
        # New memory for each part would take as long as the computation.
        in_cache = np.empty_like(out[:step], dtype)
        whitened, divided_by = None, np.empty(len(X))
        if self.whitening is not None:
            order: Any = "C" if out.strides[1] == out.itemsize else "F"
            all_centred = np.empty(X.shape, out.dtype if self.normalize else np.float64, order=order)
            for rows in parts:
                target = all_centred[rows]
                buffer = target if target.dtype == dtype else in_cache[: len(target)]
                centred, divided_by[rows] = self._centred(X[rows], buffer)
                if centred is not target:
                    target[:] = centred
            whitened = out if out.dtype == all_centred.dtype else np.empty_like(all_centred)
            self.whitening.of_rows(all_centred, whitened)
        # Rows are measured in float64 before they are scaled; clips make room for the rounding of that.
        # Scaling lengthens an entry by less than the precision of ``out``, or by its smallest number.
        precision = np.finfo(out.dtype)
        smallest = math.sqrt(out.shape[1]) * float(precision.smallest_subnormal)
        for rows in parts:
            if whitened is None:
                part, divided_by[rows] = self._centred(X[rows], in_cache[: len(X[rows])])
            else:
                part = whitened[rows]
            lengths = row_norms(part)
            factors = (1 / self._divisors(lengths, divided_by[rows])).astype(part.dtype)
            np.multiply(part, factors[:, np.newaxis], out=out[rows], casting="same_kind")
            norms[rows] = lengths * factors * (1 + float(precision.eps)) + smallest

    def _centred(self, X: FloatArray, buffer: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Centred rows in ``buffer``, or ``X`` if nothing is to be done, and what divided them already (n,).

        A row whose square may over- or underflow is left to :meth:`_robust`, and no other row is.
        """
        rows = X
        if X.dtype != buffer.dtype or X.strides[1] != buffer.strides[1]:
            rows = buffer
            np.copyto(rows, X)
        near = np.ones(len(rows), bool)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.columns is not None:
                rows = self.columns(rows, buffer)
            if self.unit_first and self.mean is not None:
                lengths = np.sqrt(row_dots(rows, rows, rows.dtype))
                near &= (lengths >= _SHORTEST) & (lengths <= _LONGEST)
                rows = np.multiply(rows, (1 / lengths)[:, np.newaxis], out=buffer)
            if self.mean is not None:
                leading = self.mean.astype(buffer.dtype)
                rows = np.subtract(rows, leading, out=buffer)
                if buffer.dtype == np.float32:
                    # In double precision, since a rounded mean would move all rows in the same direction.
                    rows -= (self.mean - leading).astype(buffer.dtype)
            if self.normalize:
                lengths = np.sqrt(row_dots(rows, rows, rows.dtype))
                near &= (lengths >= _SHORTEST) & (lengths <= _LONGEST)
        divided_by = np.ones(len(rows))
        if not near.all():
            # All rows are computed alike, so that a row's result does not depend on the other rows.
            robust, lengths = self._robust(X)
            np.copyto(buffer, rows)
            buffer[~near], divided_by[~near] = robust[~near], lengths[~near]
            return buffer, divided_by
        return rows, divided_by

    def _robust(self, X: Array) -> tuple[Array, Array]:
        """Centred rows of any size, of length 1 if rows are scaled, and what divided them (n,), float64."""
        # In a fixed memory order, since sums over columns round differently in another.
        on_host = isinstance(X, np.ndarray)
        block: Any = np.array(X, np.float64, order="C") if on_host else astype(X, np.float64, copy=True)
        if self.columns is not None:
            block = self.columns(block)
        if self.unit_first:
            _to_unit_length(block)
        if self.mean is not None:
            block -= in_library_of(block, self.mean)
            # The difference of two finite numbers may overflow; infinite rows have no direction.
            block = block.clip(-_LARGEST, _LARGEST)
        if not self.normalize:
            return block, namespace_of(block).ones(len(block), dtype=block.dtype, device=block.device)
        return block, _to_unit_length(block)

    def _divisors(self, lengths: Array, divided_by: Array) -> Array:
        """Divisors (n,) of rows of these lengths, which were ``divided_by`` (n,) already."""
        xp = namespace_of(lengths)
        if not self.normalize:
            return xp.ones_like(lengths)
        if self.bound is not None:
            lengths = lengths.clip(min=self.bound / divided_by)
        return xp.where(lengths > 0, lengths, xp.ones_like(lengths))

    def join(self, coefficients: FloatArray, n_outputs: int, n_features: int) -> FloatArray:
        """A (k, d_in) head from coefficients, whose last column may be the intercepts."""
        bare, full = (n_outputs, n_features), (n_outputs, n_features + 1)
        fits = coefficients.shape == bare or (coefficients.shape == full and self.intercept_value is not None)
        if not fits or not np.all(np.isfinite(coefficients)):
            ending = f", or of shape {full} with the intercepts in the last column"
            raise ValueError(
                f"init of shape {coefficients.shape} must be a finite array of shape {bare}"
                f"{'' if self.intercept_value is None else ending}."
            )
        if self.intercept_value is None:
            return coefficients
        head = np.zeros(full)
        head[:, : coefficients.shape[1]] = coefficients
        head[:, n_features] /= self.intercept_value
        return head

    def split(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split a (k, d_in) head into ``coef_`` (k, n_features) and ``intercept_`` (k,)."""
        if self.intercept_value is None:
            return W, np.zeros(len(W))
        return W[:, :-1], W[:, -1] * self.intercept_value


def _to_unit_length(rows: Array) -> Array:
    """Scale each row to unit length, in place, and return the earlier lengths (n,); 1 for a row of zeros."""
    # The largest entry is divided out first, since squares of huge or tiny entries are inf or 0.
    largest = _divide(rows, largest_entries(rows))
    return largest * _divide(rows, row_norms(rows))


def _divide(rows: Array, lengths: Array) -> Array:
    """Divide each row by its length, in place, or by 1 if it is 0, and return the divisors."""
    lengths[lengths == 0] = 1.0
    rows /= lengths[:, None]
    return lengths


def _same(left: Any, right: Any) -> bool:
    """Whether two numbers, arrays, whitenings, columns or maps are equal, or both are None."""
    if isinstance(left, (Whitening, Columns, RowMap)) and right is not None:
        return all(_same(vars(left)[each.name], vars(right)[each.name]) for each in fields(left))
    return left is right or np.array_equal(left, right)


#: The map that does not change rows.
UNCHANGED = RowMap(None, False, None)


@dataclass(frozen=True)
class TargetMap:
    """The map of targets (n, k) to unit scale: ``(y - center) / scale``, both (k,) and not private."""

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, y: FloatArray) -> "TargetMap":
        """Mean and standard deviation of public (n, k) targets; constant ones have scale 1."""
        # The largest target is divided out first, since squares of huge or tiny ones are inf or 0.
        size = np.abs(y).max(axis=0)
        size[size == 0] = 1.0
        scale = (y / size).std(axis=0)
        constant = scale <= 10 * np.finfo(np.float64).eps
        return cls((y / size).mean(axis=0) * size, np.where(constant, 1.0, scale * size))

    def check_for(self, n_targets: int) -> None:
        """Refuse values that no map of this many targets has, such as those of a forged file."""
        for name in ("center", "scale"):
            check_numbers(f"_target_map.{name}", vars(self)[name], (n_targets,))

    def __call__(self, y: FloatArray, dtype: DTypeLike) -> FloatArray:
        """Map (n, k) targets to new ones of a dtype."""
        with np.errstate(over="ignore"):
            unit = (y - self.center) / self.scale
        # A bound within the range of float32. Clips leave only the sign of such targets.
        return np.clip(unit, -_FARTHEST_TARGET, _FARTHEST_TARGET).astype(dtype)

    def to_units(self, coef: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Convert a head (k, d), (k,) for targets of unit scale to the user's units."""
        return coef * self.scale[:, np.newaxis], intercept * self.scale + self.center
