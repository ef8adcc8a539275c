"""Private rows in a torch tensor, on the processor or on a device, where they stay.

Loaded only for tensors. Rows are mapped, measured and multiplied where they are; what goes back
and forth are points, outputs, weighted residuals and sums, and labels stay with NumPy. The noise is
added to the sums on the processor, by the same generator as always.
"""

import functools
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..linear import RowMap
from .answering import Selection, Visit, answer, selections
from .contract import Block, FloatArray, Labels, PrivateRows, Request, Sums
from .memory import InMemoryRows, check_lengths

#: Bytes in a block: on a device, a block pays for a copy of its outputs each way.
_BLOCK_BYTES = {"cpu": 2**21}
_DEVICE_BYTES = 2**28

#: Rows that are mapped at a time, in float64.
_MAPPED_ROWS = 4096


class TensorBlock(Block):
    """What a question may know of a block of rows in a tensor."""

    def __init__(self, X: torch.Tensor, y: Labels, norms: FloatArray) -> None:
        self._tensor = X
        self.y = y
        self.norms = norms

    @cached_property
    def max_abs(self) -> FloatArray:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return _array(_largest(self._tensor).double())


class TorchRows:
    """Private rows in a tensor.

    Parameters
    ----------
    X : tensor of shape (n_rows, d_in), float32 or float64
        Rows after the row map.
    y : array of shape (n_rows,) or (n_rows, k)
        Class indices or targets.
    device : torch.device or None
        Where products are computed; blocks of rows that lie elsewhere are sent there in every
        pass. None is where ``X`` is.
    block_bytes : int or None
        Size of the blocks that are visited in turn; None is 2 MiB on the processor and 256 MiB
        on a device.

    Notes
    -----
    *Guarantee*: that of :class:`~skmixdp.rows.InMemoryRows`. Products must be those of IEEE
    arithmetic in the rows' precision or better: TensorFloat-32 is not used.

    Raises
    ------
    ValueError
        If a row is so long that its products could overflow.
    """

    grid: float | None = None

    def __init__(
        self,
        X: torch.Tensor,
        y: Labels,
        *,
        device: torch.device | None = None,
        block_bytes: int | None = None,
    ) -> None:
        self._X = X
        self._y = y
        self._device = X.device if device is None else device
        self.n_rows = len(X)
        self._dtype = _array(X[:0]).dtype
        if block_bytes is None:
            block_bytes = _BLOCK_BYTES.get(self._device.type, _DEVICE_BYTES)
        self._block_rows = max(512, block_bytes // max(X.shape[1] * X.element_size(), 1))
        lengths = [_array(_norms(part)) for part in _parts(X)]
        self._norms = np.concatenate(lengths) if lengths else np.empty(0)
        check_lengths(self._norms, self._dtype)

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        with _full_precision():
            return answer(requests, self._visits(requests), self._dtype)

    def _visits(self, requests: Sequence[Request]) -> Iterator[Visit]:
        placed: dict[int, torch.Tensor] = {}  # the points of the pass

        def times(X: torch.Tensor, points: FloatArray) -> FloatArray:
            if not placed:
                placed[0] = torch.from_numpy(np.ascontiguousarray(points)).to(self._device)
            # (X @ points^T is the slower product, with few points by half.)
            return _array(torch.mm(placed[0], X.t())).T

        def weighted_sum(X: torch.Tensor, C: FloatArray) -> FloatArray:
            # (X^T C is the slower product, with few outputs ten times.)
            columns = torch.from_numpy(np.ascontiguousarray(C.T)).to(self._device)
            return _array(torch.mm(columns, X.to(columns.dtype)))

        for rows in selections([request.mask for request in requests], self.n_rows, self._block_rows):
            X = self._taken(rows)
            block = TensorBlock(X, self._y[rows], self._norms[rows])
            yield Visit(
                rows,
                block,
                times=lambda points, X=X: times(X, points),  # type: ignore[misc]
                weighted_sum=lambda C, X=X: weighted_sum(X, C),  # type: ignore[misc]
            )

    def _taken(self, rows: Selection) -> torch.Tensor:
        if isinstance(rows, slice):
            return self._X[rows].to(self._device)
        return self._X[torch.from_numpy(rows).to(self._X.device)].to(self._device)


class TorchTable:
    """A tensor as a user has it; see :class:`~skmixdp.rows.tables.Table`."""

    names: list[str] | None = None

    def __init__(self, X: torch.Tensor) -> None:
        self._X = X.detach()
        self.shape: tuple[int, int] = tuple(X.shape)  # type: ignore[assignment]
        self.on_host = self.counts_repeats = X.device.type == "cpu"

    def check(self, name: str) -> None:
        if self._X.ndim != 2:
            raise ValueError(
                f"{name} has shape {tuple(self._X.shape)}, not (n_samples, n_features); Reshape your data "
                "to a table."
            )
        if self._X.layout != torch.strided or self._X.is_complex():
            raise ValueError(f"{name} must be a dense tensor of real numbers; convert it first.")
        if not all(bool(torch.isfinite(part).all()) for part in _parts(self._X)):
            raise ValueError(
                f"{name} contains NaN or infinity; drop those rows, or impute them with what public rows say."
            )

    def n_distinct(self) -> int:
        if not self.counts_repeats:
            return self.shape[0]
        return len({hash(row.tobytes()) for block in self.blocks() for row in block})

    def private_rows(self, y: Labels, row_map: RowMap, dtype: np.dtype[Any], *, exact: bool) -> PrivateRows:
        if exact:
            host = [row_map(block, dtype) for block in self.blocks()]
            return InMemoryRows(np.concatenate(host), y, exact=True)
        precision = torch.float64 if dtype == np.float64 else torch.float32
        device = self._X.device
        try:
            return TorchRows(mapped(self._X, row_map, precision), y)
        except torch.OutOfMemoryError:
            warnings.warn(
                f"the rows do not fit on {device} beside the features; they are kept in the host's memory "
                "and sent there block by block in every step, which is slower.",
                UserWarning,
                stacklevel=2,
            )
        return TorchRows(mapped(self._X.cpu(), row_map, precision), y, device=device)

    def blocks(self) -> Iterator[NDArray[Any]]:
        for part in _parts(self._X):
            yield _array(part if part.dtype in (torch.float32, torch.float64) else part.double())


def mapped(X: torch.Tensor, row_map: RowMap, dtype: torch.dtype) -> torch.Tensor:
    """What a :class:`~skmixdp.linear.RowMap` makes of a tensor (n, n_features), where that lies."""
    n_rows, n_features = X.shape
    value = row_map.intercept_value
    rows = torch.empty((n_rows, n_features + (value is not None)), dtype=dtype, device=X.device)
    mean = None if row_map.mean is None else torch.from_numpy(row_map.mean).to(X.device)
    factors = () if row_map.whitening is None else row_map.whitening.factorised
    whitening = [torch.from_numpy(np.ascontiguousarray(factor)).to(X.device) for factor in factors]
    for start in range(0, n_rows, _MAPPED_ROWS):
        block = X[start : start + _MAPPED_ROWS].to(torch.float64, copy=True)
        if mean is not None:
            block -= mean
        if row_map.normalize:
            # First by the largest entry: the square of a huge or tiny one is inf or 0.
            _divide(block, _largest(block))
        if whitening:
            block += functools.reduce(torch.matmul, whitening, block)
        if row_map.normalize:
            _divide(block, _norms(block))
        rows[start : start + len(block), :n_features] = block
    if value is not None:
        rows[:, n_features] = value
    return rows


def _divide(rows: torch.Tensor, lengths: torch.Tensor) -> None:
    """Divide each row by its length, in place; those of length 0 stay as they are."""
    rows /= torch.where(lengths == 0, 1.0, lengths)[:, None]


def _parts(X: torch.Tensor) -> Iterator[torch.Tensor]:
    for start in range(0, len(X), _MAPPED_ROWS):
        yield X[start : start + _MAPPED_ROWS]


def _norms(X: torch.Tensor) -> torch.Tensor:
    """L2 norm of each row, accumulated in float64."""
    wide = X.double()
    return torch.sqrt((wide * wide).sum(dim=1))


def _largest(X: torch.Tensor) -> torch.Tensor:
    """Largest absolute entry of each row."""
    return X.abs().amax(dim=1)


def _array(X: torch.Tensor) -> NDArray[Any]:
    """The NumPy array of a tensor: itself on the processor, a copy from elsewhere."""
    return np.asarray(X.cpu().numpy())


class _full_precision:  # noqa: N801
    """Products in float32 as they are stated, whatever the user allows elsewhere."""

    def __enter__(self) -> None:
        self._allowed = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")

    def __exit__(self, *error: object) -> None:
        torch.set_float32_matmul_precision(self._allowed)
