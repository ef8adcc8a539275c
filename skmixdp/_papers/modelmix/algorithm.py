"""The algorithm ModelMix."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from ..._engine import Options, Recipe
from ..._utils.validation import COUNT, shown
from ...algorithms._base import Algorithm
from ...algorithms.adamix import AdaMix
from ...components.protocols import Clipper, PublicInfo
from ...privacy.accounting.events import Event, Noise
from ..splitting import refuse_exact_sums
from .accountant import WIDTH
from .clipping import L2LinfClip
from .event import ModelMixEvent
from .wrapping import Width, mixed_query, mixed_steps, mixed_update

#: The default width in units of the noise that the budget needs without mixing. Below 1 there is no
#: amplification. Above 4 most of the noise comes from mixing.
_RELATIVE_WIDTH = 2.0


@dataclass(eq=False, repr=False)
class ModelMix(Algorithm):
    """Noisy descent from a secret random mix of the last two heads, which hides each release. Experimental.

    Parameters
    ----------
    base : Algorithm or None, default=None
        The algorithm to wrap; None is ``AdaMix(momentum=0)``. It must be plain descent by one sum with
        isotropic noise: ``NoisyGD`` or ``AdaMix`` without projection, and no momentum. Others are refused.
    width : float or "auto", default="auto"
        Smallest width of the mixing in each coordinate, in units of the clip and on the scale of the clipped
        sum (``w / c``). It is fixed in advance for the whole fit. ``"auto"`` is twice the noise multiplier
        that the budget would need without mixing, ``2 q sqrt(T) / mu``.
    linf_split : int, default=1
        ``s``: gradients are also clipped to ``clip / sqrt(s)`` in each coordinate. No row can then use its
        whole clip on fewer than ``s`` coordinates. A larger ``s`` gives more amplification and more clipping.

    Notes
    -----
    *Guarantee*: the smaller of two epsilons. Without amplification, the mixing is post-processing of the
    base's releases. With amplification, the mixing hides each release. This bound rests on numerical tests
    of two properties, not on a proof (user guide, *What is guaranteed*). The report states both. The noise
    is not projected on the sum-to-zero subspace. Discrete noise is refused. The amplified bound supports
    replace-one neighbours at the full batch only.

    The mixing is itself noise, about that of a Gaussian with the variance of its uniform numbers. In all
    cases tried, plain Gaussian noise of the same total variance gave a smaller epsilon, at the full batch
    and on sampled batches.

    With ``learning_rate="auto"``, the step size is 3/2 of that of the plain rule. On average, mixing is the
    heavy-ball method with momentum -1/2, which moves heads by 2/3 of the step.

    References
    ----------
    Xiao, Wan and Devadas 2022, "Differentially Private Deep Learning with ModelMix",
    Algorithms 1 and 2, Theorem 4.1, Corollary 4.1.
    """

    base: Any = None
    _: KW_ONLY
    width: float | str = "auto"
    linf_split: int = 1

    admits_releases: ClassVar = False  # releases before the steps would not be mixed
    _allowed: ClassVar = {"width": (WIDTH, "auto"), "linf_split": (COUNT,)}

    def pieces(self, info: PublicInfo, options: Options) -> Recipe:
        width, split = self._width(info, options), self.linf_split
        base = AdaMix(momentum=0.0) if self.base is None else self.base
        if not isinstance(base, Algorithm):
            raise ValueError(
                f"base={shown(base)} of ModelMix must be an algorithm object, such as NoisyGD(momentum=0)."
            )
        refuse_exact_sums(self, options)

        def bound_entries(clipper: Clipper) -> Clipper:
            # With a split of 1, the L2 bound is also the bound on entries.
            return clipper if split == 1 else L2LinfClip(clipper, split)

        def event(noise_multiplier: float, n_steps: int, sampling_rate: float, noise: Noise) -> Event:
            return ModelMixEvent(
                noise_multiplier, n_steps, sampling_rate, noise, width=width(n_steps), linf_split=split
            )

        recipe = base.recipe(info, options)
        return replace(
            recipe,
            query=mixed_query(recipe.query, bound_entries),
            update=mixed_update(recipe.update, width),
            steps=mixed_steps(recipe.steps),
            event=event,
            draws=True,
        )

    def _width(self, info: PublicInfo, options: Options) -> Width:
        if self.width == "auto":
            scale = _RELATIVE_WIDTH * options.sampling.rate(info.n_private) / info.mu
            return lambda n_steps: scale * math.sqrt(n_steps)
        width = float(self.width)
        return lambda n_steps: width
