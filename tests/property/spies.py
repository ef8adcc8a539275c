"""Row sources that are watched: what each row contributes, and what the sum is without one of them."""

from collections import Counter

import numpy as np
import pytest

from skmixdp.components.clipping import clipped_residuals
from skmixdp.components.public import PublicData
from tests.asking import request_of
from tests.catalog import CLIPPERS
from tests.private_names import (
    UNDERFLOW_PAD,
    ArrayTable,
    Centre,
    OuterStatistics,
    SoftmaxLoss,
    clipped_parts,
    dot_error,
    special_table,
    streamed,
)
from tests.unit.rows.conftest import HELD


def prepare(kind, monkeypatch):
    """Skip rows that need what is not installed."""
    if kind.endswith("as if wide"):
        monkeypatch.setattr(streamed, "NARROW", 0)
    if kind.startswith("torch"):
        pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    if kind == "torch, as on a device":
        from tests.private_names import tensors as torch_table

        monkeypatch.setattr(torch_table, "is_processor", lambda device: False)


def source(kind, tmp_path, X, y, row_map, dtype):
    """Mapped rows, held in one of the ways of ``HELD``, with labels or targets."""
    held, _ = HELD[kind](tmp_path, X, np.zeros(len(X)))  # labels are given
    table = special_table(held)
    table = ArrayTable(held) if table is None else table
    return table.private_rows(y, row_map, np.dtype(dtype), exact=False)


class Spied:
    """A ``contribute`` that hands on what it contributes to a listener, on the host or on tensors."""

    def __init__(self, inner, listen):
        self.inner = inner
        self.listen = listen

    def __call__(self, Z, block):
        return self.listen(*self.inner(Z, block))


class SpiedRows:
    """A row source whose requests are listened to; everything else is the source's own."""

    def __init__(self, rows):
        self._rows = rows

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def private_sums(self, requests):
        heard = [
            request.with_query(contribute=Spied(request.query.contribute, self.listener(number)))
            for number, request in enumerate(requests)
        ]
        return self._rows.private_sums(heard)


class Recorded(SpiedRows):
    """Counts the contributions of all rows, bit for bit, in any order."""

    def __init__(self, rows):
        super().__init__(rows)
        self.seen = Counter()

    def listener(self, number):
        def listen(C, S):
            arrays = [np.asarray(part) for part in (C, S) if part is not None]
            joint = np.concatenate([np.ascontiguousarray(a, dtype=np.float64) for a in arrays], axis=1)
            # (Zeros of either sign add the same.)
            self.seen.update((number, row.tobytes()) for row in joint + 0.0)
            return C, S

        return listen


class Without(SpiedRows):
    """The same rows with one of them zeroed out: what it contributes is replaced by zero.

    ``row`` counts in the order in which the source visits rows; None zeroes none.
    """

    def __init__(self, rows, row):
        super().__init__(rows)
        self._row = row

    def listener(self, number):
        place = [0]

        def listen(C, S):
            if isinstance(S, OuterStatistics):
                S = np.asarray(S)
            here = [part for part in (C, S) if part is not None]
            first, place[0] = place[0], place[0] + len(here[0])
            if self._row is not None and first <= self._row < place[0]:
                for part in here:
                    part[self._row - first] = 0
            return C, S

        return listen


def asked(rows, points, contribute):
    """What a query saw of rows in one block: their products, the block, and what they contribute."""
    seen = []

    def look(Z, block):
        products = Z.copy()
        C, S = contribute(Z, block)
        seen.append((products, block, None if C is None else C.copy(), S))
        return C, S

    with np.errstate(all="ignore"):
        rows.private_sums([request_of(points, look)])
    (one,) = seen
    return one


def assert_as_exact_as_told(rows, exact_rows, points, dtype):
    """Products are off by at most ``dot_error`` of the block's reach, which DOPE and GEP take for granted."""
    Z, block, *_ = asked(rows, points, lambda Z, block: (None, Z))
    bound = dot_error(points.shape[1] + 1, np.dtype(dtype)) * np.outer(
        block.rounding_scale + UNDERFLOW_PAD, np.linalg.norm(points, axis=1) + UNDERFLOW_PAD
    )
    exact = exact_rows() @ points.T.astype(np.longdouble)
    assert np.all(np.abs(Z - exact) <= bound)
    return block


def assert_clipped(rows, exact_rows, name, W, dtype, *, centred):
    """No row contributes more than a clip of the catalog states, of its gradient or its deviation."""
    (k, d_in), loss = W.shape, SoftmaxLoss(len(W))
    public = PublicData(np.random.default_rng(0).normal(size=(9, d_in)), np.arange(9) % k, loss).view(W)
    clip, centre = CLIPPERS[name].at(public), public.gradient

    def contribute(Z, block):
        if centred:
            return clipped_parts(Z, block, loss, Centre(centre), clip)
        return clipped_residuals(Z, block, loss, clip)

    _, _, C, weights = asked(rows, np.concatenate([W, centre]) if centred else W, contribute)
    g = C.astype(np.longdouble)[:, :, None] * exact_rows()[:, None, :]
    if centred:
        g -= weights.astype(np.longdouble)[:, :, None] * centre
    assert np.sqrt((g**2).sum(axis=(1, 2))).max() <= clip.sensitivity(np.dtype(dtype))


def with_intercept(rows, row_map):
    """Rows in extended precision with the constant that their map appends, if it does."""
    if row_map.intercept_value is None:
        return rows
    return np.column_stack([rows, np.full(len(rows), row_map.intercept_value, np.longdouble)])


def length(rows):
    return np.sqrt((rows**2).sum(axis=-1))
