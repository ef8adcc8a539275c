"""Answers from blocks of rows in tensors, computed wholly where the tensors lie.

The host sends points, and gets sums. Blocks are those of :mod:`~skmixdp._rows.answering`, for requests
whose contributions have a form for tensors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .._kernels import BLOCK_ROWS, PANEL_ROWS, Cascade
from .source import ContributeTensors, FloatArray, Request, Sums

#: Entries of the sums of panels that are held at once.
_PANEL_ENTRIES = 2**25


@dataclass(frozen=True)
class TensorBlock:
    """What a query may know of a block of rows besides its products, in tensors.

    Attributes
    ----------
    X : tensor of shape (rows, d_in)
        The rows.
    y : tensor of shape (rows,) or (rows, k)
        Labels, whole numbers in int64.
    norms : tensor of shape (rows,)
        L2 norm of each row, float64.
    number : tensor of shape (rows,), or slice
        Which rows of the source these are.
    """

    X: torch.Tensor
    y: torch.Tensor
    norms: torch.Tensor
    number: torch.Tensor | slice

    @cached_property
    def max_abs(self) -> torch.Tensor:
        """Largest absolute entry of each row, shape (rows,), float64."""
        return largest(self.X).double()


def tensor_form(request: Request) -> ContributeTensors | None:
    """How a request's contributions are computed on tensors; None where the host must."""
    if request.resolution is not None:
        return None
    form: ContributeTensors | None = getattr(request.contribute, "for_tensors", None)
    return form


def answer_there(
    requests: Sequence[tuple[Request, ContributeTensors]],
    blocks: Iterable[TensorBlock],
    dtype: torch.dtype,
    device: torch.device,
) -> list[Sums]:
    """Sums of all requests over the blocks, of which there is at least one, if an empty one.

    Products are in ``dtype``, and so are sums of a panel of rows; panels are added up in float64. All of it
    is on the device, and what is returned is all that leaves it.
    """
    points = torch.from_numpy(np.concatenate([request.points for request, _ in requests]))
    points = points.to(device, dtype)
    masks = [
        None if request.mask is None else torch.from_numpy(request.mask).to(device) for request, _ in requests
    ]
    totals = [(Cascade(), Cascade()) for _ in requests]
    for block in blocks:
        Z = products(block.X, points)
        end = 0
        for index, ((request, form), mask) in enumerate(zip(requests, masks, strict=True)):
            start, end = end, end + len(request.points)
            C, S = form(Z[:, start:end], block)
            if mask is not None:
                absent = ~mask[block.number]
                for part in (C, S):
                    if part is not None:
                        part[absent] = 0
            matrix, vector = totals[index]
            if C is not None:
                add_tensor_products(matrix, C.double() if request.wide_sums else C, block.X)
            if S is not None:
                vector.add(S.sum(dim=0, dtype=torch.float64))
    return [(_to_host(matrix.value), _to_host(vector.value)) for matrix, vector in totals]


def add_tensor_products(total: Cascade, C: torch.Tensor, X: torch.Tensor) -> None:
    """Add ``C^T X`` (k, d_in) of weighted residuals (rows, k) and rows (rows, d_in) to a total.

    As :func:`~skmixdp._linear.add_products` does, with the same error.
    """
    if C.dtype == torch.float64:
        for start in range(0, max(len(X), 1), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            # (X^T C is the slower product, with few outputs ten times.)
            total.add(torch.mm(C[rows].t(), X[rows].double()))
        return
    n_panels = len(X) // PANEL_ROWS
    whole = n_panels * PANEL_ROWS
    left = C[:whole].t().reshape(C.shape[1], n_panels, PANEL_ROWS).transpose(0, 1)
    right = X[:whole].reshape(n_panels, PANEL_ROWS, X.shape[1])
    at_once = max(_PANEL_ENTRIES // max(C.shape[1] * X.shape[1], 1), 1)
    for start in range(0, n_panels, at_once):
        panels = slice(start, start + at_once)
        total.add(torch.bmm(left[panels], right[panels]).sum(dim=0, dtype=torch.float64))
    total.add(torch.mm(C[whole:].t(), X[whole:]).double())


def products(X: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """``X points^T``, shape (rows, m)."""
    # (On a processor, X @ points^T is the slower product, with few points by half.)
    return torch.mm(points, X.t()).t() if X.device.type == "cpu" else torch.mm(X, points.t())


def largest(X: torch.Tensor) -> torch.Tensor:
    """Largest absolute entry of each row."""
    return X.abs().amax(dim=1)


def _to_host(total: torch.Tensor | None) -> FloatArray | None:
    return None if total is None else np.asarray(total.cpu().numpy())


class full_precision:  # noqa: N801
    """Products in float32 as they are stated, whatever the user allows elsewhere.

    A row's part in a sum is bounded by what was clipped. TensorFloat-32 would round rows and weighted
    residuals to 11 bits after that, so that a part could exceed its bound by one in a thousand; and
    bounds on the rounding of products (:func:`~skmixdp._linear.dot_error`) would no longer hold.
    """

    def __enter__(self) -> None:
        # Since torch 2.9 every backend has a setting of its own, which the one for all may contradict.
        owners: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
        settings = [(owner, getattr(owner, "fp32_precision", None)) for owner in owners]
        self._own = [(owner, setting) for owner, setting in settings if isinstance(setting, str)]
        try:
            self._allowed: str | None = torch.get_float32_matmul_precision()
        except RuntimeError:
            self._allowed = None
        torch.set_float32_matmul_precision("highest")

    def __exit__(self, *error: object) -> None:
        if self._allowed is not None:
            torch.set_float32_matmul_precision(self._allowed)
        for owner, precision in self._own:
            owner.fp32_precision = precision
