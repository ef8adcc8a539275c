"""The warm start of a module: first-order training on public rows only."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from ...components.public import RandomSource
from .forward import LabelledRows, ModuleParameters, PerSampleLoss, differentiable_outputs, losses_of

_RATES = (1e-2, 1e-3, 1e-4)
_BATCH = 32
#: One row in five is held out to choose the rate and the number of epochs, if there are at least this number
#: of rows.
_HELD_OUT = 5
_FEWEST_ROWS = 10
_FEW_EPOCHS = 10
#: Most epochs and steps, and epochs without a smaller held-out loss after which a run ends.
_EPOCHS = 100
_STEPS = 1000
_PATIENCE = 10


def warm_start(
    parameters: ModuleParameters, rows: LabelledRows, loss: PerSampleLoss, source: RandomSource
) -> None:
    """Train the parameters on public rows by Adam, in place.

    Every fifth row of each class is held out. Each of the rates 1e-2, 1e-3 and 1e-4 trains on the others in
    random batches of 32, until the held-out loss has not fallen for 10 epochs, or for 100 epochs or 1,000
    steps. The rate and number of epochs with the lowest loss then train the start on all rows; if none
    lowered it, nothing changes. Fewer than 10 rows train for 10 epochs at rate 1e-3.
    """
    everything = np.arange(len(rows))
    start = [tensor.clone() for tensor in parameters.tensors]
    rate, epochs = 1e-3, _FEW_EPOCHS
    if len(rows) >= _FEWEST_ROWS:
        by_class = np.argsort(rows.y, kind="stable")
        held_out = by_class[_HELD_OUT - 1 :: _HELD_OUT]
        trained = np.setdiff1d(everything, held_out)
        lowest, epochs = float(losses_of(parameters, loss, rows, held_out).mean()), 0
        for candidate in _RATES:
            since = 0
            most = min(_EPOCHS, max(1, _STEPS * _BATCH // len(trained)))
            for epoch, _ in enumerate(_train(parameters, rows, loss, trained, candidate, most, source), 1):
                value = float(losses_of(parameters, loss, rows, held_out).mean())
                since += 1
                if value < lowest:
                    lowest, rate, epochs, since = value, candidate, epoch, 0
                if since == _PATIENCE:
                    break
            parameters.assign(start)
    for _ in _train(parameters, rows, loss, everything, rate, epochs, source):
        pass


def _train(
    parameters: ModuleParameters,
    rows: LabelledRows,
    loss: PerSampleLoss,
    index: NDArray[np.intp],
    rate: float,
    epochs: int,
    source: RandomSource,
) -> Iterator[None]:
    """Train by Adam, and yield after each epoch."""
    optimizer = torch.optim.Adam(parameters.leaves, lr=rate)
    for _ in range(epochs):
        order = index[np.argsort(source.uniform((len(index),)))]
        for x, y in rows.pieces(order, parameters, _BATCH):
            outputs = differentiable_outputs(parameters, x)
            with torch.enable_grad():
                mean = loss(outputs, y).mean()
            gradients = torch.autograd.grad(mean, parameters.leaves, allow_unused=True)
            for parameter, gradient in zip(parameters.leaves, gradients, strict=True):
                parameter.grad = gradient
            optimizer.step()
        optimizer.zero_grad()
        yield
