"""Private rows of persons: what a person contributes is the mean over that person's rows.

Neighbouring data sets differ in all rows of one person. A person contributes the mean of what its rows
contribute, which is no longer than the longest of them. Where gradients are clipped, it is the person's mean
gradient that is clipped: it is shorter than its rows, so less noise is needed.

The number of persons is public, and the number of rows is not. Each person has a lane, in which its rows
follow those of the persons before it, or blocks of its own. A block holds one row of each lane, so blocks
have the same shape for any number of rows, and a row has the same place in its block whatever other persons
hold. What a row contributes is therefore the same, bit for bit. Sums over rows are added in double precision.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from .._linear import (
    Cascade,
    FloatArray,
    SumError,
    add_products,
    laid_out,
    largest_entries,
    row_norms,
    row_products,
)
from .._utils.validation import CONVERSION_ERRORS, check_finite, unit_of
from .memory import check_lengths
from .row_map import RowMap
from .source import BinCounts, Block, Labels, OuterStatistics, PrivateRows, Request, Sums, Table
from .table import from_device

#: Entries of the largest block, and its most rows.
_BLOCK_ENTRIES, _MOST_ROWS = 2**18, 4096

#: Blocks have a multiple of so many rows. They then begin at multiples of 64 bytes: libraries may add entries
#: in an order that follows from where they begin.
_UNIT = 16

#: Persons in a lane, if there are so many, which makes lanes about as long as each other; and fewest lanes.
_PER_LANE, _FEWEST_LANES = 8, 128

#: Rows of the blocks of persons with many rows, at most. Those are more than half of it.
_OWN = 128

#: Entries that are formed at once where lengths of mean gradients are computed.
_FORMED_ENTRIES = 2**22

_ROUNDOFF = float(np.finfo(np.float64).eps) / 2

#: More than the rounding of a mean in double precision.
_UP = 1 + 2.0**-33


class Persons(NamedTuple):
    """Number of the person of each row, ``codes`` (n_rows,) with -1 for rows to leave out; and a name."""

    codes: NDArray[np.intp]
    n_persons: int
    unit: str


def check_groups(groups: Any, n_rows: int, noise: Any, own: NDArray[np.bool_] | None = None) -> Persons:
    """The persons of rows, of those in ``own`` if it is a mask, from their ids.

    Persons are numbered in the order of their ids, whatever the order of rows.
    """
    if noise == "discrete":
        raise ValueError(
            "noise='discrete' needs exact sums, which means over the rows of a person are not; pass "
            "noise='float', or no groups."
        )
    try:
        # As objects, since an array of texts would hold a missing one as a text.
        ids = (
            np.asarray(groups, object)
            if isinstance(groups, list | tuple)
            else np.asarray(from_device(groups))
        )
    except CONVERSION_ERRORS:  # the original message would quote the ids
        ids = np.empty((0, 0))
    if ids.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {ids.shape} and X {n_rows} rows; pass a flat array of one id for each row."
        )
    infinite = ids.dtype.kind == "f" and np.isinf(ids).any()
    if np.ma.is_masked(groups) or pd.isna(ids).any() or infinite:
        raise ValueError("groups has missing ids; drop the rows of unknown persons, or give each its own id.")
    if ids.dtype == bool:
        raise ValueError("groups holds bools, which are no ids; pass one id for each row.")
    chosen = np.ones(n_rows, bool) if own is None else own
    codes = np.full(n_rows, -1)
    try:
        codes[chosen], found = pd.factorize(ids[chosen], sort=True)
    except CONVERSION_ERRORS:
        raise ValueError("groups must hold ids of one type; pass integers or strings.") from None
    if len(found) < 2:
        raise ValueError(f"groups has {len(found)} person(s), and at least 2 are needed; pass more of them.")
    return Persons(codes, len(found), unit_of(groups))


class PersonTable(Table):
    """The rows of a table as those of ``n_persons`` persons.

    ``codes`` (n_rows,) are numbers of persons, and -1 for rows to leave out. A person need not have rows. The
    mapped rows are held in memory.
    """

    def __init__(self, table: Table, codes: NDArray[np.intp], n_persons: int, unit: str) -> None:
        self._table = table
        self.unit = unit
        self._codes = codes
        self.shape = (n_persons, table.shape[1])
        self.names = table.names

    def check(self, name: str) -> None:
        """Checked when the table of rows was."""

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            raise RuntimeError("sums over persons are not exact.")
        places = Places(self._codes, *self.shape)
        return PersonRows(places, places.mapped(self._table.blocks(), row_map, dtype), y)

    def label_rows(self, y: Labels, dtype: np.dtype[Any]) -> PrivateRows:
        """The labels of all rows, without features."""
        places = Places(self._codes, self.shape[0], 0)
        n_places = len(places.row)
        return PersonRows(places, (np.empty((n_places, 0), dtype), np.zeros(n_places)), y)

    def blocks(self) -> Iterator[Any]:
        return self._table.blocks()


class Places:
    """The places of rows in blocks whose products are computed together.

    Person ``p`` with few rows has lane ``p % n_lanes``: place ``t n_lanes + l`` of the first blocks is in
    lane l of block t. Rows follow those of earlier persons in their lane. A person with many rows has blocks
    of its own. ``row`` and ``person`` (n_places,) are what each place holds; -1 and ``n_persons`` where it is
    empty. ``weight`` is 1/m for rows of a person with m of them, and 0 at empty places.
    """

    def __init__(self, codes: NDArray[np.intp], n_persons: int, n_features: int) -> None:
        self.n_persons = n_persons
        self.largest_block = _whole(min(_BLOCK_ENTRIES // max(n_features, 1), _MOST_ROWS))
        wanted = max(n_persons // _PER_LANE, _FEWEST_LANES)
        self._n_lanes = min(_whole(min(wanted, n_persons + _UNIT - 1)), self.largest_block)
        self._own = min(_OWN, self.largest_block)
        rows = np.flatnonzero(codes >= 0)
        rows = rows[np.argsort(codes[rows], kind="stable")]
        sizes = np.bincount(codes[rows], minlength=n_persons)
        many = sizes[codes[rows]] > self._own // 2
        lanes = _in_columns(rows[~many], codes[rows[~many]] % self._n_lanes, self._n_lanes)
        self._in_lanes = lanes.size
        # Each person with many rows fills whole blocks, one row after the other.
        number = np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[codes[rows]]
        blocks = np.where(sizes > self._own // 2, -(-sizes // self._own), 0)
        first = (np.cumsum(blocks) - blocks) * self._own
        own = np.full(int(blocks.sum()) * self._own, -1)
        own[(first[codes[rows]] + number)[many]] = rows[many]
        self.row = np.concatenate([lanes.ravel(), own])
        self.taken = self.row >= 0
        self.person = np.where(self.taken, codes[self.row], n_persons)
        self.weight = np.where(self.taken, 1 / np.append(sizes, 1)[self.person], 0.0)

    def blocks(self) -> Iterator[slice]:
        """The places of each block."""
        for start in range(0, self._in_lanes, self._n_lanes):
            yield slice(start, start + self._n_lanes)
        for start in range(self._in_lanes, len(self.row), self._own):
            yield slice(start, start + self._own)

    def by_size(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Persons (p,) of each size m, and the places (p, m) of their rows."""
        places = np.argsort(self.person, kind="stable")[: int(self.taken.sum())]
        persons, first, sizes = np.unique(self.person[places], return_index=True, return_counts=True)
        for m in np.unique(sizes).tolist():
            same = np.flatnonzero(sizes == m)
            yield persons[same], places[first[same, np.newaxis] + np.arange(m)]

    def mean(self, values: FloatArray) -> FloatArray:
        """Means (n_persons,) of values (n_places,) over the rows of each person."""
        return np.asarray(np.bincount(self.person, self.weight * values, self.n_persons + 1)[:-1], np.float64)

    def _dense(self, parts: Iterable[Any]) -> Iterator[NDArray[Any]]:
        """The parts as dense arrays. Sparse rows are made dense a block at a time."""
        for part in parts:
            if not sp.issparse(part):
                yield np.asarray(part)
                continue
            held: Any = part
            for start in range(0, held.shape[0], self.largest_block):
                yield held[start : start + self.largest_block].toarray()

    def mapped(
        self, parts: Iterable[Any], row_map: RowMap, dtype: np.dtype[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Rows (n_places, d_in) of all parts of a table after a map, and their lengths.

        Empty places hold what a row of zeros is mapped to.
        """
        place_of = np.full(int(self.row.max()) + 1, -1)
        place_of[self.row[self.taken]] = np.flatnonzero(self.taken)
        features: Any = None
        first = 0
        for rows in self._dense(parts):
            check_finite(np.isfinite(rows).all(), "X")
            if features is None:
                features = np.zeros((len(self.row), rows.shape[1]), np.float32)
            features = features.astype(np.result_type(features, rows), copy=False)
            at = place_of[first : first + len(rows)]
            features[at[at >= 0]] = rows[: len(at)][at >= 0]
            first += len(rows)
        X, norms = np.empty((len(features), row_map.width(features.shape[1])), dtype), np.empty(len(features))
        for block in self.blocks():
            X[block], norms[block] = row_map.measured(features[block], dtype)
        return X, norms


class PersonRows(PrivateRows):
    """The rows of persons in memory, after the map; ``n_rows`` is the number of persons.

    ``rows`` are those at all places (n_places, d_in), and their lengths; ``y`` are the labels of the table.

    *Guarantee*: a person adds ``1/m sum_i c_i x_i^T`` and ``1/m sum_i s_i`` over its m rows to a sum. If
    contributions ``(c_i, s_i)`` of rows obey a bound, so does this mean. If the request has a
    :class:`~skmixdp._rows.source.MeanClip`, the mean is clipped by it.
    """

    def __init__(self, places: Places, rows: tuple[FloatArray, FloatArray], y: Labels) -> None:
        self.n_rows = places.n_persons
        self._places = places
        self._X, self._norms = rows
        check_lengths(self._norms[places.taken], self._X.dtype)
        self._y = y[np.where(places.taken, places.row, 0)]
        self._by_size = list(places.by_size())
        self._grams: dict[int, FloatArray] = {}

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        return [self._sums(request) for request in requests]

    def _sums(self, request: Request) -> Sums:
        taking_part = np.ones(self.n_rows + 1, bool)
        if not request.takes_all:
            taking_part[:-1] = request.taking_part
        weights = np.where(taking_part[self._places.person], self._places.weight, 0.0)
        mean_clip = request.mean_clip
        contribute = request.contribute if mean_clip is None else mean_clip.contribute
        points = laid_out(request.points, self._X.dtype)
        buffer = np.empty((self._places.largest_block, len(points)), self._X.dtype)
        C: Any = None
        unit, statistics, means = 1.0, Cascade(), None
        if mean_clip is not None:
            # A power of two near the bound, in units of which no square underflows.
            unit = 2.0 ** math.floor(math.log2(mean_clip.clip.sensitivity(np.dtype(np.float64))))
        terms = np.zeros(len(self._norms))
        for rows in self._places.blocks():
            X = self._X[rows]
            Z = row_products(X, points, buffer[: len(X)])
            block = Block(X, self._y[rows], self._norms[rows])
            residuals, S = contribute(Z, block)
            if residuals is not None:
                if C is None:
                    C = np.zeros((len(self._norms), residuals.shape[1]))
                C[rows] = np.where(self._places.taken[rows, np.newaxis], residuals, 0.0)
                C[rows] /= unit
                # Of blocks, whose shapes are fixed: of all rows, their number would decide how.
                terms[rows] = row_norms(C[rows]) * self._norms[rows]
            if S is not None:
                statistics.add(_weighted_sums(S, weights[rows]))
            if request.observe is not None and S is not None:
                formed = np.asarray(S)
                means = np.zeros((self.n_rows + 1, formed.shape[1])) if means is None else means
                np.add.at(means, self._places.person[rows], weights[rows, np.newaxis] * formed)
        lengths: FloatArray | None = None
        if C is not None:
            lengths = of_rows = self._places.mean(terms)
            if mean_clip is not None:
                found = self._lengths_of_means(C, of_rows)
                entries = self._places.mean(largest_entries(C) * largest_entries(self._X)) * _UP
                factors = mean_clip.clip.weights(unit * found, lambda: unit * entries)
                # A factor above 1 must not make the rows' own terms longer than is stated.
                longest = mean_clip.longest * mean_clip.clip.sensitivity(np.dtype(np.float64)) / unit
                factors = np.minimum(factors, longest / np.maximum(of_rows, 1.0))
                weights = weights * np.append(factors, 0.0)[self._places.person]
                lengths = unit * factors * found
        if request.observe is not None:
            self._show(request, lengths, means)
        return self._total(C, unit * weights), statistics.value

    def _total(self, C: Any, weights: FloatArray) -> FloatArray | None:
        """``sum_i w_i c_i x_i^T`` (k, d_in) over all rows, in double precision; None without residuals."""
        if C is None:
            return None
        total = Cascade()
        for rows in self._places.blocks():
            weighted = weights[rows, np.newaxis] * C[rows]
            weighted[weights[rows] == 0] = 0.0  # even of NaN
            add_products(total, weighted, self._X[rows])
        return np.asarray(total.value)

    def _show(self, request: Request, lengths: FloatArray | None, means: FloatArray | None) -> None:
        """Let a request observe lengths (n_persons,) and mean statistics of all persons."""
        assert request.observe is not None
        nowhere = np.full((self.n_rows, len(request.points)), np.inf)  # products of a mean gradient's rows
        shown = (
            None if lengths is None else lengths[:, np.newaxis],
            None if means is None else means[:-1],
        )
        request.observe(slice(0, self.n_rows), Block(None, self._y[:0], np.ones(self.n_rows)), nowhere, shown)

    # -- lengths of a person's mean ----------------------------------------------------------

    def _lengths_of_means(self, C: FloatArray, of_rows: FloatArray) -> FloatArray:
        """Upper bounds (n_persons,) on the lengths of ``1/m sum_i c_i x_i^T``, with mean lengths of terms.

        They are ``sqrt(sum_ij (c_i c_j)(x_i x_j)) / m`` in double precision, or measured where the mean is
        formed, which is faster for many rows. Bounds on rounding are added, relative to the mean length of
        the rows' terms: Higham 2002, section 3.1. Each person is computed by itself, so that how many others
        have as many rows changes no bit.
        """
        k, d_in = C.shape[1], self._X.shape[1]
        lengths: FloatArray = of_rows.copy()
        error = np.zeros(self.n_rows)
        for index, (persons, places) in enumerate(self._by_size):
            m = places.shape[1]
            if m == 1:
                continue
            if 2 * m <= d_in:  # the products that are kept take no more memory than the rows
                residuals = C[places]
                products = np.matmul(residuals, residuals.swapaxes(1, 2))
                products *= self._gram(index)
                squares = products.reshape(-1, m * m).sum(axis=1)
                lengths[persons] = np.sqrt(np.maximum(squares, 0)) / m
                error[persons] = math.sqrt(2 * _ROUNDOFF * (d_in + k + m**2 + 8))
            else:
                step = max(_FORMED_ENTRIES // (m * d_in + k * d_in), 1)
                for start in range(0, len(persons), step):
                    some = places[start : start + step]
                    rows = self._X[some].astype(np.float64)
                    residuals = C[some]
                    # Not as products with a vector, whose bits may follow from where it begins.
                    formed = (
                        (residuals * rows).sum(axis=1)
                        if min(k, d_in) == 1
                        else np.matmul(residuals.swapaxes(1, 2), rows).reshape(len(some), -1)
                    )
                    lengths[persons[start : start + step]] = np.sqrt((formed**2).sum(axis=1)) / m
                error[persons] = 2 * _ROUNDOFF * (m + k * d_in + 8)
        return lengths + error * of_rows

    def _gram(self, index: int) -> FloatArray:
        """Products (p, m, m) of the rows of each person of one size, in double precision."""
        if index not in self._grams:
            places = self._by_size[index][1]
            m, d_in = places.shape[1], self._X.shape[1]
            products = np.empty((len(places), m, m))
            step = max(_FORMED_ENTRIES // (m * d_in), 1)
            for start in range(0, len(places), step):
                rows = self._X[places[start : start + step]].astype(np.float64)
                np.matmul(rows, rows.swapaxes(1, 2), out=products[start : start + step])
            self._grams[index] = products
        return self._grams[index]

    def sum_error(self, request: Request) -> SumError:
        """How far rounding can move when all rows of a person go.

        A person that goes moves rows of others to other blocks, so all rounding may change. Terms are added
        in double precision, those of a block in any order and then by a cascade. The terms of a person
        together are at most ``longest`` times as long as its contribution may be.
        """
        longest = 1.0 if request.mean_clip is None else request.mean_clip.longest
        relative = 2 * 1.01 * _ROUNDOFF * (self._places.largest_block + 72) * self.n_rows * longest
        return SumError(relative, 0.0, self.n_rows)


def _whole(n_rows: int) -> int:
    """The largest multiple of the unit up to ``n_rows``; at least one unit."""
    return max(n_rows // _UNIT, 1) * _UNIT


def _in_columns(rows: NDArray[np.intp], column: NDArray[np.intp], n_columns: int) -> NDArray[np.intp]:
    """A table (t, n_columns) in which rows (n,) follow each other in their column (n,); -1 where none is."""
    order = np.argsort(column, kind="stable")
    counts = np.bincount(column, minlength=n_columns)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((int(counts.max()), n_columns), -1)
    table[number, column[order]] = rows[order]
    return table


def _weighted_sums(S: Any, weights: FloatArray) -> FloatArray:
    """``sum_i w_i s_i`` (s,) of statistics (rows, s), in double precision; rows of weight 0 add nothing."""
    if isinstance(S, (BinCounts, OuterStatistics)):
        return S.without(weights == 0).sums(weights)
    held = np.where(weights[:, np.newaxis] == 0, 0.0, np.asarray(S, np.float64))
    return np.asarray(weights @ held)
