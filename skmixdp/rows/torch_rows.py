"""Private rows in a torch tensor, on the processor or on a device, where they stay.

Loaded only for tensors and devices. Rows are mapped, measured and multiplied where they are. So are
contributions, where a question has a form for tensors; otherwise outputs and weighted residuals go
back and forth. The noise is added to the sums on the processor, by the same generator as always.
"""

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..linear import RowMap
from .answering import Selection, Visit, answer, selections
from .contract import Block, ContributeTensors, FloatArray, Labels, PrivateRows, Request, Sums
from .memory import InMemoryRows, check_lengths
from .torch_answers import TensorBlock, answer_there, full_precision, largest, products, tensor_form

#: Bytes in a block: on a device, a block pays for a copy of its outputs each way.
_BLOCK_BYTES = {"cpu": 2**21}
_DEVICE_BYTES = 2**28

#: Kinds of device on which torch knows float64, in which rows are mapped and measured.
_KINDS = ("cpu", "cuda", "xpu")

#: A block has at least so many rows.
_FEWEST_ROWS = 512

#: Rows that are mapped at a time, in float64.
_MAPPED_ROWS = 4096


class HostBlock(Block):
    """What a question may know on the host of a block of rows in a tensor."""

    def __init__(self, X: torch.Tensor, y: Labels, norms: FloatArray) -> None:
        self._tensor = X
        self.y = y
        self.norms = norms

    @cached_property
    def max_abs(self) -> FloatArray:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return _array(largest(self._tensor).double())


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
        self.device = X.device if device is None else device
        self.n_rows = len(X)
        self._dtype = _array(X[:0]).dtype
        if block_bytes is None:
            block_bytes = _BLOCK_BYTES.get(self.device.type, _DEVICE_BYTES)
        self._block_rows = max(_FEWEST_ROWS, block_bytes // max(X.shape[1] * X.element_size(), 1))
        lengths = [_array(_norms(part)) for part in _parts(X)]
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
        return answer_there(requests, blocks, self._X.dtype, self.device)

    def _visits(self, requests: Sequence[Request]) -> Iterator[Visit]:
        placed: dict[int, torch.Tensor] = {}  # the points of the pass

        def times(X: torch.Tensor, points: FloatArray) -> FloatArray:
            if not placed:
                placed[0] = torch.from_numpy(np.ascontiguousarray(points)).to(self.device)
            return _array(products(X, placed[0]))

        def weighted_sum(X: torch.Tensor, C: FloatArray) -> FloatArray:
            # (X^T C is the slower product, with few outputs ten times.)
            columns = torch.from_numpy(np.ascontiguousarray(C.T)).to(self.device)
            return _array(torch.mm(columns, X.to(columns.dtype)))

        for rows in self._selections(requests):
            X = self._taken(rows)
            block = HostBlock(X, self._y[rows], self._norms[rows])
            yield Visit(
                rows,
                block,
                times=lambda points, X=X: times(X, points),  # type: ignore[misc]
                weighted_sum=lambda C, X=X: weighted_sum(X, C),  # type: ignore[misc]
            )

    def _selections(self, requests: Sequence[Request]) -> Iterator[Selection]:
        return selections([request.mask for request in requests], self.n_rows, self._block_rows)

    def _taken(self, rows: Selection) -> torch.Tensor:
        if isinstance(rows, slice):
            return self._X[rows].to(self.device)
        return self._X[torch.from_numpy(rows).to(self._X.device)].to(self.device)


class TorchTable:
    """A tensor as a user has it; see :class:`~skmixdp.rows.tables.Table`.

    Private rows are held on ``device``, None being where the tensor is.
    """

    names: list[str] | None = None

    def __init__(self, X: torch.Tensor, device: torch.device | None = None) -> None:
        self._X = X.detach()
        self.device = X.device if device is None else device
        self.shape: tuple[int, int] = tuple(X.shape)  # type: ignore[assignment]
        self.on_host = self.counts_repeats = X.device.type == "cpu"

    @classmethod
    def of_array(cls, X: NDArray[Any], device: str) -> "TorchTable":
        """The table of an array in the host's memory, which is not copied there."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
            return cls(torch.from_numpy(np.ascontiguousarray(X)), torch.device(device))

    def on_device(self, device: str) -> "TorchTable":
        """The table whose private rows are held on a device."""
        place = torch.device(device)
        return TorchTable(self._X.cpu() if place.type == "cpu" else self._X, place)

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
        if is_processor(self.device):  # NumPy's products are the faster ones there
            return InMemoryRows(_array(mapped(self._X, row_map, precision, self.device)), y)
        try:
            return TorchRows(mapped(self._X, row_map, precision, self.device), y)
        except torch.OutOfMemoryError:
            warn_of_streaming(self.device)
        streamed = mapped(self._X, row_map, precision, torch.device("cpu"))
        return TorchRows(streamed, y, device=self.device)

    def blocks(self) -> Iterator[NDArray[Any]]:
        for part in _parts(self._X):
            yield _array(part if part.dtype in (torch.float32, torch.float64) else part.double())


def mapped(
    X: torch.Tensor, row_map: RowMap, dtype: torch.dtype, device: torch.device | None = None
) -> torch.Tensor:
    """What a :class:`~skmixdp.linear.RowMap` makes of a tensor (n, n_features), on a device."""
    device = X.device if device is None else device
    n_rows, n_features = X.shape
    value = row_map.intercept_value
    rows = torch.empty((n_rows, n_features + (value is not None)), dtype=dtype, device=device)
    mean = None if row_map.mean is None else torch.from_numpy(row_map.mean).to(device)
    for start in range(0, n_rows, _MAPPED_ROWS):
        block = X[start : start + _MAPPED_ROWS].to(device, torch.float64, copy=True)
        if mean is not None:
            block -= mean
        if row_map.normalize:
            # First by the largest entry: the square of a huge or tiny one is inf or 0.
            for measure in (largest, _norms):
                lengths = measure(block)
                block /= torch.where(lengths == 0, 1.0, lengths)[:, None]
        rows[start : start + len(block), :n_features] = block
    if value is not None:
        rows[:, n_features] = value
    return rows


def device_name(device: Any) -> str:
    """The name of what torch takes for a device, ``"cpu"`` for the processor.

    Raises
    ------
    ValueError
        If there is none, or none that knows float64.
    """
    try:
        place = torch.empty(0, device=device, dtype=torch.float64).device
    except (RuntimeError, TypeError, AssertionError):  # which it is differs from device to device
        place = None
    if place is None or place.type not in _KINDS:
        here = [*(f"'cuda:{number}'" for number in range(torch.cuda.device_count())), "'cpu'", "'auto'"]
        raise ValueError(
            f"device={device!r} is none that torch has here and that knows float64; pass one of "
            f"{', '.join(here)}."
        )
    return "cpu" if place.type == "cpu" else str(torch.device(device))


def is_processor(device: torch.device) -> bool:
    """Whether rows on a device are in the host's memory."""
    return device.type == "cpu"


def warn_of_streaming(device: torch.device) -> None:
    """Say that rows do not fit on a device."""
    warnings.warn(
        f"the rows do not fit on {device} beside what else is there; they are kept in the host's memory and "
        "sent there block by block in every step, which is slower.",
        UserWarning,
        stacklevel=2,
    )


def _parts(X: torch.Tensor) -> Iterator[torch.Tensor]:
    for start in range(0, len(X), _MAPPED_ROWS):
        yield X[start : start + _MAPPED_ROWS]


def _norms(X: torch.Tensor) -> torch.Tensor:
    """L2 norm of each row, accumulated in float64."""
    wide = X.double()
    return torch.sqrt((wide * wide).sum(dim=1))


def _array(X: torch.Tensor) -> NDArray[Any]:
    """The NumPy array of a tensor: itself on the processor, a copy from elsewhere."""
    return np.asarray(X.cpu().numpy())
