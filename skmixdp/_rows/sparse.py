"""Private rows in a sparse matrix, centred and whitened without being made dense."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .._linear import SHORTEST_DIFFERENCE, FloatArray, SumError, row_slices
from .._utils.validation import check_finite
from .blockwise import Selection, Visit, answer, block_size, check_lengths, selections, stated_error
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
from .source import Block, Labels, PrivateRows, Request, Sums, Table

#: Entries of a block of rows, so that its products take at most a few MiB.
_BLOCK_ENTRIES = 2**18

#: Assumed entries per row for the size of a block, since the true number is private.
_ENTRIES_PER_ROW = 128

#: Most rows of a block because of the number of features.
_MOST_ROWS = 2**14

#: Most entries of arrays for measuring whitened rows: products with directions, or dense rows.
_MEASURED_ENTRIES = 2**20

#: Rows for which the outputs of a head are computed together.
_BLOCK_ROWS = 8192


class SparseRows(PrivateRows):
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
        self._y = y
        self._map = row_map
        self._dtype = np.dtype(dtype)
        self.n_rows, n_features = X.shape
        # Each block adds a (k, d_in) sum to the total, so it should have more entries than that.
        entries = max(_BLOCK_ENTRIES, 4 * n_features)
        rows = entries // min(_ENTRIES_PER_ROW, max(n_features, 1))
        self._block_rows = block_size(max(rows, min(n_features, _MOST_ROWS)))
        n_directions = 1 if row_map.whitening is None else len(row_map.whitening.factors)
        measured_rows = min(self._block_rows, max(_MEASURED_ENTRIES // n_directions, 512))
        parts = [measure(part_of(X, rows), row_map) for rows in row_slices(self.n_rows, measured_rows)]
        self._factors = np.concatenate([part.factors for part in parts])
        self._norms = np.concatenate([part.norms for part in parts])
        check_lengths(self._norms, self._dtype)
        # Products are differences of larger terms in float64, whose rounding is put in units of the dtype's.
        ratio = 4 * float(np.finfo(np.float64).eps / np.finfo(self._dtype).eps)
        self._rounding_scale = self._norms + ratio * np.concatenate([part.rounding_scale for part in parts])
        if row_map.whitening is None:
            self._max_abs = np.concatenate([part.max_abs for part in parts])

    @cached_property
    def _max_abs(self) -> FloatArray:
        """Bounds on entries of whitened rows; only entrywise clips need them."""
        few = max(_MEASURED_ENTRIES // self._X.shape[1], 1)
        parts = row_slices(self.n_rows, few)
        bounds = [whitened_entries(part_of(self._X, part), self._factors[part], self._map) for part in parts]
        return np.asarray(np.minimum(np.concatenate(bounds), self._norms))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        whitening = self._map.whitening
        visits = map(self._visit, selections(requests, self.n_rows, self._block_rows))
        return answer(requests, visits, np.dtype(np.float64), whitening=whitening)

    def _visit(self, rows: Selection) -> Visit:
        X, factors = part_of(self._X, rows), self._factors[rows]
        return Visit(
            rows,
            Block(
                None,
                self._y[rows],
                self._norms[rows],
                compute_max_abs=lambda: self._max_abs[rows],
                compute_rounding_scale=lambda: self._rounding_scale[rows],
            ),
            times=lambda points: centered_products(X, factors, self._map, points).astype(
                self._dtype, copy=False
            ),
            add_sum=lambda C, total, _: total.add(centered_weighted_sum(X, factors, self._map, C)),
        )

    def sum_error(self, request: Request) -> SumError:
        # A bound on the terms of two sums that are subtracted, in units of their difference.
        longer = 4 / SHORTEST_DIFFERENCE
        error = stated_error(
            request, self.n_rows, np.float64, panel_rows=0, block_rows=self._block_rows, stretch=longer
        )
        whitening = self._map.whitening
        return error if whitening is None else error.plus_later(whitening.sum_rounding / SHORTEST_DIFFERENCE)


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
        for start in range(0, self.shape[0], _BLOCK_ROWS):
            yield part_of(self._X, slice(start, min(start + _BLOCK_ROWS, self.shape[0])))
