"""What pieces declare so that :class:`~skmixdp.algorithms.ModelMix` may wrap them.

The amplified bound holds only where a step is

    W_t = mix - (step_size (1 - a) / b) (sum of clipped gradients + N(0, s_n^2 I)) + f(released heads)

with the same independent noise in every coordinate that is mixed. A piece that can work so has a
method ``for_mixing`` that returns the piece to use; one without it, or one that raises
``ValueError``, is refused. So nothing is wrapped by default.

Source: ModelMix, Algorithm 1 and Theorem 4.1.
"""

from collections.abc import Callable
from typing import Any, Protocol

from .protocols import Clipper, Query, Steps, Update

#: Least width of the mixing over the sensitivity, as a function of the number of steps.
Width = Callable[[int], float]

#: Makes a clip also keep the entries of a contribution as small as the accounting assumes.
BoundEntries = Callable[[Clipper], Clipper]


class MixableQuery(Query, Protocol):
    """A query whose direction can carry one released sum with isotropic noise, as it is."""

    def for_mixing(self, bound_entries: BoundEntries) -> Query:
        """The query, without projections of the noise and with ``bound_entries(clipper)``.

        It releases one part of the shape of the head, or none where the public weight is 1.
        """


class MixableUpdate(Update, Protocol):
    """An update that moves the head by the direction and processes what comes out."""

    def for_mixing(self, width: Width) -> Update:
        """The update, starting each step from the mixed heads."""


class MixableSteps(Steps, Protocol):
    """A rule for steps that knows what mixing does to them."""

    def for_mixing(self) -> Steps:
        """The rule for heads that are mixed."""


def mixable(piece: Any) -> Any:
    """The piece, if it declares that it can be mixed.

    Raises
    ------
    ValueError
        Otherwise.
    """
    if not hasattr(piece, "for_mixing"):
        raise ValueError(
            f"ModelMix cannot wrap {type(piece).__name__}, which does more to the noisy sum than subtract "
            "it; wrap plain descent, such as NoisyGD(momentum=0) or AdaMix(momentum=0)."
        )
    return piece
