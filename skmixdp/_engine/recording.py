"""Records of releases for audits, and of the privacy loss of each private row.

A release adds Gaussian noise of standard deviation ``s`` to an array. Removing row i moves the array by some
length ``l_i``, so it is ``l_i / s``-Gaussian-DP for that pair of data sets. The squares add up over all
releases of a fit (AdaMix, Proposition 14).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._rows.blockwise import InMemoryRows
from .._rows.persons import PersonTable
from .._rows.row_map import UNCHANGED
from .._rows.source import (
    Block,
    Contribute,
    Contribution,
    Lengths,
    PrivateQuery,
    PrivateRows,
    ReleasedArray,
    Request,
    term_lengths,
)
from .._rows.table import ArrayTable, from_device
from ..components.protocols import FloatArray


@dataclass(frozen=True)
class RecordedRelease:
    """The noisy arrays that one query released, with its public facts and the stated scales of noise."""

    query: PrivateQuery
    arrays: tuple[FloatArray, ...]
    scales: tuple[float, ...]


@dataclass(frozen=True)
class _Recorder:
    """The recorded releases of a context, and a mask of rows that are zeroed out in it, if any."""

    releases: list[RecordedRelease]
    absent: NDArray[np.bool_] | None

    def without_absent(self, request: Request, rows: PrivateRows) -> Request:
        """The request without the rows that an audit zeroes out."""
        if self.absent is None:
            return request
        if len(self.absent) != rows.n_rows:
            raise RuntimeError(
                f"absent has {len(self.absent)} entries and the source {rows.n_rows} rows; pass one entry "
                "for each row."
            )
        # Absent rows keep their index, as rows outside of a batch do.
        batch = request.batch
        taken = ~self.absent if batch.taken is None else ~self.absent & batch.taken
        return replace(request, batch=replace(batch, taken=taken))


#: The recorder of this context, if any.
current_recorder: ContextVar[_Recorder | None] = ContextVar("current_recorder", default=None)


@contextmanager
def recorded_releases(absent: NDArray[np.bool_] | None = None) -> Iterator[list[RecordedRelease]]:
    """Record the releases of fits in this context, optionally with some private rows zeroed out.

    Rows that are ``absent`` (n_rows,) contribute zero to every sum; the number of rows does not change.

    *Guarantee*: a record holds noisy arrays and public facts of their queries, never a sum without noise.
    """
    recorder = _Recorder([], absent)
    token = current_recorder.set(recorder)
    try:
        yield recorder.releases
    finally:
        current_recorder.reset(token)


class KnownRows:
    """Mapped rows, or persons by ``codes``, that an attacker knows: they answer queries without noise."""

    def __init__(self, X: FloatArray, y: NDArray[Any], codes: NDArray[np.intp] | None) -> None:
        self._d_in = X.shape[1]
        self._rows: PrivateRows = InMemoryRows(X, y)
        if codes is not None:
            table = PersonTable(ArrayTable(X), codes, int(codes.max()) + 1, "person")
            self._rows = table.private_rows(y, UNCHANGED, X.dtype, exact=False)

    def of_training(self, releases: Sequence[RecordedRelease]) -> Iterator[RecordedRelease]:
        """The recorded releases of training steps; a bound needs no others, such as those of a scaler."""
        for release in releases:
            points = release.query.points
            if isinstance(points, np.ndarray) and len(points) > 0 and points.shape[1] == self._d_in:
                yield release

    def answer(self, release: RecordedRelease) -> tuple[FloatArray, ...]:
        """Contribution of these rows to the released arrays."""
        query = release.query
        (sums,) = self._rows.private_sums([Request(query)])
        arrays = query.assemble([part for part in sums if part is not None])
        return tuple(np.asarray(array, dtype=np.float64) for array in arrays)


class Observation:
    """How far each of a source's ``n_rows`` rows moves the arrays that its ``request`` releases."""

    def __init__(self, request: Request, n_rows: int) -> None:
        query = request.query
        self._releases = query.releases
        everyone = np.ones(n_rows, dtype=bool)
        self._members = everyone if request.batch.members is None else request.batch.members
        self._taken = everyone if request.batch.taken is None else request.batch.taken
        self._lengths = np.zeros((len(query.releases), n_rows))
        self._measure = query.lengths
        if query.lengths is None and query.assemble is tuple:
            self._measure = Lengths(term_lengths)
        self.request = replace(request, observe=self._observe)
        if self._measure is not None and self._measure.points is not None:
            self._n_asked = len(query.points)
            mean_clip = query.mean_clip
            self.request = self.request.with_query(
                points=np.concatenate([query.points, self._measure.points]),
                contribute=self._of_asked(query.contribute),
                mean_clip=mean_clip and replace(mean_clip, contribute=self._of_asked(mean_clip.contribute)),
            )

    def _of_asked(self, contribute: Contribute) -> Contribute:
        return lambda Z, block: contribute(Z[:, : self._n_asked], block)

    def _observe(self, rows: Any, block: Block, Z: Any, contribution: Contribution) -> None:
        if self._measure is None:
            lengths_of: Sequence[Any] = [np.full(len(Z), np.inf)] * len(self._releases)
        else:
            more = self._measure.points is not None
            host = Block(
                None,
                np.empty(0),
                from_device(block.norms),
                compute_rounding_scale=lambda: from_device(block.rounding_scale),
            )
            C, S = (None if part is None else from_device(part) for part in contribution)
            lengths_of = self._measure.of(C, S, from_device(Z[:, self._n_asked :]) if more else None, host)
        for j, (part, lengths) in enumerate(zip(self._releases, lengths_of, strict=True)):
            # Where a row's own bound is NaN or larger than the sensitivity, the sensitivity holds.
            self._lengths[j, rows] = np.where(lengths <= part.sensitivity, lengths, part.sensitivity)

    def lengths(self, stated: Sequence[ReleasedArray]) -> list[FloatArray]:
        """The most by which each row can move each computed array, (n_rows,), by the stated sensitivities.

        Rounding may add what the stated sensitivity adds. A coin that left a row out lowers nothing: another
        coin would have moved the array by the sensitivity.
        """
        moved = []
        for lengths, part, computed in zip(self._lengths, self._releases, stated, strict=True):
            rounding = computed.sensitivity - part.sensitivity
            drawn = np.where(self._taken, lengths, part.sensitivity)
            moved.append(np.where(self._members, drawn + rounding, 0.0))
        return moved
