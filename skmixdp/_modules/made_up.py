"""Extreme rows, made from public rows, that must not change the losses of other rows."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor


def replacements(x: Tensor, *, thorough: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """New rows, and the indices of the rows that they replace.

    Parameters
    ----------
    x : Tensor of shape (n, ...)
        PUBLIC rows.
    thorough : bool
        Whether to use all ways of replacing rows, or only the two most effective ones.

    Yields
    ------
    values : Tensor of shape (m, ...) or (1, ...)
        New rows, in the dtype of the old ones.
    index : Tensor of shape (m,)
        Rows that they replace.
    """
    few = torch.tensor(sorted({0, len(x) // 3, len(x) // 2, len(x) - 1}))
    half = torch.arange(0, len(x), 2)
    if not x.is_floating_point():
        # Whole numbers may be codes or indices: only values that public rows have.
        yield x.flip(0)[half], half
        yield x.amin(0, keepdim=True), few
        if thorough:
            yield x.amax(0, keepdim=True), few
            yield x.roll(1, 0)[few], few
        return
    sign = (1 - 2 * (torch.arange(x[0].numel(), device=x.device) % 2)).to(x.dtype).reshape(x[:1].shape)
    # This also changes a median, which a few outliers do not.
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
