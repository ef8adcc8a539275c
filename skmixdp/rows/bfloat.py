"""Private rows held in bfloat16: half the memory of float32, and twice the rows in it.

A bfloat16 is the upper half of a float32, so a block is made float32 by a shift, exactly, when its
turn comes, and all arithmetic is that of float32. Products of bfloat16 matrices would be faster,
but on processors their sums come back rounded to eight bits: one row could then move a sum by a
step of its rounding, which no clip bounds.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..linear import row_norms, row_products, weighted_sum
from .answering import Selection, Visit, answer, selections
from .contract import Block, FloatArray, Labels, Request, Sums
from .memory import check_lengths

Bits = NDArray[np.uint16]


class BFloat16Rows:
    """Private rows in bfloat16.

    Parameters
    ----------
    blocks : iterable of arrays of shape (rows, d_in), float32
        The mapped rows, in order; each is rounded to the nearest bfloat16.
    y : array of shape (n_rows,) or (n_rows, k)
        Class indices or targets.
    block_bytes : int
        Size of the float32 blocks that are visited in turn.

    Notes
    -----
    *Guarantee*: lengths are those of the rounded rows, so that clips bound what takes part in
    the sums; weighted residuals and sums are float32, as are the bounds on their rounding.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

    grid: float | None = None

    def __init__(self, blocks: Iterable[FloatArray], y: Labels, *, block_bytes: int = 2**21) -> None:
        parts, norms = [], []
        for block in blocks:
            bits = to_bits(block)
            parts.append(bits)
            norms.append(row_norms(from_bits(bits)))
        self._bits = np.concatenate(parts)
        self._norms = np.concatenate(norms)
        check_lengths(self._norms, np.dtype(np.float32))
        self._y = y
        self.n_rows = len(self._bits)
        self._block_rows = max(512, block_bytes // max(4 * self._bits.shape[1], 1))

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        rows = min(self._block_rows, self.n_rows)
        X = np.empty((rows, self._bits.shape[1]), np.float32)
        Z = np.empty((rows, sum(len(request.points) for request in requests)), np.float32)
        blocks = selections([request.mask for request in requests], self.n_rows, self._block_rows)
        return answer(requests, (self._visit(taken, X, Z) for taken in blocks), np.dtype(np.float32))

    def _visit(self, rows: Selection, wide: FloatArray, products: FloatArray) -> Visit:
        """A block of rows; it and its products are in the buffers, until the next one's are."""
        bits = self._bits[rows]
        X = from_bits(bits, wide[: len(bits)])
        return Visit(
            rows,
            Block(X, self._y[rows], self._norms[rows]),
            times=lambda points: row_products(X, points, products[: len(X)]),
            weighted_sum=lambda C: weighted_sum(C, X),
        )


def to_bits(X: FloatArray) -> Bits:
    """Bits of the bfloat16 nearest to each finite float32, ties to even."""
    bits = np.ascontiguousarray(X, dtype=np.float32).view(np.uint32)
    return np.asarray((bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) >> 16, dtype=np.uint16)


def from_bits(bits: Bits, out: FloatArray | None = None) -> FloatArray:
    """The float32 of the same value as each bfloat16, in ``out`` if given."""
    if out is None:
        out = np.empty(bits.shape, np.float32)
    wide = out.view(np.uint32)
    np.copyto(wide, bits)
    np.left_shift(wide, 16, out=wide)
    return out
