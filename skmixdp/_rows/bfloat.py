"""Private rows held in bfloat16: half the memory of float32, and twice the rows in it.

A bfloat16 is the upper half of a float32, so a block is made float32 by a shift, exactly, when its
turn comes, and all arithmetic is that of float32. Products of bfloat16 matrices are faster. They are used
where an accelerator adds them up in float32 (see :mod:`skmixdp._kernels.accelerators`). Other libraries
return their sums rounded to eight bits: one row could then move a sum by a step of its rounding, which no
clip bounds.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from .._kernels import (
    PANEL_ROWS,
    Cascade,
    Product,
    SumError,
    add_products,
    bfloat16_product,
    product_session,
    row_products,
    sum_error,
)
from .._linear import largest_entries, row_norms
from .._rowmap import RowMap
from .answering import Selection, Visit, answer, block_size, many_rows, selections
from .memory import check_lengths
from .source import Block, FloatArray, Labels, PrivateRows, Request, Sums

Bits = NDArray[np.uint16]

#: Rows that are mapped at a time before they are rounded to bfloat16.
_MAPPED_ROWS = 4096


class BFloat16Rows(PrivateRows):
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
    the sums, which are added up in float32. Queries that say that their weighted residuals bound
    themselves are multiplied in bfloat16: points are rounded, which moves nothing but the residuals
    that are then clipped, and weighted residuals are rounded towards zero, which makes none longer.
    All others are multiplied in float32, to which their bounds on rounding refer.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

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
        d_in = max(self._bits.shape[1], 1)
        self._block_rows = block_size(block_bytes // (4 * d_in))

    @classmethod
    def of(cls, blocks: Iterable[FloatArray], y: Labels, row_map: RowMap) -> "BFloat16Rows":
        """The rows that a map makes of features (rows, n_features), a few of them at a time."""
        return cls(
            (
                row_map(block[start : start + _MAPPED_ROWS], np.float32)
                for block in blocks
                for start in range(0, len(block), _MAPPED_ROWS)
            ),
            y,
        )

    def training(self) -> AbstractContextManager[None]:
        return product_session(np.float32)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        product = bfloat16_product()
        if product is not None and all(request.bounds_itself for request in requests):
            return answer(requests, self._narrow_visits(requests, product), np.dtype(np.float32))
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
            add_sum=lambda C, total: add_products(total, C, X),
        )

    def sum_error(self, request: Request) -> SumError:
        return sum_error(self.n_rows, np.float64 if request.wide_sums else np.float32)

    def _narrow_visits(self, requests: Sequence[Request], product: Product) -> Iterator[Visit]:
        """All blocks, multiplied in bfloat16; their outputs are in a buffer, until the next one's are."""
        m = sum(len(request.points) for request in requests)
        # Each product rearranges its matrices first, which large blocks share.
        block_rows = block_size(max(2 * self._block_rows, many_rows(m, self._bits.shape[1])))
        outputs = np.empty(m * min(block_rows, self.n_rows), np.float32)
        placed: list[Bits] = []  # the points of the pass

        def times(bits: Bits, points: FloatArray) -> FloatArray:
            if not placed:
                placed.append(to_bits(points))
            # (With the points on the left, the outputs come out column by column, and sooner.)
            return product(placed[0], bits.T, outputs[: m * len(bits)].reshape(m, -1)).T

        def add_sum(bits: Bits, C: FloatArray, total: Cascade) -> None:
            weights = shortened(C.T)
            for start in range(0, max(len(bits), 1), PANEL_ROWS):
                rows = slice(start, start + PANEL_ROWS)
                term = total.buffer((len(weights), bits.shape[1]), np.dtype(np.float32))
                total.add(product(weights[:, rows], bits[rows], term))

        for rows in selections([request.mask for request in requests], self.n_rows, block_rows):
            bits = self._bits[rows]
            yield Visit(
                rows,
                Block(
                    None,
                    self._y[rows],
                    self._norms[rows],
                    max_abs=lambda bits=bits: largest_entries(from_bits(bits)),  # type: ignore[misc]
                ),
                times=lambda points, bits=bits: times(bits, points),  # type: ignore[misc]
                add_sum=lambda C, total, bits=bits: add_sum(bits, C, total),  # type: ignore[misc]
            )


def shortened(C: FloatArray) -> Bits:
    """Bits of the finite float32 numbers (m, rows), rounded to bfloat16 towards zero."""
    bits = np.ascontiguousarray(C, dtype=np.float32).view(np.uint32)
    return np.right_shift(bits, 16, out=np.empty(bits.shape, np.uint16), casting="unsafe")


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
