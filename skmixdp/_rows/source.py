"""The interface of sources of private rows: one method that answers queries by sums.

A *query* is a set of ``points`` and a function ``contribute``. For a linear head, points are a
matrix (m, d_in): for each block of rows the source computes ``Z = X points^T`` (rows, m), the
function turns it into weighted residuals ``C`` (rows, k) and per-row statistics ``S`` (rows, s),
and the answer is the pair ``(C^T X, sum S)``. A head's gradient has ``points = W``; several heads,
public centres or random directions are more rows of ``points``. Another source (sparse,
memory-mapped, distributed) implements these two products. A source for another model defines what
its points are, and what ``contribute`` gets instead of ``Z``.

The sums that come out are NOT private. Only ``_engine/release.py`` may ask.

Two promises of every source are part of the guarantee. What a row contributes is a function of that row
alone, bit for bit: no shift, scale, precision or code path is chosen by looking at a whole block, and rows
have the same places in products whether or not another row is in a random batch. And the source states how
far the rounding of its sums can move when a row is zeroed out, in :meth:`PrivateRows.sum_error`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._linear.arrays import Array, FloatArray, largest_entries, namespace_of, parts_in_cache, row_norms
from .._linear.losses import predicted_classes
from .._linear.products import row_memory
from .._linear.sums import PANEL_ROWS, SumError
from .row_map import RowFunction, RowMap

Labels = NDArray[Any]

#: Largest factor by which the clip of rows of small weight exceeds that of others. With 1, ratios hold even
#: for clipped gradients, but rare classes were as accurate as with half the budget. More than 3 gained
#: nothing.
LESS_CUT = 3.0

#: Covers the rounding of a number to float32.
_UP = 1 + 2.0**-22


class LostRowsError(RuntimeError):
    """Raised by a source whose rows can no longer be reached, as on a cluster that was closed."""


@dataclass(eq=False, repr=False)
class Block:
    """Data of a block of rows for queries, apart from products: arrays, or tensors on their device.

    ``X`` (rows, d_in) is None where rows are never formed. ``norms`` (rows,) are L2 norms in float64: true up
    to rounding, or upper bounds. The functions compute the properties of these names when first read.
    """

    X: Array | None
    y: Array
    norms: Array
    compute_max_abs: Callable[[], Array] | None = None
    compute_rounding_scale: Callable[[], Array] | None = None

    def of(self, rows: slice | NDArray[np.intp]) -> "Block":
        """The data of some of the rows."""
        return Block(
            None if self.X is None else self.X[rows],
            self.y[rows],
            self.norms[rows],
            lambda: self.max_abs[rows],
            None if self.compute_rounding_scale is None else lambda: self.rounding_scale[rows],
        )

    @cached_property
    def rounding_scale(self) -> Array:
        """Lengths (rows,) to which the rounding of products is proportional; above norms for differences."""
        return self.norms if self.compute_rounding_scale is None else self.compute_rounding_scale()

    @cached_property
    def single_norms(self) -> FloatArray:
        """Upper bounds (rows,) on the norms, float32, for rows on the host; no bounds below its range."""
        with np.errstate(over="ignore"):  # overflow to infinity
            return np.asarray(self.norms * _UP).astype(np.float32)

    @cached_property
    def max_abs(self) -> Array:
        """Largest absolute entry of each row, shape (rows,), float64, or an upper bound."""
        return largest_entries(self.X) if self.compute_max_abs is None else self.compute_max_abs()

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Class indices (rows,) on the host, from labels that may have weights."""
        y = np.asarray(self.y)
        return y if y.ndim == 1 else y[:, 0].astype(np.int64)

    def is_correct(self, Z: Array) -> NDArray[np.bool_]:
        """Flags (rows, 1) of the rows whose own class has the largest of the outputs ``Z`` (rows, k)."""
        return np.asarray(predicted_classes(np.asarray(Z)) == self.classes)[:, np.newaxis]


@dataclass(frozen=True)
class OuterStatistics:
    """Statistics ``f_ij v_il`` of each row, (rows, s q), kept as factors, whose sums are one product."""

    factors: FloatArray  # (rows, s), float64
    values: FloatArray  # (rows, q), float32 or float64
    #: Whether both are averaged over the rows of each person before they are multiplied.
    of_means: bool = False

    def __len__(self) -> int:
        return len(self.factors)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        formed = self.factors[:, :, np.newaxis] * self.values[:, np.newaxis, :]
        return formed.reshape(len(self), -1).astype(np.float64 if dtype is None else dtype)

    def without(self, left_out: NDArray[np.bool_]) -> "OuterStatistics":
        """The statistics with zeros for some rows, whose values are finite."""
        return replace(self, factors=np.where(left_out[:, np.newaxis], 0.0, self.factors))

    def sums(self, weights: FloatArray | None = None) -> FloatArray:
        """Sums (s q,) over the rows, times their ``weights`` (rows,), of products in double precision."""
        factors = self.factors if weights is None else self.factors * weights[:, np.newaxis]
        total = np.zeros((self.factors.shape[1], self.values.shape[1]))
        for rows in parts_in_cache(self.values):
            total += factors[rows].T @ self.values[rows].astype(np.float64, copy=False)
        return total.ravel()


@dataclass(frozen=True)
class BinCounts:
    """Statistics (rows, h n_bins) that are 1 in one bin of each of h histograms, kept as bin numbers."""

    bins: NDArray[np.integer[Any]]  # (rows, h), -1 where a row adds nothing
    n_bins: int

    def __len__(self) -> int:
        return len(self.bins)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        shape = len(self), self.bins.shape[1] * self.n_bins  # also for a block without rows
        formed = (self.bins[:, :, np.newaxis] == np.arange(self.n_bins)).reshape(shape)
        return np.asarray(formed, dtype=np.float64 if dtype is None else dtype)

    def without(self, left_out: NDArray[np.bool_]) -> "BinCounts":
        """The statistics with zeros for some rows."""
        return BinCounts(np.where(left_out[:, np.newaxis], -1, self.bins), self.n_bins)

    def lengths(self) -> FloatArray:
        """L2 norms (rows,) of the statistics."""
        return np.asarray(np.sqrt((self.bins >= 0).sum(axis=1)))

    def sums(self, weights: FloatArray | None = None) -> FloatArray:
        """Numbers of rows in each bin, shape (h n_bins,), or sums of their ``weights`` (rows,)."""
        # Each histogram begins with an extra bin, for rows that add nothing.
        n_histograms, n_places = self.bins.shape[1], self.n_bins + 1
        places = self.bins + (1 + np.arange(n_histograms) * n_places)
        each = None if weights is None else np.repeat(weights, n_histograms)
        # Counts are the same in any order. The order in memory is the fastest.
        listed = places.ravel("K") if each is None else places.ravel()
        counts = np.bincount(listed, each, n_histograms * n_places)
        return counts.reshape(n_histograms, n_places)[:, 1:].ravel().astype(np.float64)


Contribution = tuple[Array | None, Array | OuterStatistics | BinCounts | None]
Contribute = Callable[[Array, Block], Contribution]
#: The sums of one query: ``C^T X`` (k, d_in) and ``sum S`` (s,), float64.
Sums = tuple[FloatArray | None, FloatArray | None]


@dataclass(frozen=True)
class Batch:
    """The rows that take part: the ``taken`` among the ``members``, masks (n_rows,); None is all rows."""

    taken: NDArray[np.bool_] | None = None  # a random batch, SECRET
    rate: float = 1.0  # of the batch, public
    members: NDArray[np.bool_] | None = None  # public

    @property
    def mask(self) -> NDArray[np.bool_] | None:
        """Mask (n_rows,) of the rows that take part; None is all of them."""
        if self.members is None or self.taken is None:
            return self.members if self.taken is None else self.taken
        return self.members & self.taken

    def part(self, start: int, stop: int) -> "Batch":
        """The batch for some of the rows."""
        members = None if self.members is None else self.members[start:stop]
        taken = None if self.taken is None else self.taken[start:stop]
        return replace(self, taken=taken, members=members)


@dataclass(frozen=True)
class MeanClip:
    """How the mean contribution of one person's rows to ``C^T X`` is clipped."""

    #: As in :class:`PrivateQuery`, but with residuals that no clip has shortened.
    contribute: Contribute
    #: Its ``weights(lengths, largest)`` are factors of the means.
    clip: Any
    #: Labels to weights (rows,) in [0, 1] of rows whose residuals are weighted. The weighted mean is clipped,
    #: and counts by the mean weight: :func:`~skmixdp.components.clipping.weighted_query`.
    row_weights: Callable[[Labels], FloatArray] | None = None


@dataclass(frozen=True)
class ReleasedArray:
    """One array of a query's answer, with its sensitivity.

    Its noise has standard deviation ``noise_multiplier * sensitivity / sqrt(share)``, so that a step, whose
    shares sum to at most 1, is one Gaussian release of that multiplier.
    """

    #: Guaranteed bound on the L2 norm of one row's contribution to the array, if sums are exact.
    sensitivity: float
    #: Fraction of the step's privacy budget that the array uses.
    share: float = 1.0
    #: Bound on the norm of each row's term in the sums that the array is computed of; None: the sensitivity.
    longest_term: float | None = None
    #: Bound on the rounding error of ``assemble``, relative to the norm of the sums.
    later_roundings: float = 0.0

    def as_computed(self, error: SumError) -> "ReleasedArray":
        """A copy whose sensitivity includes the rounding of sums."""
        term = self.sensitivity if self.longest_term is None else self.longest_term
        return replace(self, sensitivity=self.sensitivity + error.of(term, self.later_roundings))


@dataclass(frozen=True)
class Lengths:
    """A function for the length of each row's contribution to each released array."""

    #: ``(C, S, products, block) -> lengths``: L2 norms (rows,), or upper bounds, for each released array.
    #: ``C`` and ``S`` are what ``contribute`` returned, on the host; the block has lengths only.
    of: Callable[[Any, Any, Any, Block], Sequence[FloatArray]]
    #: Directions (m, d_in) whose products (rows, m) with the rows ``of`` needs; None is none.
    points: FloatArray | None = None


def term_lengths(C: Any, S: Any, products: Any, block: Block) -> list[FloatArray]:
    """Lengths of ``c_i x_i^T`` and of ``s_i``, for sums that are released as they are."""
    matrix = [] if C is None else [row_norms(C) * block.norms]
    if S is None:
        return matrix
    return [*matrix, S.lengths() if isinstance(S, BinCounts) else row_norms(S)]


@dataclass(frozen=True)
class PrivateQuery:
    """One query to the private rows."""

    #: Directions (m, d_in) whose products with the rows are needed, or what else the row source accepts.
    points: Any
    #: ``(Z, block) -> (C, S)``: weighted residuals and statistics of each row; either may be None. It may
    #: overwrite ``Z`` but the columns of fixed points. ``S`` may be OuterStatistics or BinCounts.
    contribute: Contribute
    #: One for each array that ``assemble`` returns.
    releases: tuple[ReleasedArray, ...]
    #: LINEAR map from the sums to the released arrays, applied before the noise is added. It must not depend
    #: on private rows in any other way.
    assemble: Callable[[Sequence[FloatArray]], tuple[FloatArray, ...]] = tuple
    #: Most rows whose terms may be added in single precision; 0 is none. If terms are longer than the
    #: sensitivity, fewer rows keep the rounding small.
    panel_rows: int = PANEL_ROWS
    #: Number of last points that are the same in all steps, so that a source may keep their products.
    n_fixed: int = 0
    #: Whether ``contribute`` also takes tensors, under the same bounds. It is then called on their device.
    takes_tensors: bool = False
    #: The threshold, if ``contribute`` gives residuals of cross-entropy with L2 clipping, and nothing else.
    #: A source may then use compiled loops. One output is the logit of class 1.
    clip_threshold: float | None = None
    #: How the mean contribution of a person's rows is clipped, under the same ``releases``. None averages
    #: what ``contribute`` gives, which obeys any bound that rows obey.
    mean_clip: MeanClip | None = None
    #: How long contributions to the released arrays are, for records of per-instance privacy. None stands for
    #: :func:`term_lengths` if sums are released unchanged, and else for the sensitivity of each array.
    lengths: Lengths | None = None


@dataclass(frozen=True)
class Request:
    """A query with everything that a row source needs for its answer; a source does not assemble its sums."""

    query: PrivateQuery
    batch: Batch = Batch()
    #: A power of two, to multiples of which contributions are rounded towards zero: their sums are exact.
    resolution: float | None = None
    #: Called with the numbers of each block's rows and with what they contribute, for records of per-instance
    #: privacy. A block may be visited twice.
    observe: "Callable[[Any, Block, Array, Contribution], None] | None" = None

    def with_query(self, **changes: Any) -> "Request":
        """The request with some fields of its query replaced."""
        return replace(self, query=replace(self.query, **changes))


class PrivateRows(Protocol):
    """A source of private rows."""

    n_rows: int
    #: Power of two of which every entry of the rows is a multiple; None where none is known.
    grid: float | None = None
    #: The record of the privacy loss of each row, or None. Set before the first release.
    record: Any = None

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        """Unprotected sums of all requests, from one pass over the rows."""

    def sum_error(self, request: Request) -> SumError:
        """Bound on the change of the rounding of a request's sums when one row is zeroed out."""


class Table(ABC):
    """Rows that a user passed as ``X``, before the row map."""

    shape: tuple[int, int]
    #: Type of an array that the user made float32 or float16, whose rows may be mapped in single precision.
    declared: str | None = None
    #: Names of the features, if known.
    names: list[str] | None = None
    #: That of the guarantee: "row", or the name of a column of persons, which ``shape`` then counts.
    unit: str = "row"
    #: Whether :meth:`on_device` can hold the private rows on another device.
    is_movable: bool = False
    device: str = "cpu"
    #: Whether rows are visited in this process, so that ``Request.observe`` is called.
    can_be_observed: bool = True
    #: Whether threads share the passes over the private rows.
    is_shared: bool = False
    #: Labels (n_rows,) and ids of persons that are stored with the rows.
    labels: Any = None
    groups: Any = None

    def check(self, name: str, *, finite: bool = True) -> None:
        """Refuse tables that cannot be used, without reading all rows; ``finite`` refuses NaN."""
        return

    @abstractmethod
    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        """The source that answers queries; a ValueError if rows are not finite."""

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """The features in parts: dense arrays or CSR."""

    def memory(self, n_rows: int, width: int) -> FloatArray:
        """An array (n_rows, width) in float64 for what is computed of the rows, where these are held."""
        return row_memory(n_rows, width, np.float64)

    def transformed(self, function: RowFunction) -> "Table":
        """The table of the results of a function of each row."""
        table: Table = function.table_of(self)
        return table

    def for_fit(self) -> "Table":
        """The table for one fit, which may free what it computes afterwards."""
        return self

    def on_device(self, device: str) -> "Table":
        """The table with private rows on a device, if they can be moved."""
        return self


def declared_type(dtype: Any) -> str | None:
    """The name of the type of an array, if rows of this type are mapped differently."""
    name = np.dtype(dtype).name
    return name if name in ("float32", "float16") else None


def truncated(contributions: Array, resolution: float) -> Array:
    """Contributions rounded towards zero to multiples of a resolution, which lengthens none."""
    return namespace_of(contributions).trunc(contributions / resolution) * resolution
