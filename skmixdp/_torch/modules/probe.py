"""A test, on public and made-up rows, whether a module and its loss process each row separately.

A fit clips the contribution of each row, so its guarantee needs the loss of a row to depend on that row
alone. No test can prove this for arbitrary code, and a module can be written to recognise the test and pass.
This one finds the usual problems: batch statistics, scales that depend on the largest entry of a batch,
capacities that many similar rows exhaust, memory of earlier rows, randomness, and losses over a batch.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .forward import LabelledRows, Losses, ModuleParameters, PerSampleLoss, as_input


def replacements(x: Tensor, *, thorough: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield new rows (m, ...) or (1, ...), and the indices (m,) of the PUBLIC rows that they replace."""
    few = torch.tensor(sorted({0, len(x) // 3, len(x) // 2, len(x) - 1}))
    half = torch.arange(0, len(x), 2)
    if not x.is_floating_point():
        # Integers may be codes or indices, so only values of public rows are used.
        yield x.flip(0)[half], half
        yield x.amin(0, keepdim=True), few
        if thorough:
            yield x.amax(0, keepdim=True), few
            yield x.roll(1, 0)[few], few
        return
    sign = (1 - 2 * (torch.arange(x[0].numel(), device=x.device) % 2)).to(x.dtype).reshape(x[:1].shape)
    # Changes a median too, which a few outliers do not.
    yield -3 * x[half] - sign, half
    outliers = torch.cat([-1e3 * x[:1], 1e4 * sign, 30 * x[:1], 1e2 + x[:1]])
    yield outliers[: len(few)], few
    if thorough:
        limits = torch.finfo(x.dtype)
        yield x.flip(0)[half], half
        huge = (limits.max, -limits.max / 4, math.inf, math.sqrt(limits.max))
        tiny = (0.0, limits.smallest_normal / 8, -limits.tiny, limits.eps)
        for entries in (huge, tiny):
            values = torch.tensor(entries, dtype=torch.float64)[: len(few)].to(x)
            yield values.reshape(-1, *[1] * (x.ndim - 1)) * sign, few


Array = NDArray[Any]
#: Rows and class indices.
ProbeRows = tuple[Tensor, Tensor]

#: Two moves of the parameters by noise, relative to a tensor's root mean square and absolute. A fit moves the
#: parameters too, and a part that mixes rows may start with weight 0.
_MOVES = ((0.1, 0.01), (1.0, 0.1))
_SEED = 0
#: Rows of the first pass, which shows whether module and loss can be called.
_FIRST = 3
#: Tries for a difference as small as rounding: a processor may split a sum among threads in another way.
_LOOKS = 3
#: Allowed difference of losses on devices with a varying order of sums, in units of the precision.
_ON_DEVICES = 64


def check_forward(
    parameters: ModuleParameters,
    loss: PerSampleLoss,
    rows: LabelledRows,
    n_classes: int,
    private: Array | Tensor,
    size: int,
    start: nn.Module,
    gradients: Losses | None = None,
) -> None:
    """Refuse a module or loss if the loss of a row is found to depend on anything but that row.

    A pass of ``size`` rows is repeated with changes (:class:`_Trial`), also after two moves of the
    parameters, and for the ``gradients`` of rows, if there are any. Rows that are not replaced must keep
    their loss: bit by bit on a CPU, to 64 units of the precision on other devices.

    *Guarantee*: the test uses no private rows and costs no budget; of ``private`` only shape and dtype are
    read.
    """
    size = max(size, _FIRST)
    x, y = ordinary_rows(parameters, loss, rows, n_classes, private, size)
    buffers = [buffer.clone() for buffer in parameters.module.buffers()]
    trials = [_Trial(lambda x, y: _losses(parameters, loss, x, y, n_classes), n_classes, parameters)]
    if gradients is not None:
        trials.append(_Trial(lambda x, y: _gradients(gradients, x, y), n_classes, parameters))
    try:
        for trial in trials:
            trial.run(x, y, thorough=True)
        generator = torch.Generator(parameters.device).manual_seed(_SEED)
        for relative, absolute in _MOVES:
            _move(parameters, relative, absolute, generator)
            for trial in trials:
                trial.run(x, y, thorough=False)
    finally:
        values = dict(start.named_parameters())
        parameters.assign([values[name] for name in parameters.names])
    if not all(map(_same_bits, buffers, parameters.module.buffers())):
        raise ValueError(
            "module changes its buffers in evaluation mode, and would keep what private rows left there; "
            "remove what updates them."
        )


class _Trial:
    """Passes in which some rows are replaced, and the comparison of the other rows with a first pass."""

    def __init__(self, losses: Losses, n_classes: int, parameters: ModuleParameters) -> None:
        self._losses = losses
        self._n_classes = n_classes
        #: Allowed difference of losses for another order of sums, relative to 1 and to the loss.
        self._near = 4 * math.sqrt(torch.finfo(parameters.dtype).eps)
        on_processor = parameters.device.type == "cpu"
        self._slack = 0.0 if on_processor else _ON_DEVICES * torch.finfo(parameters.dtype).eps

    def run(self, x: Tensor, y: Tensor, *, thorough: bool) -> None:
        """Test a pass of rows ``x`` (size, ...) with class indices ``y`` (size,), in all ways or in a few."""
        base = self._losses(x, y)
        if thorough:  # so that randomness is not taken for an effect of other rows
            self._check_repeated_passes(x, y, base)
        for values, index in replacements(x, thorough=thorough):
            self._check_other_rows(x, y, base, values, index)
        self._check_equal_rows(x[:1], x[-1:] if thorough else None, y)
        if thorough:
            # The negative of a row may take another path through a module.
            self._check_equal_rows(-x[:1] if x.is_floating_point() else x[-1:], x[:1], y)
            self._check_places_and_numbers(x, y, base)
            self._check_repeated_passes(x, y, base)

    def _check_repeated_passes(self, x: Tensor, y: Tensor, base: Tensor) -> None:
        if not self._repeats(base, lambda: self._losses(x, y)):
            raise ValueError(
                "the loss of a row differs between two passes of the same rows, by chance or by what the "
                "module remembers of rows in between; remove what is random or kept in evaluation mode."
            )

    def _check_other_rows(self, x: Tensor, y: Tensor, base: Tensor, values: Tensor, index: Tensor) -> None:
        """Replace some rows and their labels, after which all others must keep the loss ``base`` (size,)."""
        others = torch.ones(len(base), dtype=torch.bool)
        others[index] = False
        changed, labels = x.clone(), y.clone()
        changed[index] = values.to(x.dtype)
        labels[index] = (y[index] + 1) % self._n_classes
        try:
            unchanged = self._repeats(base[others], lambda: self._losses(changed, labels)[others])
        except ValueError:
            # A module may refuse made-up entries, such as codes out of range. Other passes have no such
            # entries.
            return
        if not unchanged:
            _refuse("depends on the values of other rows in a pass")

    def _check_equal_rows(self, row: Tensor, second: Tensor | None, y: Tensor) -> None:
        """Copies of one row must have equal losses, and a different first row must not change them."""
        x, y = row.expand(len(y), *row.shape[1:]).clone(), y[:1].expand_as(y).clone()
        try:
            base = self._losses(x, y)
        except ValueError:  # a module may refuse the negative of a public row
            return
        if not _close(base, base[:1].expand_as(base), self._near):
            _refuse("depends on its place in a pass, or on how many rows like it there are")
        if second is not None:
            self._check_other_rows(x, y, base, second, torch.tensor([0]))

    def _check_places_and_numbers(self, x: Tensor, y: Tensor, base: Tensor) -> None:
        if not _close(base, self._losses(x.flip(0), y.flip(0)).flip(0), self._near):
            _refuse("depends on its place in a pass")
        for end in (1, len(x) // 2):
            if not _close(base[:end], self._losses(x[:end], y[:end]), self._near):
                _refuse("depends on how many rows are in a pass")

    def _repeats(self, base: Tensor, again: Callable[[], Tensor]) -> bool:
        """Whether losses of the same rows in the same places are the same, in one of several tries."""
        for _ in range(_LOOKS):
            losses = again()
            if _same_bits(base, losses) or _close(base, losses, self._slack):
                return True
            if not _close(base, losses, self._near):
                return False
        return False


def _refuse(how: str) -> NoReturn:
    raise ValueError(
        f"the loss of a row {how}, so no clip bounds the effect of one row; use a module and a loss that "
        "process each row separately (batch normalisation needs running statistics)."
    )


def ordinary_rows(
    parameters: ModuleParameters,
    loss: PerSampleLoss,
    rows: LabelledRows,
    n_classes: int,
    private: Array | Tensor,
    size: int,
) -> ProbeRows:
    """A pass of repeated public rows; without public rows, of made-up rows that the module accepts."""
    index = np.arange(size)
    if len(rows) > 1:
        x, y = next(rows.pieces(index % len(rows), parameters, size))
        _losses(parameters, loss, x[:_FIRST], y[:_FIRST], n_classes)
        return x, y
    generator = torch.Generator().manual_seed(_SEED)
    like = as_input(private[:0], parameters.device, parameters.dtype)
    shape = (size, *like.shape[1:])
    y = torch.from_numpy(index % n_classes).to(parameters.device)
    if like.is_floating_point():
        x = torch.randn(shape, generator=generator).to(like)
        with suppress(ValueError):  # the module may take codes, held as real numbers
            _losses(parameters, loss, x[:_FIRST], y[:_FIRST], n_classes)
            return x, y
    x = torch.randint(0, 2, shape, generator=generator).to(like)
    _losses(parameters, loss, x[:_FIRST], y[:_FIRST], n_classes)
    return x, y


def _losses(
    parameters: ModuleParameters, loss: PerSampleLoss, x: Tensor, y: Tensor, n_classes: int
) -> Tensor:
    """Loss of each row, (n,), float64 in main memory."""
    try:
        with torch.no_grad():
            outputs = parameters.module(x)
    except Exception as error:
        raise ValueError(
            f"module fails on {len(x)} rows of shape {tuple(x.shape[1:])} and dtype {x.dtype}: {error}"
        ) from error
    if not isinstance(outputs, Tensor) or tuple(outputs.shape) != (len(x), n_classes):
        shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(
            f"module turns {len(x)} rows into {shape} and there are {n_classes} classes; its outputs must "
            f"have shape ({len(x)}, {n_classes})."
        )
    try:
        losses = loss(outputs, y)
    except Exception as error:
        raise ValueError(f"loss fails on outputs of shape {tuple(outputs.shape)}: {error}") from error
    if not isinstance(losses, Tensor) or losses.shape != y.shape:
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ValueError(
            f"loss turns the outputs of {len(y)} rows into {shape}; it must give one number for each row, of "
            f"shape ({len(y)},), such as with reduction='none'."
        )
    return losses.detach().double().cpu()


def _gradients(gradients: Losses, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of each row, (n, p), float64 in main memory."""
    try:
        return gradients(x, y).double().cpu()
    except Exception as error:
        raise ValueError(
            f"module or loss has no gradient for single rows by torch.func.vmap ({error}); train it with "
            "ZerothOrderDPModuleClassifier."
        ) from error


def _move(parameters: ModuleParameters, relative: float, absolute: float, generator: torch.Generator) -> None:
    """Add normal numbers to the parameters, in place."""
    with torch.no_grad():
        for tensor in parameters.tensors:
            root_mean_square = float(tensor.norm()) / math.sqrt(max(tensor.numel(), 1))
            noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device)
            tensor.add_(noise, alpha=relative * root_mean_square + absolute)


def _close(first: Tensor, second: Tensor, near: float) -> bool:
    return torch.allclose(first, second, rtol=near, atol=near, equal_nan=True)


def _same_bits(first: Tensor, second: Tensor) -> bool:
    """Whether tensors are equal bit by bit, except for the kind of a NaN."""
    return first.shape == second.shape and bool(((first == second) | (first.isnan() & second.isnan())).all())
