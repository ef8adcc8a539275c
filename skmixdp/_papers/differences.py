"""What algorithms of differences of gradients share: rules for their clips, and a refusal."""

from collections.abc import Callable

from .._engine import Options
from .._linear.arrays import FloatArray
from ..components import L2Clip
from ..components.clipping import PublicQuantileClip
from ..components.protocols import Clipper
from ..components.public import PublicView


def refuse_exact_sums(owner: object, options: Options) -> None:
    """Refuse discrete noise for an algorithm that changes sums before noise is added."""
    if options.exact_sums:
        raise ValueError(
            f"noise='discrete' needs sums on a grid, and {type(owner).__name__} computes sums off the grid; "
            "pass noise='float' or another algorithm."
        )


def clipper_of(
    clip: float | str, quantile: float, floor: float, measure: Callable[[PublicView], FloatArray]
) -> Clipper:
    """The rule for ``clip``: a threshold, or "quantile" for a quantile of public lengths (n_pub,)."""
    return PublicQuantileClip(quantile, floor, measure) if isinstance(clip, str) else L2Clip(clip)
