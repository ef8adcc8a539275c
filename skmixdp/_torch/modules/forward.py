"""Forward passes of a module: labelled rows, trained parameters, outputs and losses.

Shapes: rows (n, ...), outputs (n, k), losses (n,), class indices ``y`` (n,).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._linear.losses import with_weights
from .directions import Direction

Array = NDArray[Any]
#: Loss of each row by outputs and class indices.
PerSampleLoss = Callable[[Tensor, Tensor], Tensor]
#: Loss of each row by the rows themselves and class indices.
Losses = Callable[[Tensor, Tensor], Tensor]


def differentiable_outputs(parameters: "ModuleParameters", x: Tensor) -> Tensor:
    """Outputs (n, k) of PUBLIC or made-up rows, ready for backpropagation."""
    with torch.enable_grad():
        outputs: Tensor = parameters.module(x)
    if not outputs.requires_grad:
        raise ValueError(
            "module's outputs have no gradient in the trained parameters, which public rows and "
            "learning_rate='auto' need; train other parameters, or fit 'dpzero' with a number as "
            "learning_rate and without public rows."
        )
    return outputs


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy (n,) of logits (n, k) and class indices (n,)."""
    return nn.functional.cross_entropy(outputs, y, reduction="none")


class ModuleParameters:
    """A module in evaluation mode and its trained parameters, which steps move in place."""

    def __init__(self, module: nn.Module, names: Sequence[str]) -> None:
        self.module = module
        self.names = tuple(names)
        named = dict(module.named_parameters())
        self.tensors = [named[name].detach() for name in names]
        for name, parameter in named.items():
            parameter.requires_grad_(name in self.names)
        self.leaves = [named[name] for name in names]

    @property
    def size(self) -> int:
        """Number of trained parameters."""
        return sum(tensor.numel() for tensor in self.tensors)

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return self.tensors[0].device

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the module's input for real numbers."""
        return input_dtype(self.module)

    def move(self, direction: Direction, step: float) -> None:
        """Add ``step`` times a direction, in place."""
        with torch.no_grad():
            direction.add_to(self.tensors, step)

    def place(self, W: NDArray[np.float64]) -> None:
        """Set the parameters, in place, to those of a head (1, p)."""
        parts = torch.split(torch.from_numpy(W[0]), [tensor.numel() for tensor in self.tensors])
        self.assign([part.view_as(tensor) for part, tensor in zip(parts, self.tensors, strict=True)])

    def can_hold(self, W: NDArray[np.floating[Any]]) -> bool:
        """Whether a head (1, p) is finite in the precisions of the parameters."""
        return bool(np.abs(W).max() <= self._most)

    def can_move(self, reach: float) -> bool:
        """Whether entries stay finite if they change by at most ``reach``."""
        return reach + max(float(tensor.abs().max()) for tensor in self.tensors) <= self._most

    @property
    def _most(self) -> float:
        return min(torch.finfo(tensor.dtype).max for tensor in self.tensors)

    def assign(self, values: Sequence[Tensor]) -> None:
        """Set the values of the parameters, in place."""
        with torch.no_grad():
            for tensor, value in zip(self.tensors, values, strict=True):
                tensor.copy_(value)


def flat(tensors: Sequence[Tensor]) -> NDArray[np.float64]:
    """All entries of some tensors as a head (1, p), float64."""
    return torch.cat([tensor.double().cpu().flatten() for tensor in tensors]).numpy()[np.newaxis]


class LabelledRows:
    """Rows (n, ...) with class indices and weights from 0 to 1 (n,), moved to a module's device in chunks."""

    def __init__(
        self, X: Array | Tensor, y: Array, chunk_size: int, weights: NDArray[np.float64] | None = None
    ) -> None:
        self._X = X.detach() if isinstance(X, Tensor) else X
        self.y = y
        self.chunk_size = chunk_size
        self.weights = weights

    def __len__(self) -> int:
        return len(self.y)

    def labels(self, index: NDArray[np.intp]) -> Array:
        """Class indices of some rows, and the weights that go with them, as a weighted loss reads them."""
        y = self.y[index]
        return y if self.weights is None else with_weights(y, self.weights[index])

    def pieces(
        self, index: NDArray[np.intp] | None, parameters: ModuleParameters, chunk_size: int | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Chunks of rows and labels, all or those of ``index``, with the parameters' device and dtype."""
        size = chunk_size or self.chunk_size
        total = len(self) if index is None else len(index)
        for start in range(0, total, size):
            part: Any = slice(start, start + size) if index is None else index[start : start + size]
            y = torch.from_numpy(np.array(self.y[part], dtype=np.int64)).to(parameters.device)
            yield as_input(self._X[part], parameters.device, parameters.dtype), y


def input_dtype(module: nn.Module) -> torch.dtype:
    """Dtype of the module's input for real numbers: that of its first floating-point parameter."""
    return next(parameter.dtype for parameter in module.parameters() if parameter.is_floating_point())


def as_input(rows: Array | Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Rows as a tensor: real numbers in the module's precision, whole numbers as int64."""
    if not isinstance(rows, Tensor):
        # Tensors need the byte order of the machine.
        dtype_of_rows = np.int64 if rows.dtype.kind in "iu" else rows.dtype.newbyteorder("=")
        rows = torch.from_numpy(np.array(rows, dtype=dtype_of_rows))
    return rows.to(device, dtype) if rows.is_floating_point() else rows.to(device)


def losses_of(
    parameters: ModuleParameters,
    loss: PerSampleLoss,
    rows: LabelledRows,
    index: NDArray[np.intp] | None = None,
    chunk_size: int | None = None,
) -> NDArray[np.float64]:
    """Loss of each row, (n,), computed by forward passes only; see :func:`separately`."""
    values = [np.empty(0)]
    with torch.no_grad():
        for x, y in rows.pieces(index, parameters, chunk_size):
            values.append(separately(lambda x, y: loss(parameters.module(x), y), x, y))
    return np.concatenate(values)


def separately(losses: Losses, x: Tensor, y: Tensor, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
    """Losses (n, ...) of a chunk of rows; rows on which the module fails have NaN, and change no others.

    If a chunk fails, each half is tried by itself, down to single rows, with copies of a row in the other
    places: all passes have one shape, and each row keeps its place, and its losses bit for bit.
    """
    values = np.full((len(x), *shape), np.nan)
    waiting = [np.arange(len(x))]
    while waiting:
        tried = waiting.pop()
        places = np.full(len(x), tried[0])
        places[tried] = tried
        index = torch.from_numpy(places).to(x.device)
        try:
            values[tried] = losses(x[index], y[index]).double().cpu().numpy()[tried]
        except (MemoryError, torch.OutOfMemoryError):  # depends on the number of rows only
            raise
        except Exception:  # an error would reveal that such a row exists
            if len(tried) > 1:
                waiting += [tried[: len(tried) // 2], tried[len(tried) // 2 :]]
    return values


def outputs_of(module: nn.Module, X: Array | Tensor, chunk_size: int) -> NDArray[np.float64]:
    """Outputs (n, k) of a module in evaluation mode, float64."""
    device, dtype = next(module.parameters()).device, input_dtype(module)
    values = []
    with torch.no_grad():
        for start in range(0, len(X), chunk_size):
            rows = as_input(X[start : start + chunk_size], device, dtype)
            values.append(module(rows).double().cpu().numpy())
    return np.concatenate(values)
