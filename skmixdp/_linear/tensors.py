"""The head's mathematics on tensors, where those lie.

Written with the methods of tensors alone, so that nothing here imports torch; shapes are those of
:mod:`~skmixdp._linear.losses` and :mod:`~skmixdp._linear.gradients`. Sums and products of float32 are those
of IEEE arithmetic on every device; whoever multiplies matrices must see to theirs.
"""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from .losses import LogisticLoss, SoftmaxLoss, SquaredLoss

#: ``(Z, y)`` to the residuals (n, k); may overwrite ``Z``.
TensorResiduals = Callable[[Any, Any], Any]


@singledispatch
def tensor_residuals(loss: object) -> TensorResiduals | None:
    """What computes a loss's residuals on tensors; None where nobody has registered that for it."""
    return None


@tensor_residuals.register
def _(loss: SoftmaxLoss) -> TensorResiduals:
    def residuals(Z: Any, y: Any) -> Any:
        P = Z.softmax(dim=1)
        own = y[:, None]
        return P.scatter_(1, own, P.gather(1, own) - 1)

    return residuals


@tensor_residuals.register
def _(loss: LogisticLoss) -> TensorResiduals:
    def residuals(Z: Any, y: Any) -> Any:
        Z.sigmoid_()
        Z[:, 0] -= y
        return Z

    return residuals


@tensor_residuals.register
def _(loss: SquaredLoss) -> TensorResiduals:
    def residuals(Z: Any, y: Any) -> Any:
        Z -= y
        return Z

    return residuals


def tensor_row_norms(X: Any, like: Any) -> Any:
    """L2 norm of each row (n,), accumulated in the precision of the tensor ``like``."""
    return X.norm(p=2, dim=1, dtype=like.dtype)


def tensor_largest_entries(X: Any, like: Any) -> Any:
    """Largest absolute entry of each row (n,), in the precision of the tensor ``like``."""
    return X.abs().amax(dim=1).to(like.dtype)


def scale_tensor_rows(C: Any, factors: Any, norms: Any) -> tuple[Any, Any]:
    """Each row of ``C`` (n, k) times its factor, and the factors (n,) that were used.

    ``factors`` and the rows' ``norms`` (n,) are float64. As in :func:`~skmixdp._linear.scale_rows` a
    factor of 0 makes a row 0 whatever stood there, and so does one below the smallest normal number of
    the dtype of ``C``, in which it would be rounded by more than a fixed fraction. A row that could
    overflow, or is not finite, becomes 0 too.
    """
    info = np.finfo(tensor_dtype(C))
    # Comparisons with what is not a number are false.
    usable = (factors >= float(info.tiny)) & (factors * norms <= float(info.max) / 2) & (norms < math.inf)
    factors = factors.where(usable, 0.0)
    return (C * factors.to(C.dtype)[:, None]).where(usable[:, None], 0.0), factors


def tensor_dtype(X: Any) -> np.dtype[Any]:
    """NumPy's dtype of a tensor's numbers."""
    return np.dtype(str(X.dtype).removeprefix("torch."))


def where(condition: Any, array: Any, other: Any) -> Any:
    """Entries of an array or tensor where a condition holds, and of ``other`` elsewhere."""
    return (
        np.where(condition, array, other)
        if isinstance(condition, np.ndarray)
        else array.where(condition, other)
    )
