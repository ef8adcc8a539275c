"""Private rows of persons: a person contributes the mean of the contributions of their rows.

Neighbouring data sets differ in all rows of one person. A person contributes the mean of what its rows
contribute, which is no longer than the longest of them. Where gradients are clipped, it is the person's mean
gradient that is clipped: it is shorter than its rows, so less noise is needed.

The number of persons is public, and the number of rows is not. Each person has a lane, in which its rows
follow those of the persons before it, or blocks of its own. A block holds one row of each lane, so blocks
have the same shape for any number of rows, and a row has the same place in its block whatever other persons
hold. What a row contributes is therefore the same, bit for bit. Sums over rows are added in double precision.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._linear.arrays import Array, FloatArray, largest_entries, row_norms, row_slices
from .._linear.products import NARROW, add_products, is_narrow, loops_of_persons
from .._linear.sums import Cascade, SumError
from .._utils.validation import check_finite
from .blockwise import check_lengths, numbers_in_lanes
from .row_map import RowFunction, RowMap
from .source import LESS_CUT, BinCounts, Block, Labels, OuterStatistics, PrivateRows, Request, Sums, Table

#: Most entries of a part. A pass visits the rows of a part together.
_PART_ENTRIES = 2**18
#: Most rows of a part.
_MOST_ROWS = 4096

#: Most entries of mean gradients that are held together, so that they stay in cache.
_FORMED_ENTRIES = 2**16

#: Upper bound on the length of entries whose squares underflow, in units near the clip.
_UNDERFLOWED = 1e-150

#: Blocks have a multiple of this number of rows, so that they begin at multiples of 64 bytes. Libraries may
#: add entries in an order that depends on the address of the first one.
_UNIT = 16

#: Fewest lanes, and so fewest rows of a block.
_FEWEST_LANES = 64
#: Most lanes, and so most rows of a block. Larger blocks have more padding.
_MOST_LANES = 512

#: Clip of each row's gradient, in units of the clip of the mean gradient. It bounds the rounding of sums.
_LONGEST = 1024.0

_ROUNDOFF = float(np.finfo(np.float64).eps) / 2

#: Factor that covers the rounding of a mean in double precision.
_UP = 1 + 2.0**-33


def computed_by_blocks(
    codes: NDArray[np.intp], n_persons: int, compute: Callable[[NDArray[np.intp]], FloatArray]
) -> FloatArray:
    """The results of a function for all rows of persons, which is called for some rows at a time."""
    # Matrix products round a row by its place and by the number of rows. So the function gets blocks of one
    # size, in which a row has the same place whatever other persons hold. Empty places hold the first row.
    places = Places(codes, n_persons, 0)
    blocks = places.row.reshape(-1, places.n_lanes)
    blocks = blocks[(blocks >= 0).any(axis=1)]
    computed = np.concatenate([compute(np.maximum(block, 0)) for block in blocks])
    taken = blocks.ravel() >= 0
    results = np.empty_like(computed, shape=(len(codes), *computed.shape[1:]))
    results[blocks.ravel()[taken]] = computed[taken]
    return results


class PersonTable(Table):
    """The rows of a table as those of ``n_persons``, by their numbers ``codes``; -1 leaves a row out."""

    def __init__(self, table: Table, codes: NDArray[np.intp], n_persons: int, unit: str) -> None:
        self._table = table
        self.unit = unit
        self._codes = codes
        self.declared = table.declared
        self.shape = (n_persons, table.shape[1])
        self.names = table.names

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            raise RuntimeError("sums over persons are not exact.")
        places = Places(self._codes, *self.shape)
        return PersonRows(places, places.mapped(self._table.blocks(), row_map, dtype), y)

    def holding(self, table: Table) -> "PersonTable":
        """A table with other features of the same rows and persons."""
        return PersonTable(table, self._codes, self.shape[0], self.unit)

    def blocks(self) -> Iterator[Any]:
        return self._table.blocks()

    def transformed(self, function: RowFunction) -> Table:
        return self.holding(self._table.transformed(function))


class Places:
    """The layout of persons' rows in blocks whose products are computed together.

    Row ``t`` of person ``p`` has lane ``(p + t) % n_lanes``, which makes lanes about as long as each other.
    Rows in a lane follow those of earlier persons: place ``b n_lanes + l`` is in lane l of block b. ``row``
    and ``person`` (n_places,) are what each place holds; -1 and ``n_persons`` where it is empty. ``weight``
    is 1/m for rows of a person with m of them, and 0 at empty places.
    """

    def __init__(self, codes: NDArray[np.intp], n_persons: int, n_features: int) -> None:
        self.n_persons = n_persons
        most = _whole(min(_PART_ENTRIES // max(n_features, 1), _MOST_ROWS))
        self.n_lanes = min(_whole(min(max(math.isqrt(n_persons), _FEWEST_LANES), _MOST_LANES)), most)
        blocks = max(min(most, n_persons) // self.n_lanes, 1)
        #: Rows of each part of a pass; a part has several blocks.
        self.part_rows = blocks * self.n_lanes
        rows = np.flatnonzero(codes >= 0)
        rows = rows[np.argsort(codes[rows], kind="stable")]
        self.codes = codes[rows]
        self.sizes = np.bincount(codes[rows], minlength=n_persons)
        self.first = np.append(0, np.cumsum(self.sizes))
        lane = (codes[rows] + np.arange(len(rows)) - self.first[codes[rows]]) % self.n_lanes
        block, n_blocks = numbers_in_lanes(lane, self.n_lanes)
        self.place = block * self.n_lanes + lane
        self.row = np.full(-(-n_blocks // blocks) * self.part_rows, -1)
        self.row[self.place] = rows
        self.taken = self.row >= 0
        self.person = np.full(len(self.row), n_persons)
        self.person[self.place] = self.codes
        self.weight = np.where(self.taken, 1 / np.append(self.sizes, 1)[self.person], 0.0)

    def parts(self) -> Iterator[slice]:
        """The places of each part of a pass."""
        return row_slices(len(self.row), self.part_rows)

    @cached_property
    def by_size(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Persons (p,) with two rows or more, grouped by size, and the places (p, m) of their rows."""
        # Sizes are rounded up to m, for fewer groups. Up to a fifth of the m places then hold no row.
        unit = 2 ** np.maximum(np.frexp(self.sizes)[1] - 3, 0)
        widths, groups = np.where(self.sizes > 1, -(-self.sizes // unit) * unit, 0), []
        for m in np.unique(widths[widths > 0]).tolist():
            persons = np.flatnonzero(widths == m)
            inside = (number := np.arange(m)) < self.sizes[persons, np.newaxis]
            places = self.place.take(self.first[persons, np.newaxis] + number, mode="clip")
            groups.append((persons, np.where(inside, places, len(self.row))))
        return groups

    def mean(self, values: FloatArray) -> FloatArray:
        """Means (n_persons, ...) of values (n_places, ...) over the rows of each person, in their order."""
        weighted = (self.weight * values.T).T[self.place]
        if weighted.ndim == 1:
            return np.asarray(np.bincount(self.codes, weighted, self.n_persons), np.float64)
        means = np.zeros((self.n_persons, weighted.shape[1]))
        np.add.at(means, self.codes, weighted)
        return means

    def _dense(self, parts: Iterable[Any]) -> Iterator[NDArray[Any]]:
        """The parts as dense arrays. Sparse rows are made dense one block at a time."""
        for part in parts:
            X: Any = part
            if sp.issparse(part):
                yield from (X[rows].toarray() for rows in row_slices(X.shape[0], self.part_rows))
            else:
                yield np.asarray(X)

    def mapped(
        self, parts: Iterable[Any], row_map: RowMap, dtype: np.dtype[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Mapped rows (n_places, d_in) of all parts of a table, zeros at empty places, and their lengths."""
        place_of = np.full(int(self.row.max()) + 1, -1)
        place_of[self.row[self.taken]] = np.flatnonzero(self.taken)
        features: Any = None
        first = 0
        for rows in self._dense(parts):
            check_finite(np.isfinite(rows).all(), "X")
            held_as = np.result_type(np.float32 if features is None else features, rows)
            if features is None:
                features = np.zeros((len(self.row), rows.shape[1]), held_as)
            features = features.astype(held_as, copy=False)
            at = place_of[first : first + len(rows)]
            features[at[at >= 0]] = rows[: len(at)][at >= 0]
            first += len(rows)
        shape, norms = (len(features), row_map.width(features.shape[1])), np.empty(len(features))
        X = features if features.shape == shape and features.dtype == dtype else np.empty(shape, dtype)
        for block in row_slices(len(features), self.n_lanes):
            mapped = np.empty(X[block].shape, dtype, order="F" if is_narrow(*X[block].shape) else "C")
            row_map.write(features[block], mapped, norms[block])
            X[block] = mapped
        return X, norms


class PersonRows(PrivateRows):
    """Rows at all places (n_places, d_in), and their lengths, of ``n_rows`` persons, after the map.

    *Guarantee*: a person adds ``1/m sum_i c_i x_i^T`` and ``1/m sum_i s_i`` over its m rows to a sum. If
    contributions ``(c_i, s_i)`` of rows obey a bound, so does this mean. A MeanClip clips the mean.
    """

    def __init__(self, places: Places, rows: tuple[FloatArray, FloatArray], y: Labels) -> None:
        self.n_rows = places.n_persons
        self._places = places
        self._X, self._norms = rows
        check_lengths(self._norms[places.taken], self._X.dtype)
        self._y = y[np.where(places.taken, places.row, 0)]
        self._grams: dict[int, FloatArray] = {}

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        return [self._taking_part(request)._sums(request) for request in requests]

    def _taking_part(self, request: Request) -> "PersonRows":
        """The rows of the persons that take part, without others, so that others change no sum."""
        taking_part = request.batch.mask
        if taking_part is None:
            return self
        place = self._places.place
        codes = self._places.codes
        places = Places(np.where(taking_part[codes], codes, -1), self.n_rows, self._X.shape[1])
        at = place[places.row]
        return PersonRows(places, (self._X[at], self._norms[at]), self._y[place])

    def _sums(self, request: Request) -> Sums:
        weights = self._places.weight
        mean_clip = request.query.mean_clip
        contribute, unit, longest = request.query.contribute, 1.0, math.inf
        if mean_clip is not None:
            contribute, bound = mean_clip.contribute, mean_clip.clip.sensitivity(np.dtype(np.float64))
            # A power of two near the bound, in units of which squares do not underflow.
            unit, longest = 2.0 ** math.floor(math.log2(bound)), _LONGEST * bound
        points = request.query.points.astype(self._X.dtype, order="F")
        C: Any = None
        statistics, shown, compiled = Cascade(), [], None
        factors_of, values_of = [], []  # factors and values of outer products of means
        terms = np.zeros(len(self._norms))
        for rows in self._places.parts():
            X, norms = self._X[rows], self._norms[rows]
            block = Block(X, self._y[rows], norms)
            residuals, S = contribute(self._products(X, points), block)
            if residuals is not None:
                if C is None:
                    k = residuals.shape[1]
                    if mean_clip is not None:
                        compiled = loops_of_persons(self.n_rows, X.shape[1], k, X.dtype)
                    if compiled is None:
                        C = np.zeros((len(self._norms) + 1, k))  # the last row stays 0
                    else:
                        C = np.empty((len(self._norms), k), X.dtype, order="F")
                of_part = C[rows]
                of_part[:] = residuals
                if compiled is None:
                    terms[rows] = row_norms(of_part) * norms
                    if mean_clip is not None:
                        _shorten(of_part, terms[rows], longest, unit)
            if isinstance(S, OuterStatistics) and S.of_means:
                factors_of.append(S.factors)
                values_of.append(S.values)
            elif S is not None:
                statistics.add(_weighted_sums(S, weights[rows]))
            if request.observe is not None and S is not None:
                shown.append(np.asarray(S))
        if factors_of:
            means = [self._places.mean(np.concatenate(parts)) for parts in (factors_of, values_of)]
            for persons in row_slices(self.n_rows, self._places.part_rows):
                statistics.add(OuterStatistics(means[0][persons], means[1][persons]).sums())
        total = lengths = None
        counting = np.ones(self.n_rows)
        if mean_clip is not None and mean_clip.row_weights is not None:
            mean_weights = self._places.mean(mean_clip.row_weights(self._y))
            counting = np.where(mean_weights > 0, np.minimum(LESS_CUT * mean_weights, 1.0), 1.0)
        if mean_clip is not None and compiled is not None:
            total, lengths = self._formed_sum(C.T, mean_clip.clip, compiled, longest, unit, counting)
        elif C is not None:
            lengths = of_rows = self._places.mean(terms)
            if mean_clip is not None:
                of_means = self._lengths_of_means(C, of_rows)

                def largest() -> FloatArray:
                    entries = largest_entries(C[:-1]) * largest_entries(self._X)
                    return unit * _UP * self._places.mean(entries) / counting

                factors = mean_clip.clip.weights(unit * of_means / counting, largest)
                # A factor above 1 must not make terms of single rows longer than is stated.
                factors = np.minimum(factors, longest / unit / np.maximum(of_rows, 1.0))
                weights = weights * np.append(factors, 0.0)[self._places.person]
                lengths = unit * factors * of_means
            total = self._total(C, unit * weights)
        if request.observe is not None:
            # Products with points belong to single rows. A person has none: inf stands for them.
            nowhere = np.full((self.n_rows, len(points)), np.inf)
            block = Block(None, self._y[:0], np.ones(self.n_rows))
            of_statistics = self._places.mean(np.concatenate(shown)) if shown else None
            parts = (None if lengths is None else lengths[:, np.newaxis], of_statistics)
            request.observe(slice(0, self.n_rows), block, nowhere, parts)
        return total, statistics.value

    @cached_property
    def _by_person(self) -> FloatArray:
        """The rows of each person together, which compiled loops read faster."""
        return np.asarray(self._X[self._places.place])

    def _products(self, X: FloatArray, points: FloatArray) -> FloatArray:
        """``X points^T`` (rows, m) of a part, block by block; column-major if there are few points."""
        m = len(points)
        n_lanes = self._places.n_lanes
        blocks = X.reshape(len(X) // n_lanes, n_lanes, X.shape[1])
        products = np.matmul(blocks, points.T).reshape(len(X), m)
        return np.asfortranarray(products) if m < NARROW else products

    def _total(self, C: FloatArray, weights: FloatArray) -> FloatArray:
        """``sum_i w_i c_i x_i^T`` (k, d_in) over all rows, in double precision."""
        total = Cascade()
        wide = np.empty((self._places.part_rows, self._X.shape[1]))
        for rows in self._places.parts():
            weighted = weights[rows, np.newaxis] * C[rows]
            weighted[weights[rows] == 0] = 0.0  # 0 times a NaN residual is NaN
            wide[:] = self._X[rows]
            add_products(wide, weighted, total)
        return np.asarray(total.value)

    def _formed_sum(
        self,
        C: FloatArray,
        clip: Any,
        compiled: ModuleType,
        longest: float,
        unit: float,
        counting: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The sum (k, d_in) of clipped mean gradients, and their lengths (n_persons,), by compiled loops."""
        # Each person's mean is formed in double precision, and its length computed. Then means are added, a
        # fixed number at a time.
        k, d_in = len(C), self._X.shape[1]
        places = self._places
        step = min(max(_FORMED_ENTRIES // (k * d_in), 1), places.part_rows)
        shortening = compiled.shortening(C, self._norms, longest)
        weights = shortening * (places.weight / unit)
        total, lengths, formed = Cascade(), np.empty(self.n_rows), np.empty((step, k, d_in))

        @cache
        def largest() -> FloatArray:
            entries = largest_entries(np.where(shortening > 0, C, 0.0).T) * largest_entries(self._X)
            return _UP * places.mean(shortening * entries)

        for persons in row_slices(self.n_rows, step):
            first = places.first[persons.start : persons.stop + 1]
            means = formed[: len(first) - 1]
            # The addition covers squares that may have underflowed.
            norms = _UP * compiled.mean_gradients(self._by_person, C, weights, places.place, first, means)
            norms += _UNDERFLOWED
            share = counting[persons]
            factors = clip.weights(
                unit * norms / share, lambda persons=persons, share=share: largest()[persons] / share
            )
            total.add(unit * factors @ means.reshape(len(means), -1))
            lengths[persons] = unit * factors * norms
        return np.asarray(total.value).reshape(k, d_in), lengths

    # -- lengths of a person's mean ----------------------------------------------------------

    def _lengths_of_means(self, C: FloatArray, of_rows: FloatArray) -> FloatArray:
        """Upper bounds (n_persons,) on the lengths of ``1/m sum_i c_i x_i^T``, with mean lengths of terms.

        They are ``sqrt(sum_ij (c_i c_j)(x_i x_j)) / m`` in double precision, or measured where the mean is
        formed, which is faster for many rows. Bounds on rounding are added, relative to the mean length of
        the rows' terms: Higham 2002, section 3.1. Each person is computed alone, so that the sizes of others
        change no bit.
        """
        k, d_in = C.shape[1], self._X.shape[1]
        lengths = of_rows.copy()
        error = np.zeros(self.n_rows)
        for index, (persons, places) in enumerate(self._places.by_size):
            m = places.shape[1]
            # Products are kept if they need at most about the memory of the rows.
            by_products = 2 * m <= d_in
            squares = np.empty(len(persons))
            for some in row_slices(
                len(persons), max(_PART_ENTRIES // (m * (k + (m if by_products else d_in))), 1)
            ):
                if by_products:
                    residuals = C[places[some]]
                    products = np.matmul(residuals, residuals.swapaxes(1, 2))
                    products *= self._gram(index)[some]
                else:
                    products = self._formed(C, places[some]) ** 2
                squares[some] = products.reshape(len(products), -1).sum(axis=1)
            lengths[persons] = np.sqrt(np.maximum(squares, 0)) / self._places.sizes[persons]
            roundings = 2 * _ROUNDOFF * (m + 8 + k * d_in)
            if by_products:
                roundings = math.sqrt(2 * _ROUNDOFF * (d_in + k + m**2 + 8))
            error[persons] = roundings
        return lengths + error * of_rows

    def _formed(self, C: FloatArray, places: NDArray[np.intp]) -> FloatArray:
        """``sum_i c_i x_i^T`` (p, k, d_in) of each person, in double precision, from parts of their rows."""
        formed = np.zeros((len(places), C.shape[1], self._X.shape[1]))
        for part in row_slices(places.shape[1], max(_PART_ENTRIES // self._X.shape[1], 1)):
            residuals = C[places[:, part]]
            rows = self._X.take(places[:, part], axis=0, mode="clip").astype(np.float64, copy=False)
            # A matrix-vector product may be rounded differently at another address in memory.
            if min(formed.shape[1:]) == 1:
                formed += (residuals * rows).sum(axis=1).reshape(formed.shape)
            else:
                formed += np.matmul(residuals.swapaxes(1, 2), rows)
        return formed

    def _gram(self, index: int) -> FloatArray:
        """Products (p, m, m) of the rows of each person of one size, in double precision."""
        if index not in self._grams:
            places = self._places.by_size[index][1]
            m, d_in = places.shape[1], self._X.shape[1]
            products = np.empty((len(places), m, m))
            for some in row_slices(len(places), max(_PART_ENTRIES // (m * d_in), 1)):
                rows = self._X.take(places[some], axis=0, mode="clip").astype(np.float64, copy=False)
                np.matmul(rows, rows.swapaxes(1, 2), out=products[some])
            self._grams[index] = products
        return self._grams[index]

    def sum_error(self, request: Request) -> SumError:
        """Bound on the change of rounding when all rows of a person are removed.

        A person that goes moves rows of others to other blocks, so all rounding may change. Terms are added
        in double precision, those of a part in any order and then by a cascade. Compiled loops form each mean
        alone, and add at most as many means at a time as a part has rows. The terms of a person together are
        at most ``longest`` times as long as its contribution may be.
        """
        longest = 1.0 if request.query.mean_clip is None else _LONGEST
        relative = 2 * 1.01 * _ROUNDOFF * (self._places.part_rows + 72) * self.n_rows * longest
        return SumError(relative, 0.0, self.n_rows)


def _whole(n_rows: int) -> int:
    """The largest multiple of the unit up to ``n_rows``, and at least one unit."""
    return max(n_rows // _UNIT, 1) * _UNIT


def _shorten(C: FloatArray, terms: FloatArray, longest: float, unit: float) -> None:
    """Shorten rows of ``C`` with lengths ``terms`` to ``longest``, in place, and convert both to ``unit``."""
    finite = terms < np.inf  # others become 0
    with np.errstate(invalid="ignore"):
        C *= (np.where(finite, longest / np.maximum(terms, longest), 0.0) / unit)[:, np.newaxis]
    C[~finite] = 0.0  # 0 times NaN would be NaN
    terms[:] = np.where(finite, np.minimum(terms, longest) / unit, 0.0)


def _weighted_sums(S: Array | OuterStatistics | BinCounts, weights: FloatArray) -> FloatArray:
    """``sum_i w_i s_i`` (s,) of statistics (rows, s), in double precision; rows of weight 0 add nothing."""
    if isinstance(S, (BinCounts, OuterStatistics)):
        return S.without(weights == 0).sums(weights)
    statistics = np.where(weights[:, np.newaxis] == 0, 0.0, np.asarray(S, np.float64))
    return np.asarray(weights @ statistics)
