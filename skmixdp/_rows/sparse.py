"""Private rows in a sparse matrix, centred and whitened without being made dense."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._linear import SHORTEST_DIFFERENCE, Cascade, FloatArray, row_slices
from .._utils.validation import check_finite
from .blockwise import Arithmetic, BlockRows, Selection, Visit, block_size, check_lengths
from .centered_sparse import (
    CenteredSparseRows,
    canonical,
    centered_products,
    centered_sparse_rows,
    centered_weighted_sum,
    part_of,
    scaled_first,
    whitened_entries,
)
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


class SparseRows(BlockRows):
    """Private rows in a CSR matrix ``X`` (n_rows, n_features), which is not copied, mapped by linearity.

    ``y`` (n_rows,) are class indices or targets. Products are computed in float64, and queries receive them
    in ``dtype``. ``measure`` finds the factors and bounds of rows after the map; other rows than CSR have one
    of their own. Rows so long that products could overflow are a ValueError.

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
