"""What queries ask of rows on a device, computed there."""

from typing import Any

from .._linear import Loss, scale_tensor_rows, tensor_largest_entries, tensor_residuals, tensor_row_norms
from .._rows import ContributeTensors
from .protocols import Clip


def clipped_tensor_residuals(loss: Loss, clip: Clip) -> ContributeTensors | None:
    """:func:`~skmixdp.components.queries.clipped_residuals` on tensors; None if a piece takes none.

    *Guarantee*: a row's gradient obeys the clip's ``sensitivity`` of the products' dtype. The length
    that is clipped is that of the residuals as they were computed, accumulated in float64, times the
    row's; the factor is rounded once, and its product with the residuals once.
    """
    residuals = tensor_residuals(loss)
    if residuals is None or not getattr(clip, "takes_tensors", False):
        return None

    def contribute(Z: Any, block: Any) -> tuple[Any, Any]:
        C = residuals(Z, block.y)
        norms = tensor_row_norms(C, like=block.norms)
        factors: Any = clip.weights(
            norms * block.norms, lambda: tensor_largest_entries(C, like=block.norms) * block.max_abs
        )
        return scale_tensor_rows(C, factors, norms)[0], None

    return contribute
