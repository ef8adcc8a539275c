"""The algorithm ModelMix, its event for accounting, and the epsilon of an event."""

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..._engine import Options, Recipe
from ..._utils.validation import COUNT, POSITIVE, check, shown
from ...algorithms._base import Algorithm
from ...algorithms.adamix import AdaMix
from ...components.protocols import Clipper, FloatArray, PublicInfo
from ...privacy import GaussianEvent, epsilon_of_event, rdp_of_event, register_event
from ...privacy.accounting.budgets import amplified_epsilon
from ...privacy.accounting.events import Neighboring, Noise, check_terms, shift_of
from ..first_order import refuse_exact_sums
from . import accountant
from .accountant import CONVERSION, WIDTH, Conversion
from .wrapping import L2LinfClip, Width, mixed_query, mixed_steps, mixed_update

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

        def event(noise_multiplier: float, n_steps: int, sampling_rate: float, noise: Noise) -> GaussianEvent:
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


@register_event("modelmix")
@dataclass(frozen=True)
class ModelMixEvent(GaussianEvent):
    """Gaussian releases, each of which starts from a secret random mix of the last two heads.

    Parameters
    ----------
    noise_multiplier, n_steps, sampling_rate, noise
        As in :class:`~skmixdp.privacy.GaussianEvent`.
    width : float
        Smallest width of the mixing in each coordinate, divided by the L2 sensitivity of the sum.
    linf_split : int, default=1
        ``s``, if one row moves no coordinate by more than the L2 sensitivity divided by ``sqrt(s)``.
    conversion : {"tight", "classic"}, default="tight"
        Conversion from Renyi orders to (epsilon, delta).

    Raises
    ------
    ValueError
        If a field is outside its range.
    """

    width: float = field(kw_only=True)
    linf_split: int = field(default=1, kw_only=True)
    conversion: Conversion = field(default="tight", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check("width", self.width, POSITIVE)
        check("linf_split", self.linf_split, COUNT)
        check("conversion", self.conversion, *CONVERSION)
        vars(self).update(width=float(self.width), linf_split=int(self.linf_split))

    @property
    def unamplified(self) -> GaussianEvent:
        """The same releases without mixing."""
        return GaussianEvent(self.noise_multiplier, self.n_steps, self.sampling_rate, self.noise)

    def mu(self, neighboring: Neighboring) -> float | None:
        """None, since mixed releases are not Gaussian. Mixing is post-processing and adds no privacy loss."""
        return None


def _amplification_of(event: ModelMixEvent, neighboring: Neighboring) -> dict[str, Any]:
    """The arguments of :func:`accountant.epsilon_for`, in units of the noise, if it covers the event."""
    if event.noise == "discrete":
        raise ValueError("noise='discrete' cannot be accounted for with ModelMix; use noise='float'.")
    if neighboring == "replace_one" and event.sampling_rate < 1:
        raise ValueError(
            f"neighboring='replace_one' cannot be accounted for with ModelMix on batches of rate "
            f"{event.sampling_rate:g}; use the full batch, or 'add_or_remove_one'."
        )
    return {
        "shift": shift_of(neighboring) / (event.noise_multiplier * math.sqrt(event.linf_split)),
        "width": event.width / event.noise_multiplier,
        "sampling_rate": event.sampling_rate,
        "linf_split": event.linf_split,
    }


@epsilon_of_event.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    amplified = amplified_epsilon(event, delta, neighboring)
    return min(amplified, epsilon_of_event(event.unamplified, delta, neighboring))


@amplified_epsilon.register
def _(event: ModelMixEvent, delta: float, neighboring: Neighboring) -> float:
    return accountant.epsilon_for(
        n_steps=event.n_steps,
        delta=delta,
        conversion=event.conversion,
        **_amplification_of(event, neighboring),
    )


@rdp_of_event.register
def _(event: ModelMixEvent, orders: FloatArray, neighboring: Neighboring) -> FloatArray:
    amplified = accountant.renyi(orders, event.n_steps, **_amplification_of(event, neighboring))
    return np.asarray(np.minimum(amplified, rdp_of_event(event.unamplified, orders, neighboring)))


def modelmix_epsilon(
    noise_multiplier: float,
    n_steps: int,
    *,
    delta: float,
    width: float,
    sampling_rate: float = 1.0,
    linf_split: int = 1,
    conversion: Conversion = "tight",
    neighboring: Neighboring = "add_or_remove_one",
) -> float:
    """Epsilon of ``n_steps`` Gaussian releases, each from a secret mix of two heads.

    Parameters
    ----------
    noise_multiplier, n_steps, delta
        As in :func:`~skmixdp.privacy.epsilon_of`.
    width : float
        Smallest width of the mixing in each coordinate, in units of the clip and on the scale of the clipped
        SUM: ``tau_mix * b / (step_size * (1 - a) * clip)``.
    sampling_rate : float, default=1.0
        Probability that a row is in the batch of a step (Poisson sampling).
    linf_split : int, default=1
        ``s``, if no coordinate of a row's contribution exceeds ``clip / sqrt(s)``.
    conversion : {"tight", "classic"}, default="tight"
        Conversion from Renyi orders to (epsilon, delta); ``"classic"`` is the paper's.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours; ``"replace_one"`` only at the full batch.

    Returns
    -------
    float
        The smaller of the amplified epsilon and the epsilon without mixing, which is valid with mixing too.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or for ``"replace_one"`` on sampled batches.

    Notes
    -----
    *Guarantee*: the amplification rests on two properties that are tested on grids and not proved (see
    ``skmixdp/_papers/modelmix/accountant.py``). Without it, the bound is that of :func:`epsilon_of`. The
    amplified bound takes some 0.03 seconds. On sampled batches, :func:`epsilon_of` takes additional time (0.4
    seconds around epsilon 3, 5 seconds around 200).

    Source: ModelMix, Theorem 4.1 and Corollary 4.1, which misprint the sign of ``alpha - 1`` and omit the
    number of steps.

    Examples
    --------
    >>> from skmixdp.algorithms.modelmix import modelmix_epsilon
    >>> round(modelmix_epsilon(0.364, 500, delta=1e-5, width=15, sampling_rate=0.02, linf_split=25), 2)
    2.52
    """
    check_terms(delta, neighboring)
    event = ModelMixEvent(
        noise_multiplier, n_steps, sampling_rate, width=width, linf_split=linf_split, conversion=conversion
    )
    return epsilon_of_event(event, delta, neighboring)
