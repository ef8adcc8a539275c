"""Private rows in a torch tensor, on the processor or on a device, where they stay.

Loaded only for tensors and devices. Rows are mapped, measured and multiplied where they are. So are
contributions, where a query has a form for tensors; otherwise outputs and weighted residuals go
back and forth. The noise is added to the sums on the processor, by the same generator as always.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._kernels import Cascade, SumError, sum_error
from .._linear import tensor_dtype
from .answering import Selection, Visit, answer, block_size, selections
from .memory import check_lengths
from .source import Block, ContributeTensors, FloatArray, Labels, Request, Sums
from .torch_answers import (
    TensorBlock,
    add_tensor_products,
    answer_there,
    full_precision,
    largest,
    products,
    tensor_form,
)

#: Bytes in a block: on a device, a block pays for a copy of its outputs each way.
_BLOCK_BYTES = {"cpu": 2**21}
_DEVICE_BYTES = 2**28

#: A block has at least so many rows.
_FEWEST_ROWS = 512

#: Rows that are measured or mapped at a time, in float64.
MEASURED_ROWS = 4096


class HostBlock(Block):
    """What a query may know on the host of a block of rows in a tensor."""

    def __init__(self, X: torch.Tensor, y: Labels, norms: FloatArray) -> None:
        self._tensor = X
        self.y = y
        self.norms = norms

    @cached_property
    def max_abs(self) -> FloatArray:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return array_of(largest(self._tensor).double())


class TorchRows:
    """Private rows in a tensor.

    Parameters
    ----------
    X : tensor of shape (n_rows, d_in), float32, float64 or bfloat16
        Rows after the row map. Blocks of bfloat16 are multiplied in float32.
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
    *Guarantee*: that of :class:`~skmixdp._rows.InMemoryRows`. Products must be those of IEEE
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
        self.device = X.device if device is None else device
        self.n_rows = len(X)
        self._products = torch.float32 if X.dtype == torch.bfloat16 else X.dtype
        self._dtype = tensor_dtype(torch.empty(0, dtype=self._products))
        if block_bytes is None:
            block_bytes = _BLOCK_BYTES.get(self.device.type, _DEVICE_BYTES)
        self._block_rows = block_size(block_bytes // max(X.shape[1] * self._dtype.itemsize, 1))
        lengths = [array_of(lengths_of(part)) for part in parts_of(X)]
        self._norms = np.concatenate(lengths) if lengths else np.empty(0)
        check_lengths(self._norms, self._dtype)
        labels = torch.from_numpy(np.array(y))
        if not labels.is_floating_point():
            labels = labels.long()
        self._labels = labels.to(self.device)
        self._lengths = torch.from_numpy(self._norms).to(self.device)
        self._streamed = X.device != self.device

    def private_sums(self, requests: Sequence[Request]) -> list[Sums]:
        with full_precision():
            while (sums := self._sums(requests)) is None:
                self._make_room()
        return sums

    def _sums(self, requests: Sequence[Request]) -> list[Sums] | None:
        """Sums of all requests; None if the device has no room for the pass."""
        forms = [(request, tensor_form(request)) for request in requests]
        there = [(request, form) for request, form in forms if form is not None]
        here = [request for request, form in forms if form is None]
        try:
            from_there = iter(self._answer_there(there) if there else ())
            from_here = iter(answer(here, self._visits(here), self._dtype) if here else ())
        except torch.OutOfMemoryError:
            return None
        return [next(from_here if form is None else from_there) for _, form in forms]

    def _make_room(self) -> None:
        """Visit fewer rows at a time; where they are few already, keep them on the host."""
        if self._block_rows > _FEWEST_ROWS:
            self._block_rows = max(_FEWEST_ROWS, self._block_rows // 4)
        elif not self._streamed:
            self._X, self._streamed = self._X.cpu(), True
            warn_of_streaming(self.device)
        else:
            raise MemoryError(
                f"{self.device} has no room for {self._block_rows} rows at a time; pass device='cpu'."
            )

    def _answer_there(self, requests: Sequence[tuple[Request, ContributeTensors]]) -> list[Sums]:
        blocks = (
            TensorBlock(self._taken(rows), self._labels[number], self._lengths[number], number)
            for rows in self._selections([request for request, _ in requests])
            for number in [rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self.device)]
        )
        return answer_there(requests, blocks, self._products, self.device)

    def _visits(self, requests: Sequence[Request]) -> Iterator[Visit]:
        placed: dict[int, torch.Tensor] = {}  # the points of the pass

        def times(X: torch.Tensor, points: FloatArray) -> FloatArray:
            if not placed:
                placed[0] = torch.from_numpy(np.ascontiguousarray(points)).to(self.device)
            return array_of(products(X, placed[0]))

        def add_sum(X: torch.Tensor, C: FloatArray, total: Cascade) -> None:
            there = Cascade()
            add_tensor_products(there, torch.from_numpy(np.ascontiguousarray(C)).to(self.device), X)
            total.add(array_of(there.value))

        for rows in self._selections(requests):
            X = self._taken(rows)
            block = HostBlock(X, self._y[rows], self._norms[rows])
            yield Visit(
                rows,
                block,
                times=lambda points, X=X: times(X, points),  # type: ignore[misc]
                add_sum=lambda C, total, X=X: add_sum(X, C, total),  # type: ignore[misc]
            )

    def sum_error(self, request: Request) -> SumError:
        return sum_error(self.n_rows, np.float64 if request.wide_sums else self._dtype)

    def _selections(self, requests: Sequence[Request]) -> Iterator[Selection]:
        return selections([request.mask for request in requests], self.n_rows, self._block_rows)

    def _taken(self, rows: Selection) -> torch.Tensor:
        index = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self._X.device)
        return self._X[index].to(self.device).to(self._products)


def warn_of_streaming(device: torch.device) -> None:
    """Say that rows do not fit on a device."""
    warnings.warn(
        f"the rows do not fit on {device} beside what else is there; they are kept in the host's memory and "
        "sent there block by block in every step, which is slower.",
        UserWarning,
        stacklevel=2,
    )


def parts_of(X: torch.Tensor) -> Iterator[torch.Tensor]:
    """A tensor's rows, a few thousand at a time."""
    for start in range(0, len(X), MEASURED_ROWS):
        yield X[start : start + MEASURED_ROWS]


def lengths_of(X: torch.Tensor) -> torch.Tensor:
    """L2 norm of each row, accumulated in float64."""
    wide = X.double()
    return torch.sqrt((wide * wide).sum(dim=1))


def array_of(X: torch.Tensor) -> NDArray[Any]:
    """The NumPy array of a tensor: itself on the processor, a copy from elsewhere."""
    return np.asarray(X.cpu().numpy())
