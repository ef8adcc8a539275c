"""Records of releases for audits, and known rows that answer the recorded queries."""

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
from .._rows.source import PrivateQuery, PrivateRows, Request
from .._rows.table import ArrayTable
from ..components.protocols import FloatArray


@dataclass(frozen=True)
class RecordedRelease:
    """The noisy arrays that one query released, with public facts of the query.

    ``scales`` are the stated standard deviations of the noise: noise multiplier times stated sensitivity
    divided by the square root of the share.
    """

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

    It yields a list of records, in the order of release. Rows that are ``absent`` (n_rows,) contribute zero
    to every sum, as in the neighbouring data sets of the guarantee; the number of rows does not change.
    Another number of rows in the source is a RuntimeError.

    *Guarantee*: a record holds noisy arrays and public facts of their queries, never a sum without noise. A
    row that is zeroed out has the same effect as a row that was never there, for the same public number of
    rows.
    """
    recorder = _Recorder([], absent)
    token = current_recorder.set(recorder)
    try:
        yield recorder.releases
    finally:
        current_recorder.reset(token)


class KnownRows:
    """Mapped rows that an attacker knows, which answer recorded queries without noise.

    ``codes`` (n_rows,) are numbers of persons, or None for rows. An audit's result is declared not private.
    """

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
