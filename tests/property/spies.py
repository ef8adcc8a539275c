"""Row sources that are watched: what each row contributes, and what the sum is without one of them."""

from collections import Counter

import numpy as np
import pytest

from skmixdp._files import streamed
from skmixdp._rows import ArrayTable, OuterStatistics, special_table
from tests.unit.rows.conftest import HELD


def prepare(kind, monkeypatch):
    """Skip rows that need what is not installed.

    Where asked, treat tensors as those of a device, and narrow rows as wide ones.
    """
    if kind.endswith("as if wide"):
        monkeypatch.setattr(streamed, "NARROW", 0)
    if kind.startswith("torch"):
        pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    if kind == "torch, as on a device":
        from skmixdp._torch import tensors as torch_table

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
