"""Rows in a torch tensor as a user has them, and those that a user wants on a device.

Loaded only for tensors and devices.
"""

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._rowmap import RowMap
from .memory import InMemoryRows
from .source import Labels, PrivateRows
from .torch_answers import largest
from .torch_rows import MEASURED_ROWS, TorchRows, array_of, lengths_of, parts_of, warn_of_streaming

#: Kinds of device on which torch knows float64, in which rows are mapped and measured.
_KINDS = ("cpu", "cuda", "xpu")


class TorchTable:
    """A tensor as a user has it; see :class:`~skmixdp._rows.table.Table`.

    Private rows are held on ``device``, None being where the tensor is.
    """

    names: list[str] | None = None

    def __init__(self, X: torch.Tensor, device: torch.device | None = None) -> None:
        self._X = X.detach()
        self.device = X.device if device is None else device
        self.shape: tuple[int, int] = tuple(X.shape)  # type: ignore[assignment]
        self.on_host = is_processor(self.device)
        self.counts_repeats = X.device.type == "cpu"

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
        if not all(bool(torch.isfinite(part).all()) for part in parts_of(self._X)):
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
        if self.on_host:  # NumPy's products are the faster ones there
            return InMemoryRows(array_of(mapped(self._X, row_map, precision, self.device)), y)
        return self._on_device(y, row_map, precision)

    def bfloat16_rows(self, y: Labels, row_map: RowMap) -> PrivateRows:
        """The source of rows that are rounded to bfloat16 on their device; not for the host."""
        return self._on_device(y, row_map, torch.bfloat16)

    def _on_device(self, y: Labels, row_map: RowMap, precision: torch.dtype) -> PrivateRows:
        try:
            return TorchRows(mapped(self._X, row_map, precision, self.device), y)
        except torch.OutOfMemoryError:
            warn_of_streaming(self.device)
        streamed = mapped(self._X, row_map, precision, torch.device("cpu"))
        return TorchRows(streamed, y, device=self.device)

    def blocks(self) -> Iterator[NDArray[Any]]:
        for part in parts_of(self._X):
            yield array_of(part if part.dtype in (torch.float32, torch.float64) else part.double())


def mapped(
    X: torch.Tensor, row_map: RowMap, dtype: torch.dtype, device: torch.device | None = None
) -> torch.Tensor:
    """What a :class:`~skmixdp._linear.RowMap` makes of a tensor (n, n_features), on a device."""
    device = X.device if device is None else device
    n_rows, n_features = X.shape
    value = row_map.intercept_value
    rows = torch.empty((n_rows, n_features + (value is not None)), dtype=dtype, device=device)
    mean = None if row_map.mean is None else torch.from_numpy(row_map.mean).to(device)
    factors = () if row_map.whitening is None else row_map.whitening.factorised
    whitening = [torch.from_numpy(np.ascontiguousarray(factor)).to(device) for factor in factors]
    for start in range(0, n_rows, MEASURED_ROWS):
        block = X[start : start + MEASURED_ROWS].to(device, torch.float64, copy=True)
        if mean is not None:
            block -= mean
        if row_map.normalize:
            # First by the largest entry: the square of a huge or tiny one is inf or 0.
            _divide(block, largest(block))
        if whitening:
            block += functools.reduce(torch.matmul, whitening, block)
        if row_map.normalize:
            _divide(block, lengths_of(block))
        rows[start : start + len(block), :n_features] = block
    if value is not None:
        rows[:, n_features] = value
    return rows


def _divide(rows: torch.Tensor, lengths: torch.Tensor) -> None:
    """Divide each row by its length, in place; those of length 0 stay as they are."""
    rows /= torch.where(lengths == 0, 1.0, lengths)[:, None]


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
